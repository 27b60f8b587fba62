"""Files of `dsv4gen bench --json` -> measurements per cell, and charts of ours against the floor and peers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.base import paths
from dsv4gen.bench.result import WAYS, Result, Row, read_result
from dsv4gen.report.model import Bench, Chart, Measurement, Series


@dataclass(frozen=True)
class Measured:
    """What one file says about one cell; `digest` is that of what was timed, empty where the file does not say."""

    target: str
    family: str
    digest: str
    bench: Bench


def read_measured(path: Path) -> list[Measured]:
    """Everything a file of times says, by family.

    Raises:
        UsageError: missing, not JSON, not times of bench, of another schema, or damaged.
    """
    result = read_result(path)
    return [
        _measured(result, family, paths.display(path)) for family in dict.fromkeys(r.cell.family for r in result.rows)
    ]


def _measured(result: Result, family: str, file: str) -> Measured:
    rows = tuple(_measurement(row) for row in result.rows if row.cell.family == family)
    way = next((way for way in WAYS if any(way in row.times for row in rows)), WAYS[0])
    bench = Bench(file, result.date, dict(result.machine), way, rows, tuple(charts(rows, way)))
    return Measured(result.machine.get("target", ""), family, result.digests.get(family, ""), bench)


def _measurement(row: Row) -> Measurement:
    peers = {name: peer.times[WAYS[0]] for name, peer in row.peers.items() if WAYS[0] in peer.times}
    return Measurement(
        group=row.cell.group,
        op=row.cell.op,
        options=row.cell.options,
        shape=row.cell.shape,
        path=row.path,
        kernels=row.kernels,
        floor_us=row.floor_us,
        times=row.times,
        peers=peers,
        peer_problems={name: peer.problem for name, peer in row.peers.items() if peer.problem},
        problem=row.problem,
    )


def charts(rows: Sequence[Measurement], way: str) -> Iterator[Chart]:
    """One chart per list of shapes and combination of what is fixed, over the axis with most values."""
    for group in dict.fromkeys(row.group for row in rows):
        timed = [row for row in rows if row.group == group and way in row.times]
        axis = _longest_axis(timed)
        if not axis:
            continue
        fixed = _fixed(timed, axis)
        facets: dict[str, list[Measurement]] = {}
        for row in timed:
            facets.setdefault(_words(row, fixed), []).append(row)
        for words, facet in facets.items():
            if len(facet) > 1:
                ordered = sorted(facet, key=lambda row: row.shape[axis])
                yield Chart(" ".join((facet[0].op, group, words)).strip(), axis, tuple(_series(ordered, axis, way)))


def _varying(rows: Sequence[Measurement]) -> dict[str, int]:
    """Axes and options with more than one value, and how many they have."""
    names = dict.fromkeys(name for row in rows for name in (*row.options, *row.shape))
    counts = {name: len({_value(row, name) for row in rows}) for name in names}
    return {name: count for name, count in counts.items() if count > 1}


def _longest_axis(rows: Sequence[Measurement]) -> str:
    """The axis with most values among those that every row gives a positive size."""
    sizes = {name: n for name, n in _varying(rows).items() if all(row.shape.get(name, 0) > 0 for row in rows)}
    return max(sizes, key=lambda name: sizes[name], default="")


def _fixed(rows: Sequence[Measurement], axis: str) -> list[str]:
    """What must be fixed to leave one row per value of the axis; names that follow from others are left out."""
    fixed = [name for name in _varying(rows) if name != axis]
    for name in reversed(fixed):
        rest = [other for other in fixed if other != name]
        if len({(_words(row, rest), row.shape[axis]) for row in rows}) == len(rows):
            fixed = rest
    return fixed


def _value(row: Measurement, name: str) -> object:
    return row.options.get(name, row.shape.get(name))


def _words(row: Measurement, names: Sequence[str]) -> str:
    return " ".join(f"{name}={_value(row, name)}" for name in names if _value(row, name) is not None)


def _series(rows: Sequence[Measurement], axis: str, way: str) -> Iterator[Series]:
    yield Series("ours", "ours", tuple((row.shape[axis], row.times[way].us) for row in rows))
    yield Series("floor", "floor", tuple((row.shape[axis], row.floor_us) for row in rows))
    for peer in dict.fromkeys(name for row in rows for name in row.peers):
        points = tuple((row.shape[axis], row.peers[peer].us) for row in rows if peer in row.peers)
        yield Series(peer, "peer", points)
