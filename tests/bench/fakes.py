"""A family that runs on the CPU through the reference, and a clock that tests set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dsv4gen
from dsv4gen.bench.cells import Wanted, cells_of
from dsv4gen.bench.machine import Rates
from dsv4gen.bench.run import Bench
from dsv4gen.bench.stopwatch import Thunk, Timing
from dsv4gen.runtime.load import any_entry

RATES = Rates(bytes_per_s=1e12, flops_per_s=1e15, empty_us=0.7)
SMALL = {"batch": 2, "width": 600, "k": 16}


class Clock:
    """A stopwatch that runs every call once and then says what it was told to; `log` lists what was timed."""

    def __init__(self, times: Callable[[int], float] = lambda _: 10.0, spread: float = 0.01) -> None:
        self.times, self.spread = times, spread
        self.log: list[tuple[str, int]] = []

    def _timed(self, way: str, calls: Sequence[Thunk]) -> Timing:
        for call in calls:
            call()
        self.log.append((way, len(calls)))
        return Timing(self.times(len(self.log) - 1), self.spread)

    def chained(self, calls: Sequence[Thunk]) -> Timing:
        """As told."""
        return self._timed("chained", calls)

    def isolated(self, calls: Sequence[Thunk]) -> Timing:
        """As told."""
        return self._timed("isolated", calls)

    def eager(self, calls: Sequence[Thunk]) -> Timing:
        """As told."""
        return self._timed("eager", calls)

    def cache_bytes(self) -> int:
        """None, so that few sets are drawn."""
        return 0

    def synchronize(self) -> None:
        """Nothing to wait for."""


class Altered:
    """A loaded family whose first op does something after each call, e.g. spoil the result."""

    def __init__(self, family: Any, after: Callable[[Mapping[str, Any]], None]) -> None:
        self.family, self.after = family, after

    def op(self, name: str | None = None) -> Any:
        """The op, altered."""
        op = self.family.op(name)

        class Op:
            table = op.table
            workspaces = op.workspaces
            explain = staticmethod(op.explain)

            @staticmethod
            def unchecked(**values: Any) -> None:
                op.unchecked(**values)
                self.after(values)

        return Op


def reference(family: str, **options: str) -> Any:
    """The torch path of a family."""
    return dsv4gen.load(family, target="reference", **options)


def make_bench(clock: Clock, load: Any = reference, **more: Any) -> Bench:
    """A bench of top-k on the CPU."""
    return Bench({"topk": any_entry("topk")}, load, clock, RATES, "cpu", **more)


def small_cells(**sizes: int) -> list[Any]:
    """One given cell of top-k, small enough for the reference."""
    return cells_of("topk", any_entry("topk"), Wanted((), {**SMALL, **sizes}, {}))
