"""Rows of which every warp holds one value, or nearly: what warps note while they count, and what follows from it."""

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

K = 300
PLAIN = Rules()
STEP = 2.0**-23
#: around whole vectors, whole warps and the whole block, and rows of which some blocks of a cluster have nothing
LENGTHS = {
    "topk_short2_t512": (4096, 4095, 3969, 3968, 2500),
    "topk_short4_t256": (4096, 4093, 3585),
    "topk_t1024": (16384, 16381, 9000),
    "topk_cluster2_t1024": (32768, 32767, 20001, 16390),
}
#: where the scores that differ lie, as shares of the row
PLACES = {"first": (0.0,), "last": (1.0,), "middle": (0.5,), "everywhere": (0.0, 0.3, 0.5, 0.8, 1.0)}
PLATEAU_BUGS = ("plateau_remembered", "edges_ignored", "mixture_ignored")
SYMBOLS = [name.replace("_t", "_page_table_t") for name in LENGTHS]


def plateau(places: tuple[float, ...], steps: int) -> Maker:
    """Ones, but for single scores a few steps off, of the same bin."""

    def make(draw: Draw) -> Tensor:
        scores = torch.ones(draw.length)
        for number, place in enumerate(places):
            scores[round(place * (draw.length - 1))] = 1 + (steps + number) * STEP
        return scores

    return make


def halves(draw: Draw) -> Tensor:
    """Each half of the row is a plateau, and both are of one bin."""
    scores = torch.ones(draw.length)
    scores[: draw.length // 2] += 3 * STEP
    return scores


KINDS = {
    "plateau": plateau((), 0),
    **{f"plateau_{name}_{steps}": plateau(places, steps) for name, places in PLACES.items() for steps in (1, 5000)},
    "plateau_halves": halves,
}


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, make in KINDS.items():
        monkeypatch.setitem(SCORES, name, make)


@lru_cache(maxsize=6)
def host(wave: int, *mutations: str) -> HostTopk:
    """Kernels as they ship on a target with clusters."""
    specs = topk_specs()
    plan = make_plan(specs.families["topk"], resolve_target(specs, "sm_90"))
    return HostTopk(only(plan, SYMBOLS), wave, frozenset(mutations))


def cases(kernel: str, rules: Rules = PLAIN) -> list[Case]:
    given = {"tail": "inf", "page_bits": 6, "rules": rules}
    return [
        Case(kernel, kind, length, K, "page_table", head=i % 4, order=ORDERS[i % 4], **given)  # type: ignore[arg-type]
        for length in LENGTHS[kernel]
        for i, kind in enumerate(KINDS)
    ]


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("kernel", LENGTHS)
def test_values_that_differ_are_not_lost(wave: int, kernel: str) -> None:
    assert host(wave).failures(cases(kernel)) == []


@pytest.mark.parametrize("rules", [Rules("low"), Rules("high"), Rules(sorted="index")], ids=str)
def test_with_rules(rules: Rules) -> None:
    assert host(32).failures([*cases("topk_short4_t256", rules), *cases("topk_cluster2_t1024", rules)[::3]]) == []


@pytest.mark.parametrize("mutation", PLATEAU_BUGS)
def test_defects_are_rejected(mutation: str) -> None:
    """The two longest rows of a kernel suffice."""
    broken = host(32, mutation)
    assert any(broken.failures(cases(kernel)[: 2 * len(KINDS)]) for kernel in LENGTHS), mutation
