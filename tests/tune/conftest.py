"""A sweep of gather_dequant on the CPU: made-up candidates, the reference behind them, a clock that is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import dsv4gen
from dsv4gen.bench import prepare as preparing
from dsv4gen.bench.cells import Cell, Wanted, cells_of
from dsv4gen.runtime.dispatch import decide
from dsv4gen.tune.candidates import make_pack
from dsv4gen.tune.journal import Head, Journal
from dsv4gen.tune.measure import Sweep
from dsv4gen.tune.pack import Pack, Variant
from tests.bench.fakes import Clock

MACHINE = {"device": "a card", "torch": "2", "triton": "3.6"}
SMALL = {"tokens": 2, "width": 3, "page_size": 4, "pages": 5, "extra_width": 2, "extra_page_size": 2, "extra_pages": 9}


@pytest.fixture(scope="session")
def pack() -> Pack:
    """The family as it is, and candidates for the kernel of two caches with tiles that no spec has."""
    base = make_pack("gather_dequant", "sm_90", ["dual"], {"rows": 4})
    tiles = [{"lanes": lanes, "num_warps": warps} for lanes in (4, 8, 16) for warps in (1, 2, 4)]
    return replace(base, variants=[_variant(base, tile) for tile in tiles])


def _variant(base: Pack, tile: Mapping[str, int]) -> Variant:
    files = {**base.base.files, "gather_dequant.py": f"# {tile}\n"}
    return Variant("dual", tile, base.base.entry, files)


@dataclass
class Rig:
    """Runs sweeps; `wrong` tiles spoil their results, `speed` gives microseconds by tile and shape."""

    pack: Pack
    journal: Path
    speed: Callable[[Mapping[str, int], Mapping[str, int]], float]
    wrong: Callable[[Mapping[str, int]], bool] = lambda _: False
    stop_after: int | None = None
    running: Mapping[str, int] = field(default_factory=dict)
    shape: Mapping[str, int] = field(default_factory=dict)
    timed: list[tuple[Any, Any]] = field(default_factory=list)

    def cells(self, *tokens: int) -> list[Cell]:
        """Small shapes with different numbers of tokens."""
        entry = self.pack.base.entry
        wanted = [Wanted(["dual"], {**SMALL, "tokens": count}, {}) for count in tokens]
        return [cell for words in wanted for cell in cells_of("gather_dequant", entry, words)]

    def head(self) -> Head:
        """Of the journal."""
        axes = {name: list(axes) for name, axes in self.pack.axes.items()}
        return Head("gather_dequant", "sm_90", "time", "2026-01-02", MACHINE, axes)

    def load(self, variant: Variant, options: Mapping[str, str]) -> Any:
        """The reference with the variant's decisions."""
        rig, family = self, dsv4gen.load("gather_dequant", target="reference", **options)
        entry = variant.entry

        class Op:
            table = family.op("gather_dual").table
            workspaces = ()

            @staticmethod
            def explain(**shape: int) -> Any:
                rig.shape = shape
                return decide("gather_dequant", entry, "sm_90", "gather_dual", shape, options)

            @staticmethod
            def unchecked(**values: Any) -> None:
                rig.running = variant.tile
                values = {"queries": 1, "k_offset": 0, **values}
                family.op("gather_dual").unchecked(**values)
                if rig.wrong(variant.tile):
                    values["out"][-1, -1, 7] += 1

        class Family:
            @staticmethod
            def op(_: str | None = None) -> Any:
                return Op

        return Family()

    def _time(self, _: int) -> float:
        if self.stop_after is not None and len(self.timed) >= self.stop_after:
            raise KeyboardInterrupt
        self.timed.append((dict(self.running), dict(self.shape)))
        return self.speed(self.running, self.shape)

    def sweep(self, *tokens: int, deadline: float = float("inf")) -> bool:
        """Measure into the journal."""
        clock = Clock(self._time)
        journal = Journal.open(self.journal, self.head())
        return Sweep(self.pack, self.load, clock, clock, journal, "cpu", deadline).run(self.cells(*tokens))


@pytest.fixture
def rig(pack: Pack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A rig where one warp is best; two sets of inputs are enough for a clock that does not look."""
    monkeypatch.setattr(preparing, "LEAST_BYTES", 1)
    return Rig(pack, tmp_path / "a.jsonl", lambda tile, _: 5.0 + 0.1 * tile.get("num_warps", 9))
