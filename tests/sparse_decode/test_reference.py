"""The reference itself: rules at the edges, figures worked out by hand, and splits that agree with the whole."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from dsv4gen.base.errors import VerifyError
from dsv4gen.reference.sparse_decode import attend_rows, merge_lse, sink_factor, token_ranges
from dsv4gen.reference.sparse_decode_cases import NAN_BYTE, build_case
from tests.sparse_decode.checks import ramp_rows

SHAPE = {"tokens": 3, "heads": 4, "width": 9, "page_size": 5}


def random_problem(tokens: int, heads: int, width: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(width)
    q = torch.randn(tokens, heads, 512, generator=generator).bfloat16()
    rows = (torch.randn(tokens, width, 512, generator=generator) / 8).bfloat16()
    return q, rows, torch.rand(tokens, width, generator=generator) < 0.4


def test_bl18_first_block_masked() -> None:
    q, rows = ramp_rows(16)
    padded = torch.cat([torch.full((1, 16, 512), torch.nan).bfloat16(), rows], dim=1)
    mask = torch.arange(32)[None] < 16
    out, lse = attend_rows(q, padded, mask, scale=1.0)
    assert lse.item() == pytest.approx(15.458675, abs=1e-6)
    assert out[0, 0, -1].item() == pytest.approx(14.418025, abs=1e-6)


def test_bl19_nothing_valid() -> None:
    q, rows, mask = random_problem(3, 4, 7)
    mask[1] = True
    for sink in (None, torch.tensor([0.0, torch.inf, -torch.inf, 3.0])):
        out, lse = attend_rows(q, rows, mask, scale=0.1, sink=sink)
        assert torch.equal(out[1], torch.zeros(4, 512, dtype=torch.float64))
        assert torch.equal(lse[1], torch.full((4,), torch.inf, dtype=torch.float64))
        assert torch.isfinite(out).all() and torch.isfinite(lse[[0, 2]]).all()


@pytest.mark.parametrize("splits", [1, 2, 3, 5, 8, 20])
@pytest.mark.parametrize("sink", [None, 0.0, 1.0, -50.0, 50.0, 88.8, torch.inf, -torch.inf])
def test_merged_splits_equal_the_whole(splits: int, sink: float | None) -> None:
    q, rows, mask = random_problem(2, 3, 13)
    mask[0, :8] = True
    logits = None if sink is None else torch.full((3,), sink)
    whole = attend_rows(q, rows, mask, scale=0.2, sink=logits)
    cuts = torch.tensor_split(torch.arange(13), splits)
    parts = [attend_rows(q, rows[:, cut], mask[:, cut], scale=0.2) for cut in cuts]
    merged = merge_lse(torch.stack([o for o, _ in parts]), torch.stack([m for _, m in parts]), sink=logits)
    for found, expected in zip(merged, whole, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_merge_of_empty_parts() -> None:
    parts = torch.full((3, 1, 1, 8), torch.nan)
    lses = torch.tensor([torch.inf, -torch.inf, torch.inf]).view(3, 1, 1)
    out, lse = merge_lse(parts, lses)
    assert torch.equal(out, torch.zeros(1, 1, 8, dtype=torch.float64)) and lse.item() == math.inf


def test_sink_factor_survives_every_sink() -> None:
    lse = torch.tensor([0.0, -60000.0, 5.0, 5.0, 5.0, 5.0])
    sink = torch.tensor([0.0, 0.0, torch.inf, -torch.inf, 3.4e38, -3.4e38])
    assert sink_factor(lse, sink).tolist() == [0.5, 0.0, 0.0, 1.0, 0.0, 1.0]


def test_unselected_slots_are_nan_and_results_are_not() -> None:
    case = build_case({**SHAPE, "width": 2, "pages": 9}, names=("index_minus_one", "length_zero"))
    cache = case.arguments["cache"]
    assert isinstance(cache, torch.Tensor)
    assert (cache == NAN_BYTE).sum() > cache.numel() / 2
    assert torch.isfinite(case.expected_out).all()
    assert (case.expected_lse == torch.inf).any()


def test_the_judge_sees_each_output() -> None:
    case = build_case(SHAPE)
    case.out.tensor.copy_(case.expected_out)
    case.lse.tensor.copy_(case.expected_lse)
    case.check()
    finite = int(torch.isfinite(case.lse.tensor).flatten().nonzero()[0])
    case.lse.tensor.view(-1)[finite] += 0.5
    with pytest.raises(VerifyError, match="lse"):
        case.check()
    case.lse.tensor.copy_(case.expected_lse)
    case.out.tensor[0, 0, 0] += 0.5
    with pytest.raises(VerifyError, match="out"):
        case.check()


@pytest.mark.parametrize(("width", "first"), [(192, 10922), (640, 3276), (1152, 1820), (8320, 252)])
def test_token_ranges_of_the_contract(width: int, first: int) -> None:
    ranges = token_ranges(20000, 1024 * width)
    assert ranges[0] == (0, first)
    assert ranges[-1][1] == 20000
    assert all(end == start for (_, end), (start, _) in itertools.pairwise(ranges))
