"""From measured times to an ordered list of predicates and tiles, per kernel.

The spec's own buckets stay the outer division: where shapes of one were measured, its tile is replaced, and it is
divided further along a size where that repays. A gain below the noise of a measurement changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dsv4gen.tune.journal import Entry

#: a tile must be faster than the spec's by that part, over the shapes it is for
WORTH = 0.03
#: dividing a bucket must gain that part over its shapes
WORTH_DIVIDING = 0.02
DEPTH = 3

Tile = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Choice:
    """One row; without entries it repeats the spec's bucket, since nothing was measured there.

    Attributes:
        entries: its tile on the shapes that it is for, the fastest first.
    """

    when: str
    tile: Mapping[str, int]
    entries: tuple[Entry, ...] = ()

    @property
    def entry(self) -> Entry | None:
        """The measurement in the middle, which stands for the row."""
        return self.entries[len(self.entries) // 2] if self.entries else None


@dataclass(frozen=True)
class _Cell:
    """One shape: its sizes, and per tile the measurement."""

    sizes: Mapping[str, int]
    times: Mapping[Tile, Entry]

    @property
    def best(self) -> float:
        return min(entry.value for entry in self.times.values())

    def only(self, tiles: Container[Tile]) -> _Cell:
        """Without the measurements of other tiles."""
        return _Cell(self.sizes, {tile: entry for tile, entry in self.times.items() if tile in tiles})


def choose(
    kernel: str,
    buckets: Sequence[tuple[str, Mapping[str, int]]],
    axes: Sequence[str],
    entries: Iterable[Entry],
    symbol: Callable[[Mapping[str, int]], object] = lambda tile: tuple(sorted(tile.items())),
) -> list[Choice]:
    """Rows for one kernel.

    Args:
        buckets: the spec's, as (predicate, tile) in order; the last one always holds.
        axes: sizes that predicates may use.
        entries: a journal's; those of other kernels are left out, and those with a problem.
        symbol: what the kernel's name shows of a tile; one name cannot stand for two tiles.
    """
    cells = _cells(kernel, entries)
    fixed = {symbol(tile): _key(tile) for when, tile in buckets if when not in cells}
    spec = {symbol(tile): _key(tile) for _, tile in buckets}
    allowed = _one_per_symbol([cell for found in cells.values() for cell in found], fixed, spec, symbol)
    rows: list[Choice] = []
    for when, own in buckets:
        found = [cell.only(allowed) for cell in cells.get(when, ())]
        found = [cell for cell in found if cell.times]
        rows += _divide(found, when, own, axes, DEPTH) if found else [Choice(when, own)]
    return _merged(rows)


def _cells(kernel: str, entries: Iterable[Entry]) -> dict[str, list[_Cell]]:
    """Measured shapes by bucket; of a tile that was timed twice the time at length counts."""
    times: dict[tuple[str, tuple[object, ...]], dict[Tile, Entry]] = {}
    for entry in entries:
        if entry.kernel == kernel:
            known = times.setdefault((entry.bucket, entry.cell), {})
            tile = _key(entry.tile)
            if entry.problem:
                known.pop(tile, None)
            elif tile not in known or entry.final or not known[tile].final:
                known[tile] = entry
    found: dict[str, list[_Cell]] = {}
    for (bucket, _), by_tile in times.items():
        if by_tile:
            found.setdefault(bucket, []).append(_Cell(next(iter(by_tile.values())).shape, by_tile))
    return found


def _one_per_symbol(
    cells: Sequence[_Cell],
    fixed: Mapping[object, Tile],
    spec: Mapping[object, Tile],
    symbol: Callable[[Mapping[str, int]], object],
) -> set[Tile]:
    """Of the tiles that share a name the one with the least mean cost, the spec's unless beaten, or that of a bucket
    nothing was measured in.
    """
    costs: dict[object, dict[Tile, list[float]]] = {}
    for cell in cells:
        for tile, entry in cell.times.items():
            costs.setdefault(symbol(dict(tile)), {}).setdefault(tile, []).append(math.log(entry.value / cell.best))
    chosen = set()
    for name, by_tile in costs.items():
        most = max(map(len, by_tile.values()))
        whole = {tile: sum(values) / most for tile, values in by_tile.items() if len(values) == most}
        best = min(sorted(whole), key=lambda tile: whole[tile])
        if name in spec and whole.get(spec[name], math.inf) - whole[best] < math.log1p(WORTH):
            best = spec[name]
        chosen.add(fixed.get(name) or best)
    return chosen


def _key(tile: Mapping[str, int]) -> Tile:
    return tuple(sorted(tile.items()))


def _divide(cells: Sequence[_Cell], when: str, own: Mapping[str, int], axes: Sequence[str], depth: int) -> list[Choice]:
    """Rows that cover `when`; the last of them has that predicate itself."""
    tile, cost = _best_tile(cells, own)
    best: tuple[float, str, list[_Cell], list[_Cell]] | None = None
    for axis, limit in _cuts(cells, axes) if depth else ():
        low = [cell for cell in cells if cell.sizes[axis] <= limit]
        high = [cell for cell in cells if cell.sizes[axis] > limit]
        total = _best_tile(low, own)[1] * len(low) + _best_tile(high, own)[1] * len(high)
        if best is None or total < best[0]:
            best = (total, f"{axis} <= {limit}", low, high)
    if best is not None and cost - best[0] / len(cells) > math.log1p(WORTH_DIVIDING):
        _, cut, low, high = best
        inner = cut if when == "true" else f"{_wrapped(when)} and {cut}"
        return [*_divide(low, inner, own, axes, depth - 1), *_divide(high, when, own, axes, depth - 1)]
    return [Choice(when, dict(tile), _ordered(cell.times[tile] for cell in cells))]


def _best_tile(cells: Sequence[_Cell], own: Mapping[str, int]) -> tuple[Tile, float]:
    """The tile with the least mean of log(time / best of the cell), and that mean; the own one unless beaten."""
    common = set.intersection(*(set(cell.times) for cell in cells))
    costs = {tile: sum(math.log(cell.times[tile].value / cell.best) for cell in cells) / len(cells) for tile in common}
    mine = _key(own)
    winner = min(sorted(costs), key=lambda tile: costs[tile])
    if mine in costs and costs[mine] - costs[winner] < math.log1p(WORTH):
        winner = mine
    return winner, costs[winner]


def _cuts(cells: Sequence[_Cell], axes: Sequence[str]) -> Iterable[tuple[str, int]]:
    for axis in axes:
        if all(axis in cell.sizes for cell in cells):
            for limit in sorted({cell.sizes[axis] for cell in cells})[:-1]:
                yield axis, limit


def _merged(rows: Sequence[Choice]) -> list[Choice]:
    """Without a row that the next one makes superfluous: the same tile, and a predicate that is part of its own."""
    kept: list[Choice] = []
    for row in reversed(rows):
        follower = kept[-1] if kept else None
        if follower and dict(follower.tile) == dict(row.tile) and _is_part(row.when, follower.when):
            kept[-1] = replace(follower, entries=_ordered((*follower.entries, *row.entries)))
            continue
        kept.append(row)
    return kept[::-1]


def _ordered(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.value))


def _is_part(when: str, whole: str) -> bool:
    return whole == "true" or when.startswith(f"{_wrapped(whole)} and ") or when.startswith(f"{whole} and ")


def _wrapped(when: str) -> str:
    return f"({when})" if " or " in when or " if " in when else when
