"""The case matrix on the SIMT host build, both wave sizes, judged at zero tolerance."""

from __future__ import annotations

from itertools import product

import pytest

from dsv4gen.reference.covering import covering_design, pairs_of
from dsv4gen.reference.topk_cases import LEVELS, covering_cases, edge_cases
from tests.topk.host import HostTopk, label_of, labels, row_path_edges, topk_plan

CASES = covering_cases(labels(topk_plan()))
CHUNKS = 12


def test_design_contains_every_pair() -> None:
    levels = {**LEVELS, "kernel": labels(topk_plan())}
    rows = covering_design(levels, full=("scores", "length"))
    found = {pair for row in rows for pair in pairs_of(row, list(levels))}
    wanted = sum(len(levels[a]) * len(levels[b]) for a, b in product(levels, levels) if a < b)
    assert len({frozenset(((a, x), (b, y))) for a, x, b, y in found}) == wanted


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_covering_cases(host: HostTopk, chunk: int) -> None:
    assert host.failures(CASES[chunk::CHUNKS]) == []


def test_row_path_edges(host: HostTopk) -> None:
    kernels = [kernel for kernel in topk_plan().kernels if kernel.name != "legacy"]
    for kernel in kernels:
        tiles = {label_of(one): one for one in kernel.instances if one.options["mode"] == "indices"}
        edges = {label: row_path_edges(kernel, tile, k=512) for label, tile in tiles.items()}
        assert all(len(limits) == len(kernel.row_paths) - 2 for limits in edges.values())
        assert host.failures(edge_cases(edges)) == []
