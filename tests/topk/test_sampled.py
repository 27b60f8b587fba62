"""Rows that are sampled: exact whatever the sample says, and read once where it says what is usual."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from dsv4gen.base.errors import EmulationError, VerifyError
from dsv4gen.reference.topk import ANY, Rules
from dsv4gen.reference.topk_cases import ORDERS, Case
from dsv4gen.reference.topk_scores import SCORES, make_scores
from tests.topk.host import WAVES, HostTopk, only, topk_plan
from tests.topk.sampled import (
    LABEL,
    LENGTH,
    POOL,
    PROPOSING,
    THREADS,
    problem_of,
    row_of,
    sampled_columns,
    sampled_host,
)

K = 32
#: candidates: too few, just enough, as many as have room, one too many
COUNTS = {K - 1: False, K: True, POOL: True, POOL + 1: False}
#: candidates are taken as complete
BLIND = ("pool_unchecked",)
SAMPLE_BUGS = (*BLIND, "plateau_thinned", "no_margin")
#: plateaus whose border lies in the row's middle
PLATEAUS = ("all_equal", "zeros_60", "eight_values", "sparse_zeros")


def fails(host: HostTopk, row: Tensor, k: int = K, order: str = "ascending", rules: Rules = ANY) -> bool:
    try:
        problem = problem_of(row, k, order, rules)
        host.launch(problem)
        problem.check()
    except (EmulationError, VerifyError):
        return True
    return False


@pytest.mark.parametrize("wave", WAVES)
def test_candidates_are_complete_or_the_row_is_read_again(wave: int) -> None:
    """Candidates that are taken as they are show where, and only where, they are too few or too many."""
    for count, complete in COUNTS.items():
        row = row_of(count, PROPOSING)
        assert not fails(sampled_host(wave), row)
        assert fails(sampled_host(wave, "pool_unchecked"), row) != complete, count


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("k", [1, 7, K, POOL - 56, 511])
def test_samples_that_mislead(wave: int, k: int) -> None:
    """The largest scores only where the sample looks, or only where it does not; those of a run, and rows in order."""
    seen = sampled_columns()
    normal = torch.randn(LENGTH, generator=torch.Generator().manual_seed(k))
    rows = [torch.where(seen, normal + 50, normal), torch.where(seen, normal, normal + 50)]
    rows += [make_scores(name, LENGTH, k, 1) for name in ("winners_in_a_run", "ascending", "descending")]
    for row, order in zip(rows, (*ORDERS, "ascending"), strict=True):
        assert not fails(sampled_host(wave), row, k, order)


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("head", range(4))
def test_every_kind_of_scores(wave: int, head: int) -> None:
    """Rows that begin and end anywhere; the shortest one that is sampled, and the last that is not."""
    shortest = 8 * 4 * THREADS - head + 1
    lengths = (shortest - 1, shortest, shortest + 1, shortest + 2, 3333 + head, LENGTH)
    cases = [
        Case(LABEL, scores, lengths[(i + head) % 6], (7, K, 200, 512)[i % 4], head=head, order=ORDERS[i // 3 % 4])
        for i, scores in enumerate(SCORES)
    ]
    assert sampled_host(wave).failures(cases) == []


@pytest.mark.parametrize("wave", WAVES)
def test_usual_rows_are_read_once(wave: int) -> None:
    """Thanks to the margin, without which the floor is too high for many rows: candidates taken as they are tell."""
    rows = [make_scores("normal", LENGTH, K, seed) for seed in range(20)]
    again = [sum(fails(sampled_host(wave, *bugs), row) for row in rows) for bugs in (BLIND, (*BLIND, "no_margin"))]
    assert again[0] == 0 < again[1]


@pytest.mark.parametrize("wave", WAVES)
def test_plateaus_keep_all_that_may_win(wave: int) -> None:
    """With `tie_break` a plateau is not thinned."""
    rules = Rules(tie_break="high")
    rows = [make_scores(name, LENGTH, K, 1) for name in PLATEAUS]
    for order in ORDERS:
        assert not any(fails(sampled_host(wave), row, K, order, rule) for row in rows for rule in (ANY, rules))
    assert any(fails(sampled_host(wave, "plateau_thinned"), row, K, "random:1", rules) for row in rows)


#: rows of the largest k: none of the sampled lines has a winner, and more tie with the border than have room
LONG = ("winners_in_a_run", "winners_unsampled", "descending", "one_bin", "nan_4096", "zeros_95", "normal_20_3")


@pytest.mark.parametrize("wave", WAVES)
def test_shipped_tile_at_the_largest_k(wave: int) -> None:
    host = HostTopk(only(topk_plan(), ["topk_indices_t256"]), wave)
    cases = [Case("topk_t256", scores, 40_003, 2048, head=1, order=ORDERS[i % 4]) for i, scores in enumerate(LONG)]
    assert host.failures(cases) == []
