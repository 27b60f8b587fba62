"""Deterministic covering designs: few cases that still contain every pair of levels of any two factors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import TypeAlias

Row: TypeAlias = dict[str, str]
#: two factors with one level each, factors in the order of the design
Pair: TypeAlias = tuple[str, str, str, str]


def covering_design(levels: Mapping[str, Sequence[str]], *, full: Sequence[str] = ()) -> list[Row]:
    """Rows with one level per factor, the same for the same arguments.

    Args:
        levels: factor -> its levels.
        full: factors whose every combination appears; the other factors are filled in so that every pair of
            levels appears. Without it, the two factors with most levels.
    """
    base = list(full) or sorted(levels, key=lambda factor: -len(levels[factor]))[:2]
    rows = [dict(zip(base, chosen, strict=True)) for chosen in product(*(levels[factor] for factor in base))]
    done = list(base)
    for factor in levels:
        if factor not in base:
            _add_factor(rows, factor, levels, done)
            done.append(factor)
    return rows


def pairs_of(row: Row, factors: Sequence[str]) -> Iterator[Pair]:
    """All pairs of levels a row contains."""
    for first, second in combinations(factors, 2):
        yield first, row[first], second, row[second]


def _add_factor(rows: list[Row], factor: str, levels: Mapping[str, Sequence[str]], done: Sequence[str]) -> None:
    """Give every row a level of `factor`, and append rows for the pairs that found no place."""
    missing = {(other, level, mine) for other in done for level in levels[other] for mine in levels[factor]}
    used = dict.fromkeys(levels[factor], 0)
    for row in rows:
        chosen = max(levels[factor], key=lambda mine: (_gain(row, mine, missing, done), -used[mine]))
        row[factor] = chosen
        used[chosen] += 1
        missing -= {(other, row[other], chosen) for other in done}
    for other, level, mine in sorted(missing):
        rows.append({**rows[0], other: level, factor: mine})


def _gain(row: Row, mine: str, missing: set[tuple[str, str, str]], done: Sequence[str]) -> int:
    return sum((other, row[other], mine) in missing for other in done)
