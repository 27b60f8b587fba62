"""The reference itself: figures worked out by hand, rules at the edges, and a judge that sees every mistake."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import dsv4gen
from dsv4gen.base.errors import ArgumentError, VerifyError
from dsv4gen.reference import fp8
from dsv4gen.reference.indexer_logits import decode, load_keys, prefill
from dsv4gen.reference.indexer_logits_cases import build_case, check_logits
from tests.indexer_logits.checks import STEP

#: e4m3fn codes of 1, -1 and 2
ONE, MINUS_ONE, TWO = 0x38, 0xB8, 0x40


def small_pool() -> torch.Tensor:
    """Two pages of two tokens: keys of 1, 2 | -1, 1 with scales 0.5, 1 | 2, 4."""
    pool = torch.zeros(2, 272, dtype=torch.uint8)
    for page, (codes, scales) in enumerate((((ONE, TWO), (0.5, 1.0)), ((MINUS_ONE, ONE), (2.0, 4.0)))):
        pool[page, :256] = torch.tensor(codes, dtype=torch.uint8).repeat_interleave(128)
        pool[page, 256:264] = torch.tensor(scales).view(torch.uint8)
    return pool


def test_figures_by_hand() -> None:
    """Head 0 is 1 everywhere, head 1 is -1: each key passes the relu of one head only; its weight has a sign."""
    q = torch.tensor([ONE, MINUS_ONE], dtype=torch.uint8)[None, None, :, None].expand(1, 1, 2, 128)
    out = torch.zeros(1, 4, dtype=torch.float64)
    table = torch.tensor([[1, 0]], dtype=torch.int32)
    lens = torch.tensor([4], dtype=torch.int32)
    decode(q, torch.tensor([[0.25, -3.0]]), small_pool(), table, out, page_size=2, seq_lens=lens)
    # key -1: head 1 alone, 128 * -3 * 2; key 1: 128 * 0.25 * 4; key 1: 128 * 0.25 * 0.5; key 2: 256 * 0.25
    assert out.tolist() == [[-768.0, 128.0, 16.0, 64.0]]


def test_each_query_sees_one_key_more() -> None:
    out = torch.full((3, 4), 9.0, dtype=torch.float64)
    q = torch.full((1, 3, 1, 128), ONE, dtype=torch.uint8)
    table = torch.tensor([[0, 1]], dtype=torch.int32)
    lens = torch.tensor([2], dtype=torch.int32)
    decode(q, torch.ones(3, 1), small_pool(), table, out, page_size=2, seq_lens=lens)
    assert out.tolist() == [[9.0] * 4, [64.0, 9.0, 9.0, 9.0], [64.0, 256.0, 9.0, 9.0]]


@pytest.mark.parametrize("page", [-1, -(2**31), 2, 2**31 - 1])
def test_keys_without_a_page_are_minus_infinity(page: int) -> None:
    out = torch.zeros(1, 6, dtype=torch.float64)
    q = torch.full((1, 1, 128), ONE, dtype=torch.uint8)
    table = torch.tensor([[page, 1]], dtype=torch.int32)
    requests, lens = torch.zeros(1, dtype=torch.int32), torch.tensor([6], dtype=torch.int32)
    prefill(q, torch.ones(1, 1), small_pool(), table, requests, lens, out, page_size=2)
    assert out.tolist() == [[-torch.inf, -torch.inf, 0.0, 512.0, -torch.inf, -torch.inf]]


def test_rows_of_no_request_see_nothing() -> None:
    out = torch.zeros(2, 2, dtype=torch.float64)
    q = torch.full((2, 1, 128), ONE, dtype=torch.uint8)
    table, lens = torch.zeros(1, 1, dtype=torch.int32), torch.full((2,), 2, dtype=torch.int32)
    requests = torch.tensor([-1, 1], dtype=torch.int32)
    prefill(q, torch.ones(2, 1), small_pool(), table, requests, lens, out, page_size=2, tail="minus_inf")
    assert bool(torch.isneginf(out).all())


def test_the_dialect_is_the_caches() -> None:
    pool = small_pool()
    first, _, _ = load_keys(pool, 2, torch.tensor([0]), 2, "e4m3fn")
    second, _, _ = load_keys(pool, 2, torch.tensor([0]), 2, "e4m3fnuz")
    assert torch.equal(first, 2 * second)
    assert first[0, 0] == fp8.decode(torch.tensor([ONE]), fp8.E4M3FN)


def test_the_judge_sees_each_mistake() -> None:
    case = build_case(STEP, names=("index_minus_one",), tail="minus_inf")
    case.out.tensor.copy_(case.expected)
    case.check()
    finite = torch.isfinite(case.expected).nonzero()[0].tolist()
    infinite = torch.isneginf(case.expected).nonzero()[0].tolist()
    for place, value in ((finite, float(case.expected[tuple(finite)]) + 1e-3), (infinite, 0.0), (finite, torch.nan)):
        case.out.tensor.copy_(case.expected)
        case.out.tensor[tuple(place)] = value
        with pytest.raises(VerifyError, match="outside the tolerance"):
            case.check()


def test_the_judge_sees_stray_writes() -> None:
    case = build_case(STEP, names=("poisoned_tail",))
    case.out.tensor.copy_(torch.where(case.written, case.expected, case.out.tensor.double()))
    case.check()
    hidden = (~case.written).nonzero()[0].tolist()
    case.out.tensor[tuple(hidden)] = -torch.inf
    with pytest.raises(VerifyError, match="left alone"):
        case.check()


def test_the_tolerance_is_the_contracts() -> None:
    expected, written = torch.tensor([[10.0]], dtype=torch.float64), torch.ones(1, 1, dtype=torch.bool)
    check_logits(torch.tensor([[10.0001]]), expected, written, name="logits")
    with pytest.raises(VerifyError):
        check_logits(torch.tensor([[10.0003]]), expected, written, name="logits")


def loaded_arguments() -> dict[str, Any]:
    """A decode step of two requests over pages of 64 keys."""
    return {
        "q": torch.zeros(2, 1, 64, 128, dtype=torch.uint8),
        "weights": torch.ones(2, 64),
        "cache": torch.zeros(4, 132 * 64, dtype=torch.uint8),
        "page_table": torch.tensor([[0, 1], [-1, 99]], dtype=torch.int32),
        "seq_lens": torch.tensor([5, 3], dtype=torch.int32),
    }


def test_the_reference_target_takes_the_page_size() -> None:
    """Sizes that only the bounds of another size read are arguments too, through torch's dispatcher as well."""
    op = dsv4gen.load("indexer_logits", target="reference", tail="minus_inf").op("decode")
    out = op(**loaded_arguments(), page_size=64, width=8)
    assert torch.isfinite(out).sum(1).tolist() == [5, 0]
    through_torch = torch.full_like(out, 7.0)
    op.torch_op(**loaded_arguments(), page_size=64, out=through_torch)
    assert torch.equal(through_torch, out)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"page_size": None}, "page_size is missing"),
        ({"page_size": 65}, "page_bytes=8448 is outside 8580..8650752"),
        ({"q": None}, "q is missing"),
        ({"q": [1]}, "q is a list, not a tensor"),
    ],
)
def test_the_reference_target_refuses(change: dict[str, Any], message: str) -> None:
    op = dsv4gen.load("indexer_logits", target="reference").op("decode")
    with pytest.raises(ArgumentError, match=message):
        op(**{**loaded_arguments(), "out": torch.zeros(2, 8), "page_size": 64, **change})
