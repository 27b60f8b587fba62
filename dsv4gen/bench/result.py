"""What `bench` found, in memory and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dsv4gen.base.errors import OutputError, Place, UsageError
from dsv4gen.bench.cells import Cell
from dsv4gen.bench.machine import Rates
from dsv4gen.bench.stopwatch import Timing

SCHEMA = 1
KIND = "dsv4gen bench"
#: ways of timing, the first is what comparisons use
WAYS = ("chained", "isolated", "eager")
Timings = Mapping[str, Timing]


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
    """

    date: str
    machine: Mapping[str, str]
    rates: Rates
    rows: tuple[Row, ...]
    missing: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"schema": SCHEMA, "kind": KIND, **asdict(self)}

    def write(self, path: Path) -> None:
        """Write the JSON file.

        Raises:
            OutputError: it cannot be written.
        """
        try:
            path.write_text(json.dumps(self.to_json(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
        except OSError as error:
            raise OutputError(f"cannot write {path}: {error.strerror}") from error


def read_result(path: Path) -> Result:
    """Read what `write` wrote.

    Raises:
        UsageError: not there, not JSON, or not a result of this schema.
    """
    place = Place(str(path))
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"no result of bench: {error}", place=place) from error
    if not isinstance(data, dict) or data.get("kind") != KIND or data.get("schema") != SCHEMA:
        raise UsageError(f"not a result of {KIND} schema {SCHEMA}", place=place, remedy="write one with bench --json")
    try:
        rows = tuple(_row(row) for row in data["rows"])
        rates, digests = Rates(**data["rates"]), data.get("digests", {})
        return Result(data["date"], data["machine"], rates, rows, data["missing"], digests)
    except (KeyError, TypeError) as error:
        raise UsageError(f"a damaged result: {error!r}", place=place, remedy="write it again") from error


def _row(data: Mapping[str, Any]) -> Row:
    peers = {name: PeerTimes(_timings(peer["times"]), peer["problem"]) for name, peer in data["peers"].items()}
    return Row(
        Cell(**data["cell"]), data["floor_us"], data["path"], tuple(data["kernels"]), _timings(data["times"]), peers,
        data["problem"],
    )  # fmt: skip


def _timings(data: Mapping[str, Any]) -> dict[str, Timing]:
    return {way: Timing(**timing) for way, timing in data.items()}
