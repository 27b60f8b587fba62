"""Attention over paged caches as machine code of five AMD GPUs, and planted defects in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dsv4gen.base.errors import EmulationError, VerifyError
from dsv4gen.emulate.triton import EmulatedWorker
from dsv4gen.reference.compare import check_exact
from dsv4gen.reference.sparse_decode_cases import Case, build_case, workspaces
from tests.emulated_triton.families import TARGETS, require_clean, run_family
from tests.sparse_decode.checks import CHECKS, DUAL, SHAPE, SMALL
from tests.sparse_decode.modules import module
from tests.tools import need_module

#: planted defect -> a check that must reject it
MUTATIONS = {
    "one_sided_check": "invalid_indices",
    "clamp_invalid": "invalid_indices",
    "unmasked_logits": "invalid_indices",
    "drop_length": "short_lengths",
    "offset_32bit": "far_pages",
    "unguarded_maximum": "masked_blocks",
    "merge_unguarded": "merge",
    "rows_unmasked": "gathered",
    "keep_counters": "last_arriver",
    "scale_by_shift": "scales",
}
GARBAGE = ("index_minus_one", "index_past_end", "index_garbage", "duplicate_index")


@pytest.fixture(scope="module", params=TARGETS)
def gpu(request: pytest.FixtureRequest) -> Iterator[EmulatedWorker]:
    need_module("triton")
    with EmulatedWorker(request.param, 32 if request.param.startswith("gfx1") else 64) as worker:
        yield worker


@pytest.fixture(scope="module")
def gfx950() -> Iterator[EmulatedWorker]:
    need_module("triton")
    with EmulatedWorker("gfx950", 64) as worker:
        yield worker


def target_of(worker: EmulatedWorker) -> str:
    """The worker's target."""
    return str(worker.describe()[1])


def run(worker: EmulatedWorker, case: Case) -> None:
    arguments: dict[str, Any] = dict(case.arguments)
    worker.call(module(target_of(worker)), case.op, **arguments)
    case.check()


@pytest.mark.parametrize("target", TARGETS)
def test_every_shipped_kernel_is_right(target: str) -> None:
    require_clean(run_family("sparse_decode", target))


@pytest.mark.parametrize("check", ["masked_blocks", "empty_rows", "last_arriver", "sinks", "scales", "far_pages"])
def test_checks_pass(gpu: EmulatedWorker, check: str) -> None:
    CHECKS[check](gpu, module(target_of(gpu)))


def test_extra_cases_of_the_contract(gpu: EmulatedWorker) -> None:
    """One key, 65 keys, any number of heads and of queries per row, every sink, lengths 0 and above the width."""
    for heads, width, queries, sink in (
        (1, 1, 1, "none"),
        (8, 65, 2, "finite"),
        (20, 65, 4, "mixed"),
        (64, 33, 1, "mixed"),
    ):
        shape = {**SHAPE, "heads": heads, "width": width, "queries": queries}
        names = (*GARBAGE, "length_zero", "length_above_width")
        run(gpu, build_case(shape, names=names, sink=sink, splits=1, seed=heads))


def test_repeated_runs_and_orders_agree_bit_by_bit(gpu: EmulatedWorker) -> None:
    for reduce in ("kernel", "last_arriver"):
        results = []
        for order in ("ascending", "ascending", "descending", "random:5"):
            room: dict[str, Any] = workspaces(DUAL["tokens"], DUAL["heads"], 3)
            case = build_case(DUAL, names=GARBAGE, splits=3, reduce=reduce, tile=SMALL, **room)
            gpu.order = order
            run(gpu, case)
            results.append((case.out.tensor.clone(), case.lse.tensor.clone()))
        gpu.order = "ascending"
        for outcome in results[1:]:
            for found, first in zip(outcome, results[0], strict=True):
                check_exact(found, first, name=f"{reduce}: another run")


@pytest.mark.parametrize(("mutation", "check"), MUTATIONS.items())
def test_defect_is_rejected(gfx950: EmulatedWorker, mutation: str, check: str) -> None:
    with pytest.raises((VerifyError, EmulationError)):
        CHECKS[check](gfx950, module("gfx950", mutation))
