"""Rows that are sampled, with a tile so small that a few thousand columns are a long row."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import torch
from torch import Tensor

from dsv4gen.plan.ir import FamilyPlan, Kernel
from dsv4gen.reference.topk import ANY, Rules
from dsv4gen.reference.topk_cases import Case, Problem, bits_of, build_problem
from tests.topk.host import HostTopk, only, topk_plan

THREADS, POOL = 64, 256
LABEL = f"topk_t{THREADS}"
#: neighbouring vectors that are sampled together, and scores of a vector
LINE, VECTOR = 8, 4
#: past what registers hold, and an eighth of it that two rounds of vectors sample
LENGTH, SAMPLED = 4096, 512
#: scores above all others that make the sample propose a floor below them, and none lower
PROPOSING = 24


@lru_cache(maxsize=1)
def sampled_plan() -> FamilyPlan:
    """The plan with one small instance alone."""
    plan = only(topk_plan(), ["topk_indices_t256"])
    return replace(plan, kernels=tuple(map(_small, plan.kernels)))


def _small(kernel: Kernel) -> Kernel:
    tiles = {"block_threads": THREADS, "loads_in_flight": 2, "tie_capacity": 512, "pool_capacity": POOL}
    small = [
        replace(one, symbol=f"topk_indices_t{THREADS}", tile={**one.tile, **tiles}, threads=THREADS)
        for one in kernel.instances
    ]
    return replace(kernel, instances=tuple(small))


@lru_cache(maxsize=8)
def sampled_host(wave: int, *mutations: str) -> HostTopk:
    """The host build of one wave size."""
    return HostTopk(sampled_plan(), wave, frozenset(mutations))


def sampled_columns() -> Tensor:
    """Columns that the sample of an aligned row of LENGTH columns has, bool [LENGTH]."""
    lines = SAMPLED // (LINE * VECTOR)
    return torch.arange(LENGTH) % (LENGTH // lines) < LINE * VECTOR


def row_of(winners: int, proposing: int) -> Tensor:
    """So many scores that differ by little, the largest of the row, the best last; `proposing` of them sampled."""
    generator = torch.Generator().manual_seed(winners)
    row = torch.randn(LENGTH, generator=generator) - 9
    seen, unseen = (
        places[torch.randperm(len(places), generator=generator)]
        for places in (torch.nonzero(sampled_columns() == inside)[:, 0] for inside in (True, False))
    )
    places = torch.cat([seen[:proposing], unseen[: winners - proposing]]).sort().values
    row[places] = 5 + torch.arange(winners) * 2.0**-20
    return row


def problem_of(row: Tensor, k: int, order: str = "ascending", rules: Rules = ANY) -> Problem:
    """An aligned row of LENGTH columns."""
    problem = build_problem(Case(LABEL, "normal", LENGTH, k, order=order, rules=rules))
    problem.rows.valid(0).copy_(row)
    return replace(problem, scores_before=bits_of(problem.scores))
