"""Sum the executed instructions by class. Counts, never time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dsv4gen.emulate.amdgcn.layout import MemoryCount
from dsv4gen.emulate.amdgcn.names import canonical
from dsv4gen.emulate.amdgcn.program import Program

_CLASSES = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("matrix", r"v_(mfma|wmma|smfmac|swmmac)"),
        ("transcendental", r"v_(s_)?(exp|log|rcp|rsq|sqrt|sin|cos)_"),
        ("lane_moves", r"ds_(bpermute|permute|swizzle)"),
        ("lds_atomics", r"ds_(add|sub|rsub|inc|dec|min|max|and|or|xor|cmpst|cmpstore|wrxchg|mskor|pk_add|cond_sub)"),
        ("lds", r"ds_"),
        ("scalar_loads", r"s_(buffer_)?load"),
        ("atomics", r"(global|flat|buffer)_atomic"),
        ("loads", r"(global|flat|buffer|scratch)_load"),
        ("stores", r"(global|flat|buffer|scratch)_store"),
        ("cache_control", r"(global|buffer)_(inv|wb|gl)"),
        ("barriers", r"s_barrier($|_wait)"),
        ("branches", r"s_(c?branch|setpc|swappc|call|endpgm)"),
        ("waits", r"s_(wait|nop|delay|sleep|clause|barrier_signal)"),
        ("scalar", r"s_"),
        ("vector", r"v_"),
    )
)


def instruction_class(mnemonic: str) -> str:
    """The counter an instruction belongs to."""
    name = canonical(mnemonic)
    return next((label for label, pattern in _CLASSES if pattern.match(name)), "other")


def instruction_classes(program: Program) -> tuple[str, ...]:
    """The class of every instruction."""
    return tuple(instruction_class(record.mnemonic) for record in program.instructions)


def sum_counters(classes: Sequence[str], executed: Sequence[int], memory: Iterable[MemoryCount]) -> dict[str, int]:
    """Totals by class, and of the memory counters."""
    totals = {label: 0 for label, _ in _CLASSES}
    for label, count in zip(classes, executed, strict=True):
        totals[label] = totals.get(label, 0) + count
    totals["cache_lines"] = totals["lds_bank_conflicts"] = 0
    for record in memory:
        totals["cache_lines"] += record.lines
        totals["lds_bank_conflicts"] += record.conflicts
    return totals
