"""Each comparator accepts what it should and rejects a planted difference."""

from __future__ import annotations

import pytest
import torch

from dsv4gen.base.errors import VerifyError
from dsv4gen.reference import compare

NAN, INF = float("nan"), float("inf")


def changed(tensor: torch.Tensor, position: int, value: float) -> torch.Tensor:
    other = tensor.clone()
    other.view(-1)[position] = value
    return other


def test_exact_sees_the_sign_of_zero_and_names_the_place() -> None:
    expected = torch.zeros(2, 3)
    compare.check_exact(expected.clone(), expected, name="out")
    with pytest.raises(VerifyError, match=r"out: 1 of 6 elements not bit-exact; first at \[1, 1\]: -0.0"):
        compare.check_exact(changed(expected, 4, -0.0), expected, name="out")


def test_exact_treats_nan_as_equal_unless_payloads_count() -> None:
    quiet = torch.tensor([0x7FC0, 0x7FC1], dtype=torch.int16).view(torch.bfloat16)
    other = torch.tensor([0x7FC2, 0x7FC1], dtype=torch.int16).view(torch.bfloat16)
    compare.check_exact(quiet, other, name="out")
    with pytest.raises(VerifyError):
        compare.check_exact(quiet, other, name="out", nan_payload=True)
    with pytest.raises(VerifyError):
        compare.check_exact(quiet, torch.ones(2, dtype=torch.bfloat16), name="out")


def test_exact_refuses_another_shape_or_dtype() -> None:
    with pytest.raises(VerifyError, match="expected"):
        compare.check_exact(torch.zeros(2), torch.zeros(3), name="out")
    with pytest.raises(VerifyError, match="int64"):
        compare.check_exact(torch.zeros(2, dtype=torch.int64), torch.zeros(2), name="out")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_ulp_counts_across_zero_and_the_subnormals(dtype: torch.dtype) -> None:
    patterns = torch.arange(-3, 4)
    sign_bit = -(1 << (8 * torch.empty((), dtype=dtype).element_size() - 1))
    raw = torch.where(patterns < 0, sign_bit - patterns, patterns)
    values = raw.to({2: torch.int16, 4: torch.int32}[torch.empty((), dtype=dtype).element_size()]).view(dtype)
    distance = compare.ulp_distance(values, torch.zeros(7, dtype=dtype))
    assert distance.tolist() == [3, 2, 1, 0, 1, 2, 3]
    compare.check_ulp(values[:-1], values[1:], 1, name="out")
    with pytest.raises(VerifyError, match="more than 1 ulp"):
        compare.check_ulp(values[:-2], values[2:], 1, name="out")


def test_ulp_never_equates_infinity_with_the_largest_number() -> None:
    largest = torch.tensor([torch.finfo(torch.float16).max], dtype=torch.float16)
    infinite = torch.tensor([INF], dtype=torch.float16)
    with pytest.raises(VerifyError):
        compare.check_ulp(infinite, largest, 4, name="out")
    compare.check_ulp(torch.tensor([NAN, INF]), torch.tensor([NAN, INF]), 0, name="out")


def test_attention_rule() -> None:
    expected = torch.randn(64, 64, generator=torch.Generator().manual_seed(3)).bfloat16()
    compare.check_attention(expected * 1.001, expected)
    with pytest.raises(VerifyError, match="outside the tolerance"):
        compare.check_attention(changed(expected, 7, 9.0), expected)
    with pytest.raises(VerifyError, match="cosine"):
        compare.check_attention(torch.full((64, 64), 9e-4), torch.zeros(64, 64))
    with pytest.raises(VerifyError):
        compare.check_attention(changed(expected, 7, NAN), expected)


def test_lse_rule_wants_infinities_in_place() -> None:
    expected = torch.tensor([INF, 2.0, 15.458675])
    compare.check_lse(torch.tensor([INF, 2.0002, 15.458675]), expected)
    for wrong in (
        [2.0, 2.0, 15.458675],
        [-INF, 2.0, 15.458675],
        [INF, 2.001, 15.458675],
        [NAN, 2.0, 15.458675],
    ):
        with pytest.raises(VerifyError):
            compare.check_lse(torch.tensor(wrong), expected)


def test_untouched_allows_only_what_is_marked() -> None:
    before = torch.full((4,), NAN)
    after = changed(before, 2, 1.0)
    with pytest.raises(VerifyError, match="written outside"):
        compare.check_untouched(after, before, name="out")
    compare.check_untouched(after, before, name="out", written=torch.tensor([False, False, True, False]))
