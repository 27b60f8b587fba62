"""Shipped sparse_decode modules against the reference, on Triton's interpreter."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dsv4gen.base.errors import ArgumentError
from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference.sparse_decode_cases import SCALE, build_case, verification_cases
from tests.sparse_decode import checks
from tests.sparse_decode.checks import DUAL, SHAPE, SMALL, run, split_case
from tests.sparse_decode.modules import module, plan

TARGET = "sm_90"
#: what the targets' texts do not share: words; no branch; a code at a time, without and with a native dialect;
#: products in quarters
OF_THE_TEXT = {
    "gfx1250": ("ordinary", "invalid_indices", "two_scopes", "scales"),
    "sm_80": ("ordinary", "two_scopes"),
    "gfx942": ("ordinary", "invalid_indices", "two_scopes", "scales", "far_pages"),
    "gfx1201": ("two_scopes", "masked_blocks"),
}
GARBAGE = ("index_minus_one", "index_past_end", "index_garbage", "length_zero", "length_above_width")


@pytest.mark.parametrize("check", checks.CHECKS.values(), ids=checks.CHECKS)
def test_checks(worker: InterpreterWorker, check: checks.Check) -> None:
    check(worker, module(TARGET))


@pytest.mark.parametrize(
    ("target", "name"), [(target, name) for target, names in OF_THE_TEXT.items() for name in names]
)
def test_checks_of_other_texts(worker: InterpreterWorker, target: str, name: str) -> None:
    checks.CHECKS[name](worker, module(target))


@pytest.mark.parametrize(("target", "dialect"), [("gfx950", "e4m3fn"), ("gfx942", "e4m3fnuz")])
def test_native_conversion(worker: InterpreterWorker, target: str, dialect: str) -> None:
    """The launch functions avoid it under the interpreter; what ships uses it where the dialects agree."""
    for extra in ("e4m3fn", "e4m3fnuz"):
        case = build_case(DUAL, dialect=dialect, extra_dialect=extra, splits=1, tile=SMALL)
        run(worker, module(target, native=True), case)


@pytest.mark.parametrize("name", plan(TARGET).hazards)
def test_every_hazard_of_the_spec(worker: InterpreterWorker, name: str) -> None:
    run(worker, module(TARGET), build_case(DUAL, names=(name,), seed=3, splits=1, tile=SMALL))


@pytest.mark.parametrize("shape", plan(TARGET).test_shapes, ids=lambda shape: "-".join(map(str, shape.values())))
def test_shapes_of_the_spec(worker: InterpreterWorker, shape: dict[str, int]) -> None:
    """The module's own tiles: any number of heads and keys."""
    run(worker, module(TARGET), build_case(shape, names=GARBAGE, dialect="e4m3fnuz", splits=1))


@pytest.mark.parametrize("heads", [1, 8, 16, 20])
def test_few_heads_with_either_order_of_the_products(worker: InterpreterWorker, heads: int) -> None:
    for block_h in (8, 16):
        case = build_case({**DUAL, "heads": heads}, names=GARBAGE, splits=1, tile=[block_h, 16, 4, 1])
        run(worker, module(TARGET), case)


@pytest.mark.parametrize("queries", [1, 2, 4])
def test_queries_share_a_length(worker: InterpreterWorker, queries: int) -> None:
    run(worker, module(TARGET), build_case({**DUAL, "tokens": 5, "queries": queries}, splits=1, tile=SMALL))


@pytest.mark.parametrize("extra", [0, 1, 31, 33, 65])
def test_boundary_lengths(worker: InterpreterWorker, extra: int) -> None:
    shape = {**DUAL, "width": 32, "extra_width": extra, "extra_pages": 40}
    run(worker, module(TARGET), build_case(shape, names=GARBAGE, splits=1, tile=[16, 32, 4, 1]))


@pytest.mark.parametrize("parts", [2, 3, 4, 8, 11])
def test_parts_agree_with_the_reference(worker: InterpreterWorker, parts: int) -> None:
    for reduce in ("kernel", "last_arriver"):
        run(worker, module(TARGET), split_case(DUAL, parts, reduce, names=GARBAGE, extra_dialect="e4m3fnuz"))


def test_narrow_values(worker: InterpreterWorker) -> None:
    for parts in (1, 2):
        run(worker, module(TARGET), split_case({**DUAL, "value_width": 200}, parts, "kernel"))


def test_verification_cases_run(worker: InterpreterWorker) -> None:
    for case in verification_cases(full=False):
        run(worker, module(TARGET), case)


def test_parts_come_from_shapes_alone(worker: InterpreterWorker) -> None:
    def count(tokens: int, heads: int, keys: int, units: int = 132) -> object:
        return worker.call(module(TARGET), "split_count", tokens, heads, keys, 0, units)

    assert [count(tokens, 16, 640) for tokens in (0, 1, 16, 64, 128, 256)] == [20, 20, 8, 4, 2, 1]
    assert [count(tokens, 128, 640) for tokens in (1, 16, 64)] == [20, 4, 1]
    assert count(1, 16, 0) == 1
    assert count(256, 16, 65537) == 3


def test_token_ranges_bound_the_gathered_rows(worker: InterpreterWorker) -> None:
    ranges = worker.call(module(TARGET), "token_ranges", 2000, 1152)
    assert ranges == [[0, 1820], [1820, 2000]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": 0.0}, "scale is 0.0"),
        ({"scale": float("nan")}, "scale is nan"),
        ({"sink": torch.zeros(5, dtype=torch.bfloat16)}, "sink: torch.bfloat16"),
        ({"sink": torch.zeros(4)}, r"sink: torch.float32 \[4\]"),
        ({"dialect": "e4m3"}, "no such FP8 dialect"),
        ({"page_size": 6}, "too few for 3 pages of 6 tokens"),
        ({"cache": torch.zeros(4, 3000, dtype=torch.uint8)[:, 8:2928]}, "not aligned"),
    ],
)
def test_refusals(worker: InterpreterWorker, change: dict[str, object], message: str) -> None:
    arguments: dict[str, Any] = {**build_case(SHAPE, splits=1).arguments, **change}
    with pytest.raises(ArgumentError, match=message):
        worker.call(module(TARGET), "attend", **arguments)


def test_scale_of_the_recipe() -> None:
    assert pytest.approx(0.0323, abs=1e-4) == SCALE
