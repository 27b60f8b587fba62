"""Comparators: exact, by units in the last place, and the contract's rule for attention.

Each returns nothing on success and raises VerifyError naming the tensor, how many elements differ and the
first that does.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dsv4gen.base.errors import VerifyError

_INTEGER_VIEW = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

#: FlashMLA's own test: an element passes by absolute or by relative error, the whole by cosine
ATTENTION_ABSOLUTE, ATTENTION_RELATIVE, ATTENTION_COSINE = 1e-3, 2.01 / 128, 5e-6
LSE_ABSOLUTE, LSE_RELATIVE = 1e-6, 8.01 / 65536
_RELATIVE_FLOOR = 1e-6


def bits(tensor: Tensor) -> Tensor:
    """The elements' bit patterns as integers, same shape."""
    return tensor.contiguous().view(_INTEGER_VIEW[tensor.element_size()])


def check_exact(actual: Tensor, expected: Tensor, *, name: str, nan_payload: bool = False) -> None:
    """Equal bit patterns, signs of zero included; NaNs are equal to each other unless `nan_payload` is set.

    Raises:
        VerifyError: shape, dtype or an element differs.
    """
    _check_shape(actual, expected, name)
    differs = bits(actual) != bits(expected)
    if actual.is_floating_point() and not nan_payload:
        differs &= ~(torch.isnan(actual) & torch.isnan(expected))
    _report(differs, actual, expected, name, "not bit-exact")


def ulp_distance(actual: Tensor, expected: Tensor) -> Tensor:
    """Representable values between two float tensors of one dtype, int64; zeros of both signs coincide."""
    return (_ordered(actual) - _ordered(expected)).abs()


def check_ulp(actual: Tensor, expected: Tensor, limit: int, *, name: str) -> None:
    """At most `limit` units in the last place apart; infinities and NaNs at the same positions.

    Raises:
        VerifyError: shape, dtype or an element differs.
    """
    _check_shape(actual, expected, name)
    both_nan = torch.isnan(actual) & torch.isnan(expected)
    differs = (ulp_distance(actual, expected) > limit) | _special_differs(actual, expected)
    _report(differs & ~both_nan, actual, expected, name, f"more than {limit} ulp apart")


def check_attention(actual: Tensor, expected: Tensor, *, name: str = "out") -> None:
    """FlashMLA's rule for attention outputs: abs < 1e-3 or rel < 2.01/128 each, cosine difference <= 5e-6.

    Raises:
        VerifyError: shape, an element, an infinity's or NaN's position, or the cosine differs.
    """
    _check_close(actual, expected, ATTENTION_ABSOLUTE, ATTENTION_RELATIVE, name)
    difference = cosine_difference(actual, expected)
    if not difference <= ATTENTION_COSINE:
        raise VerifyError(f"{name}: cosine difference {difference:.3g} is above {ATTENTION_COSINE:.3g}")


def check_lse(actual: Tensor, expected: Tensor, *, name: str = "lse") -> None:
    """FlashMLA's rule for log-sum-exp: abs < 1e-6 or rel < 8.01/65536; +inf rows at the same positions.

    Raises:
        VerifyError: shape, an element, or an infinity's or NaN's position differs.
    """
    _check_close(actual, expected, LSE_ABSOLUTE, LSE_RELATIVE, name)


def cosine_difference(actual: Tensor, expected: Tensor) -> float:
    """1 - 2<a,e> / (<a,a> + <e,e>) over the finite elements, in float64; 0 when both are zero."""
    finite = torch.isfinite(actual) & torch.isfinite(expected)
    left, right = actual[finite].double(), expected[finite].double()
    energy = (left * left + right * right).sum().item()
    return 0.0 if energy == 0 else 1 - 2 * (left * right).sum().item() / energy


def check_untouched(actual: Tensor, before: Tensor, *, name: str, written: Tensor | None = None) -> None:
    """Memory a kernel must not write still holds its poison, compared as bits; `written` marks what it may.

    Raises:
        VerifyError: an element outside `written` changed.
    """
    differs = bits(actual) != bits(before)
    if written is not None:
        differs &= ~written
    _report(differs, actual, before, name, "written outside its range")


def _check_close(actual: Tensor, expected: Tensor, absolute: float, relative: float, name: str) -> None:
    if actual.shape != expected.shape:
        raise VerifyError(f"{name}: shape {tuple(actual.shape)}, expected {tuple(expected.shape)}")
    left, right = actual.double(), expected.double()
    special = ~(torch.isfinite(left) & torch.isfinite(right))
    error = torch.where(special, 0.0, (left - right).abs())
    far = (error >= absolute) & (error >= relative * (right.abs() + _RELATIVE_FLOOR))
    _report(far | _special_differs(left, right), actual, expected, name, "outside the tolerance")


def _special_differs(actual: Tensor, expected: Tensor) -> Tensor:
    """Where one side is NaN and the other is not, or an infinity meets anything but itself."""
    nan_differs = torch.isnan(actual) != torch.isnan(expected)
    infinite = torch.isinf(actual) | torch.isinf(expected)
    return nan_differs | (infinite & (actual != expected))


def _ordered(tensor: Tensor) -> Tensor:
    """Bit patterns mapped so that integer order is numeric order."""
    pattern = bits(tensor).to(torch.int64)
    lowest = -(1 << (8 * tensor.element_size() - 1))
    return torch.where(pattern < 0, lowest - pattern, pattern)


def _check_shape(actual: Tensor, expected: Tensor, name: str) -> None:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        raise VerifyError(
            f"{name}: {actual.dtype} {tuple(actual.shape)}, expected {expected.dtype} {tuple(expected.shape)}"
        )


def _report(differs: Tensor, actual: Tensor, expected: Tensor, name: str, what: str) -> None:
    if not bool(differs.any()):
        return
    first = tuple(int(position) for position in differs.nonzero()[0])
    raise VerifyError(
        f"{name}: {int(differs.sum())} of {differs.numel()} elements {what}; "
        f"first at {list(first)}: {actual[first].item()!r}, expected {expected[first].item()!r}"
    )
