"""Two results of the same cells: which became slower or faster by more than noise explains.

Runs on two machines of one kind differ by 3 % where nothing changed (measured on H200s, 5 to 95 % of all cells), and
a cell's own replays spread on top of that. So a cell has changed beyond the larger of 3 % and the sum of both spreads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dsv4gen.bench.cells import Cell
from dsv4gen.bench.result import NO_DEFAULTS, WAYS, Defaults, Result, Row
from dsv4gen.bench.stopwatch import Timing

NOISE = 0.03
#: short calls vary by that many microseconds from run to run, on one card and with nothing changed
RESOLUTION_US = 0.25


@dataclass(frozen=True)
class Change:
    """One cell in both results; `bound` is the part of the old time that noise explains."""

    cell: Cell
    old: Timing
    new: Timing
    bound: float

    @property
    def ratio(self) -> float:
        """New over old."""
        return self.new.us / self.old.us

    @property
    def verdict(self) -> str:
        """`slower`, `faster` or `same`."""
        if self.ratio > 1 + self.bound:
            return "slower"
        return "faster" if self.ratio < 1 / (1 + self.bound) else "same"


@dataclass(frozen=True)
class Comparison:
    """All cells of both results.

    Attributes:
        broken: cells that were timed before and have a problem now.
        missing, added: cells that only the old, or only the new result has.
        differences: machine facts that differ, as (what, old, new).
    """

    changes: tuple[Change, ...]
    broken: tuple[Row, ...]
    missing: tuple[Cell, ...]
    added: tuple[Cell, ...]
    differences: tuple[tuple[str, str, str], ...]

    @property
    def slower(self) -> tuple[Change, ...]:
        """Cells that became slower."""
        return tuple(change for change in self.changes if change.verdict == "slower")

    @property
    def passed(self) -> bool:
        """Nothing became slower and nothing broke."""
        return not self.slower and not self.broken


def compare(old: Result, new: Result, noise: float = NOISE) -> Comparison:
    """Compare by cells; what was not timed on one side is no change.

    A cell that does not name an option, because its family got or lost that since, was timed at the option's default.
    """
    before, after = _by_key(old.rows, new.defaults), _by_key(new.rows, old.defaults)
    before = {key: row for key, row in before.items() if not row.problem}
    both = [(before[key], row) for key, row in after.items() if key in before]
    return Comparison(
        tuple(_change(was, row, noise) for was, row in both if not row.problem),
        tuple(row for _, row in both if row.problem),
        tuple(row.cell for key, row in before.items() if key not in after),
        tuple(row.cell for key, row in after.items() if key not in before and not row.problem),
        tuple(_differences(old.machine, new.machine)),
    )


def suspects(old: Result, rows: Sequence[Row], noise: float = NOISE, defaults: Defaults = NO_DEFAULTS) -> list[Row]:
    """Rows that look slower: worth a second look before anyone is told; `defaults` are those of the rows' families."""
    before = {key: row for key, row in _by_key(old.rows, defaults).items() if not row.problem}
    after = {key: row for key, row in _by_key(rows, old.defaults).items() if not row.problem}
    both = [(before[key], row) for key, row in after.items() if key in before]
    return [row for was, row in both if _change(was, row, noise).verdict == "slower"]


def _by_key(rows: Sequence[Row], others: Defaults) -> dict[tuple[object, ...], Row]:
    """Rows by key, with the options that only the other side has at their defaults."""
    return {_completed(row.cell, others.get(row.cell.family, {})).key: row for row in rows}


def _completed(cell: Cell, defaults: Mapping[str, str]) -> Cell:
    return replace(cell, options={**defaults, **cell.options})


def _change(old: Row, new: Row, noise: float) -> Change:
    was, now = old.times[WAYS[0]], new.times[WAYS[0]]
    return Change(new.cell, was, now, max(noise, was.spread + now.spread, RESOLUTION_US / was.us))


def _differences(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    for name in sorted({*old, *new}):
        if old.get(name) != new.get(name):
            yield name, old.get(name, "-"), new.get(name, "-")
