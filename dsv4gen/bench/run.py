"""Time cells one after the other: check, then time, then the peers on the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from dsv4gen.base.errors import DsvError, VerifyError
from dsv4gen.bench.cells import Cell, changed_options, least_sizes
from dsv4gen.bench.machine import Rates
from dsv4gen.bench.peers import Peer
from dsv4gen.bench.prepare import Prepared, check, judge, prepare, request_for
from dsv4gen.bench.result import WAYS, PeerTimes, Row
from dsv4gen.bench.stopwatch import Stopwatch, Thunk, Timing

Json = Mapping[str, Any]
#: a peer's problem is shown in a line
_LINE = 160


class Loader(Protocol):
    """What gives a family's kernels for chosen options, as `dsv4gen.load` does."""

    def __call__(self, family: str, **options: str) -> Any:
        """The loaded family."""


@dataclass
class Bench:
    """Everything a run needs.

    Attributes:
        entries: manifest entries of the families.
        device: torch's name of the device.
        ways: how each cell is timed.
    """

    entries: Mapping[str, Json]
    load: Loader
    stopwatch: Stopwatch
    rates: Rates
    device: str
    peers: Mapping[str, Peer] = field(default_factory=dict)
    ways: Sequence[str] = WAYS

    def run(self, cells: Sequence[Cell], progress: Callable[[Row], None] = lambda _: None) -> list[Row]:
        """All cells, or those before an interrupt from the keyboard; a problem of one is in its row.

        Raises:
            KeyboardInterrupt: there is no row yet.
        """
        rows: list[Row] = []
        try:
            for cell in cells:
                rows.append(self.row(cell))
                progress(rows[-1])
        except KeyboardInterrupt:
            if not rows:
                raise
        return rows

    def row(self, cell: Cell) -> Row:
        """One cell: timed, or with the reason why not."""
        row = Row(cell, self.rates.floor_us(cell.floor_bytes, cell.floor_flops))
        entry = self.entries[cell.family]
        try:
            kernels = self.load(cell.family, **changed_options(cell.options, entry))
            decision = kernels.op(cell.op).explain(**{**least_sizes(entry), **cell.shape})
            row = replace(row, path=decision.path, kernels=tuple(launch.symbol for launch in decision.launches))
            request = request_for(cell, entry, self.device)
            prepared = prepare(request, entry["reference"], self.stopwatch.cache_bytes())
            written = check(prepared, kernels)
            times = self._timed(prepared.thunks(kernels), self.ways)
        except DsvError as error:
            return replace(row, problem=error.message)
        except RuntimeError as error:
            return replace(row, problem=_line(error))
        peers = {name: self._peer(peer, prepared, written) for name, peer in self.peers.items()}
        return replace(row, times=times, peers={name: found for name, found in peers.items() if found})

    def _timed(self, calls: Sequence[Thunk], ways: Sequence[str]) -> dict[str, Timing]:
        return {way: getattr(self.stopwatch, way)(calls) for way in ways}

    def _peer(self, peer: Peer, prepared: Prepared, ours: Mapping[str, Any]) -> PeerTimes | None:
        """Times of a peer; None where it has nothing for the op. Whatever a foreign package raises is its problem.

        Outputs that it does not leave behind are not judged: ours, which are right, stand in for them.
        """
        try:
            calls = peer.prepare(prepared.request, prepared.sets)
            if calls is None:
                return None
            written = calls.written()
            self.stopwatch.synchronize()
            judge(prepared, {**ours, **written})
            return PeerTimes(self._timed(calls.calls, self.ways[:2]))
        except VerifyError as error:
            return PeerTimes(problem=f"wrong: {error.message}")
        except Exception as error:
            return PeerTimes(problem=_line(error))


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:_LINE]
