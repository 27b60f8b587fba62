"""Defects of rows that a cluster's blocks share: words that nobody waits for, and candidates of several blocks."""

from __future__ import annotations

from functools import lru_cache

import pytest

from dsv4gen.reference.topk_cases import ORDERS, Case
from tests.topk.host import WAVES, HostTopk, only, topk_plan

LABEL = "topk_cluster2_t128"
CLUSTER_BUGS = ("early_search", "early_bins", "early_ranks", "pool_unchecked")
#: rows in registers, and rows so long that candidates are gathered, too few of them or too many for a block
CASES = [
    Case(LABEL, scores, length, 2048, head=1, order=order)
    for order in ORDERS
    for scores, length in (("normal", 6001), ("normal", 70_001), ("winners_in_a_run", 70_001), ("descending", 70_001))
]


@lru_cache(maxsize=8)
def cluster_host(wave: int, *mutations: str) -> HostTopk:
    """The host build of one wave size, with a cluster of two blocks alone."""
    return HostTopk(only(topk_plan(), [LABEL.replace("_t", "_indices_t")]), wave, frozenset(mutations))


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("mutation", CLUSTER_BUGS)
def test_defects_are_rejected(wave: int, mutation: str) -> None:
    assert cluster_host(wave).failures(CASES) == []
    assert cluster_host(wave, mutation).failures(CASES)
