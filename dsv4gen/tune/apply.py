"""From a journal to the tuning file: rows are chosen, written, and taken back where the specs do not allow them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dsv4gen.base import paths
from dsv4gen.base.errors import DsvError, Place, UsageError
from dsv4gen.base.outputs import write_whole
from dsv4gen.tune.choose import Choice, choose
from dsv4gen.tune.journal import Entry, Head, read_journal

POLICY = "graph replays over inputs that rotate past the L2, median of 15; spec's tile kept unless 3 % faster"


@dataclass(frozen=True)
class Outcome:
    """What was chosen: rows by kernel, entries they come from, and problems that candidates had."""

    head: Head
    choices: Mapping[str, Sequence[Choice]]
    entries: Sequence[Entry]

    @property
    def rejected(self) -> list[Entry]:
        """Candidates that were wrong or failed."""
        return [entry for entry in self.entries if entry.problem]


def tuning_file(family: str, target: str) -> Path:
    """Where a family's rows for a target belong."""
    return paths.specs() / "tuning" / target / f"{family}.yaml"


def apply(journal: Path, out: Path | None = None) -> tuple[Path, bool, Outcome]:
    """Write the tuning file of a journal; the target's folder of the specs is its home.

    Raises:
        UsageError: no journal, one without a kernel's tile or whose family or kernels are gone, or tiles that the specs
            no longer allow.
    """
    from dsv4gen.tune.candidates import spec_of
    from dsv4gen.tune.write import write_tuning

    outcome = decide(journal)
    head = outcome.head
    if not outcome.choices:
        remedy = "choose shapes that launch the kernels in question, and tiles that they have"
        raise UsageError(
            "no kernel's tile was measured, so there is no table", place=Place(str(journal)), remedy=remedy
        )
    spec_of(head.family, head.target)
    path = out or tuning_file(head.family, head.target)
    policy = POLICY if head.kind == "time" else "executed wave instructions, not time: no card was there"
    before = path.read_bytes() if path.is_file() else None
    write_tuning(path, head, policy, outcome.choices)
    try:
        _require_plan(head)
    except DsvError as error:
        path.unlink() if before is None else write_whole(path, before)
        message = f"the specs do not take what was measured, so {paths.display(path)} is as it was:\n{error}"
        raise UsageError(message, place=Place(str(journal)), remedy="measure again with the specs of today") from error
    return path, True, outcome


def _require_plan(head: Head) -> None:
    """The specs with the tuning file that was just written make a plan; rows of a journal may be older than they."""
    from dsv4gen.base import extensions
    from dsv4gen.emit.build import make_plans
    from dsv4gen.spec import load_specs

    make_plans(load_specs(*extensions.spec_folders()), head.target, [head.family])


def decide(journal: Path) -> Outcome:
    """Rows for every kernel that was measured; none where they would only repeat the spec's."""
    from dsv4gen.plan.make import make_plan
    from dsv4gen.spec.kernel_references import visible_tile
    from dsv4gen.tune.candidates import spec_of

    head, entries = read_journal(journal)
    loaded, record, _ = spec_of(head.family, head.target)
    plan = make_plan(loaded, record)
    choices: dict[str, Sequence[Choice]] = {}
    for kernel in plan.kernels:
        mine = [entry for entry in entries if entry.kernel == kernel.name]
        if mine:
            buckets = [(str(bucket.when), bucket.tile) for bucket in kernel.buckets]
            spec = loaded.model.kernels[kernel.name]
            symbol = partial(visible_tile, spec)
            rows = choose(kernel.name, buckets, head.axes.get(kernel.name, ()), mine, symbol)
            same = [(row.when, dict(row.tile)) for row in rows] == [(when, dict(tile)) for when, tile in buckets]
            choices[kernel.name] = [] if same else rows
    return Outcome(head, choices, entries)
