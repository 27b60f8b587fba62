"""What `bench` found, in memory and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dsv4gen.base.errors import Place, UsageError
from dsv4gen.base.outputs import write_whole
from dsv4gen.base.plain_data import PlainDataError, from_plain
from dsv4gen.bench.cells import Cell
from dsv4gen.bench.machine import Rates
from dsv4gen.bench.stopwatch import Timing

SCHEMA = 1
KIND = "dsv4gen bench"
#: ways of timing, the first is what comparisons use
WAYS = ("chained", "isolated", "eager")
Timings = Mapping[str, Timing]
#: options by family, each with its default
Defaults = Mapping[str, Mapping[str, str]]
NO_DEFAULTS: Defaults = {}


@dataclass(frozen=True)
class PeerTimes:
    """One peer on one cell: its times, or why it has none."""

    times: Timings = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True)
class Row:
    """One cell's outcome: times, or the problem that kept it from being timed.

    Attributes:
        path: the launch path taken, and `kernels` what it launched.
        floor_us: what the card's rates allow at least.
    """

    cell: Cell
    floor_us: float
    path: str = ""
    kernels: tuple[str, ...] = ()
    times: Timings = field(default_factory=dict)
    peers: Mapping[str, PeerTimes] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True)
class Result:
    """One run.

    Attributes:
        date: the day, ISO.
        machine: the card and versions; those of peers too.
        missing: peers that are not installed, with the reason.
        digests: what was timed: `Manifest.family_digest` by family.
        defaults: what options that a later family has, or no longer has, stood at here.
        untimed: cells that an interrupt left out.
    """

    date: str
    machine: Mapping[str, str]
    rates: Rates
    rows: tuple[Row, ...]
    missing: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    defaults: Defaults = field(default_factory=dict)
    untimed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"schema": SCHEMA, "kind": KIND, **asdict(self)}

    def write(self, path: Path) -> None:
        """Write the JSON file.

        Raises:
            OutputError: it cannot be written.
        """
        write_whole(path, (json.dumps(self.to_json(), indent=1, sort_keys=True) + "\n").encode())


def read_result(path: Path) -> Result:
    """Read what `write` wrote.

    Raises:
        UsageError: not there, not JSON, not a result of this schema, or one with a value that cannot be.
    """
    place = Place(str(path))
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"no result of bench: {error}", place=place, remedy="write one with bench --json") from error
    if not isinstance(data, dict) or data.get("kind") != KIND or data.get("schema") != SCHEMA:
        raise UsageError(f"not a result of {KIND} schema {SCHEMA}", place=place, remedy="write one with bench --json")
    plain = {name: value for name, value in data.items() if name not in ("schema", "kind")}
    try:
        result = from_plain(Result, plain)
        for number, row in enumerate(result.rows):
            _check_times(row, f"rows[{number}]")
    except PlainDataError as error:
        raise UsageError(f"a damaged result: {error}", place=place, remedy="write it again with bench --json") from None
    return result


def _check_times(row: Row, where: str) -> None:
    """A row that was timed has times in the way that comparisons use, and all of them take time."""
    if not row.problem and WAYS[0] not in row.times:
        raise PlainDataError(f"{where}.times: no {WAYS[0]!r}, and no problem that says why")
    for times in (row.times, *(peer.times for peer in row.peers.values())):
        for way, timing in times.items():
            if way not in WAYS:
                raise PlainDataError(f"{where}: no way of timing {way!r}; ways: {', '.join(WAYS)}")
            if timing.us < 0 or timing.spread < 0 or (way == WAYS[0] and not timing.us):
                raise PlainDataError(f"{where}.{way}: {timing.us} us, spread {timing.spread}: no time of a call")
