"""Few scores tied around rank k: how they are ranked depends on their number, and short rows write entries at once."""

from __future__ import annotations

from functools import lru_cache

import pytest
import torch
from torch import Tensor

from dsv4gen.plan.make import make_plan
from dsv4gen.reference.topk import Rules
from dsv4gen.reference.topk_cases import ORDERS, Case
from dsv4gen.reference.topk_scores import SCORES, Draw, Maker
from dsv4gen.target import resolve_target
from tests.topk.host import WAVES, HostTopk, only, topk_specs

#: around the warps of a block (8, 16 and 32), what threads rank (64), and what is ranked at all (128)
TIED = (1, 2, 3, 8, 9, 16, 17, 32, 33, 63, 64, 65, 127, 128, 129)
K = 300
KERNELS = ("topk_short2_t512", "topk_short4_t256", "topk_t256", "topk_cluster2_t1024")
TIE_BUGS = ("one_page_assumed", "equal_ranks")
SYMBOLS = [name.replace("_t", f"_{mode}_t") for name in KERNELS for mode in ("page_table", "dual", "indices")]


def tied(count: int) -> Maker:
    """Half of `count` scores of one bin win, after larger ones; each value comes twice."""

    def make(draw: Draw) -> Tensor:
        above = draw.k - (count + 1) // 2
        scores = -1 - draw.uniform()
        scores[:above] = 2 + draw.uniform()[:above]
        scores[above : above + count] = 1 + torch.arange(count).div(2, rounding_mode="floor") * 2.0**-23
        return scores[draw.places(draw.length)]

    return make


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    for count in TIED:
        monkeypatch.setitem(SCORES, f"tied_{count}", tied(count))


@lru_cache(maxsize=6)
def host(wave: int, *mutations: str) -> HostTopk:
    """Kernels as they ship on a target with clusters."""
    specs = topk_specs()
    plan = make_plan(specs.families["topk"], resolve_target(specs, "sm_90"))
    return HostTopk(only(plan, SYMBOLS), wave, frozenset(mutations))


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_number_of_tied_scores(wave: int, kernel: str) -> None:
    """Pages of one to 64 scores: where a page has fewer than four, the scores of a load have several."""
    length = {"topk_short2_t512": 4093, "topk_short4_t256": 4001, "topk_t256": 5000}.get(kernel, 20001)
    cases = [
        Case(kernel, f"tied_{count}", length, K, mode, tail="inf", head=i % 4, page_bits=bits, order=ORDERS[i % 4])
        for i, count in enumerate(TIED)
        for mode, bits in (("page_table", i % 4), ("page_table", 6), ("indices", 0), ("dual", 2))
    ]
    assert host(wave).failures(cases) == []


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("rules", [Rules("low"), Rules("high"), Rules(sorted="index")], ids=str)
def test_with_rules(wave: int, rules: Rules) -> None:
    """Equal scores are told apart by position, whoever ranks them."""
    cases = [
        Case(kernel, f"tied_{count}", 4000, K, "page_table", page_bits=6, order=ORDERS[count % 4], rules=rules)
        for kernel in ("topk_short2_t512", "topk_t256")
        for count in (3, 16, 17, 64, 65, 128, 129)
    ]
    assert host(wave).failures(cases) == []


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("mutation", TIE_BUGS)
def test_defects_are_rejected(wave: int, mutation: str) -> None:
    cases = [
        Case("topk_short2_t512", f"tied_{count}", 4000, K, "page_table", page_bits=bits)
        for count in (9, 33)
        for bits in (0, 1)
    ]
    assert host(wave).failures(cases) == []
    assert host(wave, mutation).failures(cases)
