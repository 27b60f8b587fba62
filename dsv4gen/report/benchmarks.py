"""Files of `dsv4gen bench --json` -> measurements per cell, and charts of ours against the floor and peers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsv4gen.base import paths
from dsv4gen.base.errors import Place, ResultsError
from dsv4gen.report.model import Bench, Chart, Measurement, Series, Time

KIND = "dsv4gen bench"
SCHEMA = 1
#: ways of timing, the one that is compared first
WAYS = ("chained", "isolated", "eager")

_REMEDY = "run: dsv4gen bench --json FILE"


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
        ResultsError: missing, not JSON, not times of bench, of another schema, or damaged.
    """
    place = Place(paths.display(path))
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResultsError("there is no such file", place=place, remedy=_REMEDY) from None
    except (OSError, ValueError) as error:
        raise ResultsError(f"not readable as JSON: {error}", place=place, remedy=_REMEDY) from error
    kind, schema = (data.get("kind"), data.get("schema")) if isinstance(data, dict) else (None, None)
    if kind != KIND:
        raise ResultsError(f"not times of dsv4gen bench: kind is {kind!r}", place=place, remedy=_REMEDY)
    if schema != SCHEMA:
        message = f"times of schema {schema!r}; this dsv4gen reads schema {SCHEMA}"
        raise ResultsError(message, place=place, remedy=_REMEDY)
    try:
        return list(_measured(data, place.file))
    except (KeyError, TypeError, ValueError) as error:
        raise ResultsError(f"damaged: {error!r}", place=place, remedy=_REMEDY) from error


def _measured(data: Mapping[str, Any], file: str) -> Iterator[Measured]:
    families = dict.fromkeys(row["cell"]["family"] for row in data["rows"])
    for family in families:
        rows = tuple(_row(row) for row in data["rows"] if row["cell"]["family"] == family)
        way = next((way for way in WAYS if any(way in row.times for row in rows)), WAYS[0])
        bench = Bench(file, data["date"], dict(data["machine"]), way, rows, tuple(charts(rows, way)))
        yield Measured(data["machine"]["target"], family, data.get("digests", {}).get(family, ""), bench)


def _row(row: Mapping[str, Any]) -> Measurement:
    cell, times = row["cell"], {way: _time(timing) for way, timing in row["times"].items()}
    peers = {name: peer["times"].get(WAYS[0]) for name, peer in row["peers"].items()}
    return Measurement(
        group=cell["group"],
        op=cell["op"],
        options=dict(cell["options"]),
        shape=dict(cell["shape"]),
        path=row["path"],
        kernels=tuple(row["kernels"]),
        floor_us=float(row["floor_us"]),
        times=times,
        peers={name: _time(timing) for name, timing in peers.items() if timing},
        peer_problems={name: peer["problem"] for name, peer in row["peers"].items() if peer["problem"]},
        problem=row["problem"],
    )


def _time(timing: Mapping[str, Any]) -> Time:
    return Time(float(timing["us"]), float(timing.get("spread", 0.0)))


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
