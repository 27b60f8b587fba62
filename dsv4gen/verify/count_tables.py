"""Counts of emulated instructions by function of a module and by kind; counts, never time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: kind -> classes of `dsv4gen.emulate.amdgcn.counters`
KINDS = {
    "matrix": ("matrix",),
    "vector": ("vector", "transcendental"),
    "lds": ("lds", "lds_atomics", "lane_moves"),
    "memory": ("loads", "stores", "atomics"),
    "scalar": ("scalar", "scalar_loads", "branches"),
}
OTHER = "other"
#: instructions that the compiler's line table puts nowhere
NO_LINE = "(no line)"


def kind_of(counter: str) -> str:
    """The kind that a class of instructions belongs to; waits, barriers and cache control are `other`."""
    return next((kind for kind, classes in KINDS.items() if counter in classes), OTHER)


def by_function(
    functions: Mapping[str, Mapping[str, int]], unit: str, units: int
) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    """Head and rows of a table: each function, the whole launch, and the whole launch for one unit."""
    kinds = (*KINDS, OTHER)
    rows: list[Sequence[object]] = []
    for name, counts in sorted(functions.items(), key=lambda item: -sum(item[1].values())):
        rows.append(_row(name, [counts.get(kind, 0) for kind in kinds], unit, units))
    totals = [sum(counts.get(kind, 0) for counts in functions.values()) for kind in kinds]
    rows.append(_row("all", totals, unit, units))
    return ("function", *kinds, "all", *([f"all per {unit}"] if unit else [])), rows


def _row(name: str, counts: Sequence[int], unit: str, units: int) -> Sequence[object]:
    total = sum(counts)
    return (name, *counts, total, *([f"{total / max(units, 1):.2f}"] if unit else []))
