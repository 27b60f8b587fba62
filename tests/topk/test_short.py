"""Rows that registers are known to hold: every length around their ends, and rows that are longer after all."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest

from dsv4gen.plan.ir import FamilyPlan, Instance, Kernel
from dsv4gen.plan.make import make_plan
from dsv4gen.reference.topk import Rules
from dsv4gen.reference.topk_cases import ORDERS, Case
from dsv4gen.reference.topk_scores import SCORES
from dsv4gen.target import resolve_target
from tests.topk.host import WAVES, HostTopk, only, topk_plan, topk_specs

THREADS = 64
#: vectors of a thread, and so how many columns a block holds
HELD = {vectors: 4 * vectors * THREADS for vectors in (1, 2, 4)}
MISSING = "missing_validity"
#: labels of kernels as they ship, with each number of vectors and of threads
SHIPPED = ("short4_t256", "short2_t512", "short4_t1024")
#: rows in which what lies outside of the row would win
NANS = ("nan_all", "nan_4096", "fewer_numbers_than_k")


@lru_cache(maxsize=1)
def short_plan() -> FamilyPlan:
    """The plan with one small instance for each number of vectors, which streams rows that it does not hold."""
    plan = only(topk_plan(), ["topk_short2_indices_t512"])
    return replace(plan, kernels=tuple(map(_small, plan.kernels)))


def _small(kernel: Kernel) -> Kernel:
    paths = tuple(path.name for path in kernel.row_paths)
    found = [replace(_with_vectors(one, vectors), row_paths=paths) for one in kernel.instances for vectors in HELD]
    return replace(kernel, instances=tuple(found))


def _with_vectors(instance: Instance, vectors: int) -> Instance:
    tile = {**instance.tile, "block_threads": THREADS, "row_vectors": vectors, "tie_capacity": 512}
    return replace(instance, symbol=f"topk_short{vectors}_indices_t{THREADS}", tile=tile, threads=THREADS)


@lru_cache(maxsize=4)
def short_host(wave: int, *mutations: str) -> HostTopk:
    """The host build of one wave size."""
    return HostTopk(short_plan(), wave, frozenset(mutations))


def label(vectors: int) -> str:
    return f"topk_short{vectors}_t{THREADS}"


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("vectors", HELD)
def test_lengths_around_the_end(wave: int, vectors: int) -> None:
    """At every alignment; `width` is five columns more, and columns outside of the row hold NaN or what would win."""
    cases = [
        Case(label(vectors), scores, HELD[vectors] + step, 60, tail=tail, head=head, order=ORDERS[head])
        for step in (-5, -4, -3, -1, 0, 1, 3, 4)
        for head in range(4)
        for scores, tail in (("normal", "inf"), ("nan_1", "nan"), ("ascending", "1e30"))
    ]
    assert short_host(wave).failures(cases) == []


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("vectors", HELD)
def test_every_kind_of_scores(wave: int, vectors: int) -> None:
    """Rows of each remainder, misaligned too; rows of up to k columns; rows that do not fit."""
    lengths = (*(HELD[vectors] - less for less in (0, 1, 2, 3, 77)), 60, 61, HELD[vectors] * 2 + 1, 5000)
    cases = [
        Case(label(vectors), scores, length, k, head=(i + j) % 4, order=ORDERS[(i + j) % 4])
        for i, scores in enumerate(SCORES)
        for j, (length, k) in enumerate(zip(lengths[i % 3 :: 3], (7, 60, 2048), strict=True))
    ]
    assert short_host(wave).failures(cases) == []


@pytest.mark.parametrize("wave", WAVES)
def test_plateaus_and_nan_with_rules(wave: int) -> None:
    rules = (Rules("low", "drop", "index"), Rules("high"), Rules("none", "drop"))
    cases = [
        Case(label(2), scores, length, 100, head=i % 2, order=ORDERS[i % 4], rules=rule)
        for i, scores in enumerate((*NANS, "all_equal", "mixed_zeros", "eight_values", "sparse_zeros"))
        for length in (HELD[2], 411)
        for rule in rules
    ]
    assert short_host(wave).failures(cases) == []


@pytest.mark.parametrize("wave", WAVES)
def test_columns_outside_of_a_row_would_win(wave: int) -> None:
    cases = [Case(label(2), scores, 411, 400, order=order) for scores in NANS for order in ORDERS]
    assert short_host(wave).failures(cases) == []
    assert short_host(wave, MISSING).failures(cases)


@lru_cache(maxsize=2)
def shipped_host(wave: int) -> HostTopk:
    """Kernels as they ship, one for each number of vectors and of threads."""
    specs = topk_specs()
    plan = make_plan(specs.families["topk"], resolve_target(specs, "sm_90"))
    return HostTopk(only(plan, [f"topk_{label.replace('_', '_dual_')}" for label in SHIPPED]), wave)


def test_what_ships_holds_every_row_that_is_launched() -> None:
    """No launch reaches a longer row or a window, so neither has code."""
    shipped, streaming = shipped_host(32).text, short_host(32).text
    for instance in shipped_host(32).instances.values():
        assert instance.row_paths == ("trivial", "short")
    assert "RowPath::streaming, row_at" not in shipped[shipped.index("select_short_row") :]
    assert "RowPath::streaming, row_at" in streaming[streaming.index("select_short_row") :]


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("shipped", SHIPPED)
def test_shipped_kernels_around_their_end(wave: int, shipped: str) -> None:
    vectors, threads = map(int, shipped.removeprefix("short").split("_t"))
    held = 4 * vectors * threads
    cases = [
        Case(f"topk_{shipped}", scores, length, k, "dual", tail=tail, head=head, order=ORDERS[head])
        for head, (length, k) in enumerate(((held, 512), (held - 1, 2048), (held - 3, 7), (513, 512)))
        for scores, tail in (("normal", "inf"), ("nan_1", "nan"), ("all_equal", "1e30"))
    ]
    assert shipped_host(wave).failures(cases) == []
