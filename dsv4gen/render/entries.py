"""Every kernel that is planned has an entry in its source; the runtime would find out at the first call."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsv4gen.base.entries import entry_texts, mark
from dsv4gen.base.errors import LintError
from dsv4gen.plan.ir import FamilyPlan

_SHOWN = 3


def missing_entries(text: str, plan: FamilyPlan) -> Iterator[LintError]:
    """Kernels that a HIP/CUDA source lacks, each at the spec's line of its symbol."""
    entries = entry_texts(text)
    template = f"templates/hip_cuda/{plan.template}"
    for kernel in plan.kernels:
        symbols = [instance.symbol for instance in kernel.instances]
        absent = [symbol for symbol in symbols if symbol not in entries]
        if absent:
            message = f"{template} has no entry for {_listed(absent)} of kernel {kernel.name}"
            remedy = f"begin it there with `{mark(absent[0])}`, or take the kernel out of the spec"
            yield LintError(message, place=kernel.place, remedy=remedy)
        unnamed = [name for name in symbols if name in entries and not re.search(rf"\b{name}\s*\(", entries[name])]
        if unnamed:
            message = f"{template} has no function {_listed(unnamed)} of kernel {kernel.name} behind the entry's line"
            yield LintError(message, place=kernel.place, remedy="give the function there the name of the entry")


def _listed(symbols: list[str]) -> str:
    more = f" and {len(symbols) - _SHOWN} more" if len(symbols) > _SHOWN else ""
    return ", ".join(symbols[:_SHOWN]) + more
