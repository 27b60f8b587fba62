"""What two tiles may differ by."""

from __future__ import annotations

import pytest
import torch

from dsv4gen.base.errors import VerifyError
from dsv4gen.reference.workload import agree_closely, agree_exactly

GENERATOR = torch.Generator().manual_seed(0)
FLOATS = torch.randn(64, 64, generator=GENERATOR) / 100
BYTES = torch.randint(0, 256, (4, 1000), generator=GENERATOR, dtype=torch.uint8)


def changed(tensor: torch.Tensor, count: int, by: float) -> torch.Tensor:
    """The first elements changed."""
    other = tensor.clone()
    other.view(-1)[:count] += by
    return other


def test_rounding_is_no_difference() -> None:
    agree_closely({"out": FLOATS.bfloat16()}, {"out": FLOATS.bfloat16() * (1 + 2**-7)})
    agree_closely({"cache": changed(BYTES, 10, 1)}, {"cache": BYTES})
    agree_closely({"lse": torch.tensor([float("inf"), 1.0])}, {"lse": torch.tensor([float("inf"), 1.0])})
    agree_exactly({"out": FLOATS, "cache": BYTES}, {"out": FLOATS.clone(), "cache": BYTES.clone()})


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (changed(FLOATS, 1, 0.001), FLOATS),
        (FLOATS * 1.04, FLOATS),
        (torch.tensor([float("nan")]), torch.tensor([1.0])),
        (changed(BYTES, 40, 1), BYTES),
        (torch.tensor([1, 2]), torch.tensor([1, 3])),
    ],
)
def test_more_is_one(written: torch.Tensor, expected: torch.Tensor) -> None:
    with pytest.raises(VerifyError, match="out differs"):
        agree_closely({"out": written}, {"out": expected})


def test_moved_data_is_equal_or_wrong() -> None:
    with pytest.raises(VerifyError, match="cache differs"):
        agree_exactly({"cache": changed(BYTES, 1, 1)}, {"cache": BYTES})
