"""Shipped indexer_logits modules against the reference, on Triton's interpreter."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dsv4gen.base.errors import ArgumentError
from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference.indexer_logits_cases import GARBAGE, build_case, verification_cases
from tests.indexer_logits import checks
from tests.indexer_logits.checks import RAGGED, SMALL, STEP, run
from tests.indexer_logits.modules import module, plan

TARGET = "sm_90"


@pytest.mark.parametrize("check", checks.CHECKS.values(), ids=checks.CHECKS)
def test_checks(worker: InterpreterWorker, check: checks.Check) -> None:
    check(worker, module(TARGET))


@pytest.mark.parametrize("target", ["gfx90a", "gfx942"])
def test_checks_of_other_texts(worker: InterpreterWorker, target: str) -> None:
    """Without any FP8 of the target's own, and with the other dialect."""
    for name in ("ordinary", "invalid_pages"):
        checks.CHECKS[name](worker, module(target))


@pytest.mark.parametrize(("target", "dialect"), [("gfx950", "e4m3fn"), ("gfx942", "e4m3fnuz")])
def test_native_conversion(worker: InterpreterWorker, target: str, dialect: str) -> None:
    """The launch functions avoid it under the interpreter; what ships uses it where the dialect is the target's."""
    run(worker, module(target, native=True), build_case(STEP, dialect=dialect, query_dialect="e4m3fn", tile=SMALL))


@pytest.mark.parametrize("name", plan(TARGET).hazards)
def test_every_hazard_of_the_spec(worker: InterpreterWorker, name: str) -> None:
    for shape in (STEP, RAGGED):
        run(worker, module(TARGET), build_case(shape, names=(name,), tail="minus_inf", seed=3, tile=SMALL))


@pytest.mark.parametrize("shape", plan(TARGET).test_shapes, ids=lambda shape: "-".join(map(str, shape.values())))
def test_shapes_of_the_spec(worker: InterpreterWorker, shape: dict[str, int]) -> None:
    """The module's own tiles: any number of heads, keys and rows."""
    run(worker, module(TARGET), build_case(shape, names=GARBAGE, tail="minus_inf"))


@pytest.mark.parametrize("width", [1, 15, 16, 17, 31, 32, 33])
def test_widths_around_a_block(worker: InterpreterWorker, width: int) -> None:
    for shape in (STEP, RAGGED):
        run(worker, module(TARGET), build_case({**shape, "width": width}, tail="minus_inf", tile=SMALL))


@pytest.mark.parametrize("block_r", [1, 2, 4])
def test_rows_of_a_program(worker: InterpreterWorker, block_r: int) -> None:
    for shape in (STEP, RAGGED):
        run(worker, module(TARGET), build_case(shape, tail="minus_inf", tile=[block_r, 16, 2, 4, 1]))


def test_verification_cases_run(worker: InterpreterWorker) -> None:
    for case in verification_cases(full=False):
        run(worker, module(TARGET), case)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dialect": "e4m3"}, "no such dialect"),
        ({"query_dialect": "e5m2"}, "no such query_dialect"),
        ({"sums": "exact"}, "no such sums"),
        ({"tail": "zero"}, "no such tail"),
        ({"page_size": 9}, "too few for 14 pages of 9 tokens"),
        ({"cache": torch.zeros(4, 3000, dtype=torch.uint8)[:, 8:1064]}, "not aligned"),
        ({"row_lens": torch.zeros(2, 3, dtype=torch.int32)}, "given twice or not at all"),
        ({"seq_lens": None}, "given twice or not at all"),
    ],
)
def test_refusals(worker: InterpreterWorker, change: dict[str, object], message: str) -> None:
    arguments: dict[str, Any] = {**build_case(STEP).arguments, **change}
    with pytest.raises(ArgumentError, match=message):
        worker.call(module(TARGET), "decode", **arguments)
