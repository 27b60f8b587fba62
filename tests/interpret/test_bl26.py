"""BL-26: with the patch the interpreter agrees with torch on bf16 and fp8; without it, it does not."""

from __future__ import annotations

import pytest
import torch

from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference import fp8
from dsv4gen.reference.compare import check_exact
from tests.interpret.conftest import KERNELS

ALL_CODES = torch.arange(256, dtype=torch.uint8)
FP8_TYPES = [torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz]


def random(*shape: int, scale: float = 1.0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7)) * scale


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, *FP8_TYPES[:3]], ids=str)
def test_dot(worker: InterpreterWorker, dtype: torch.dtype) -> None:
    left, right = random(16, 16).to(dtype), random(16, 16).flip(0).to(dtype)
    product = torch.empty(16, 16)
    worker.launch(KERNELS, "dot", [1], left, right, product, N=16)
    torch.testing.assert_close(product, left.float() @ right.float(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", FP8_TYPES, ids=str)
def test_decode_of_all_codes(worker: InterpreterWorker, dtype: torch.dtype) -> None:
    values = torch.empty(256)
    worker.launch(KERNELS, "decode", [1], ALL_CODES.view(dtype), values, N=256)
    check_exact(values, ALL_CODES.view(dtype).float(), name="values")


@pytest.mark.parametrize("dialect", fp8.DIALECTS.values(), ids=fp8.DIALECTS)
def test_bitcast_of_all_codes(worker: InterpreterWorker, dialect: fp8.Dialect) -> None:
    values = torch.empty(256)
    fnuz = dialect is fp8.E4M3FNUZ
    worker.launch(KERNELS, "decode_bits", [1], ALL_CODES, values, FNUZ=fnuz, N=256)
    check_exact(values, fp8.decode_table(dialect), name="values")


@pytest.mark.parametrize("dtype", [torch.bfloat16, *FP8_TYPES], ids=str)
def test_casts_round_to_nearest_even(worker: InterpreterWorker, dtype: torch.dtype) -> None:
    values = torch.cat(
        [random(4000, scale=50), random(90, scale=1e-3), torch.tensor([0.0, -0.0, 31.8, 1e-40, 2.5, 3.5])]
    )
    cast = torch.empty(4096, dtype=dtype)
    worker.launch(KERNELS, "cast", [1], values, cast, N=4096)
    check_exact(cast.view(torch.uint8), values.to(dtype).view(torch.uint8), name="cast")


def test_casts_saturate_as_torch_does(worker: InterpreterWorker) -> None:
    values = torch.tensor([1000.0, 449.0, 470.0, float("inf"), -float("inf"), float("nan"), -1e9, 448.0])
    cast = torch.empty(8, dtype=torch.float8_e4m3fn)
    worker.launch(KERNELS, "cast", [1], values, cast, N=8)
    check_exact(cast.float(), values.to(torch.float8_e4m3fn).float(), name="cast")


def test_reductions_of_bf16(worker: InterpreterWorker) -> None:
    values = torch.tensor([1.0, 2.0, 3.0, -4.0], dtype=torch.bfloat16)
    results = torch.empty(7)
    worker.launch(KERNELS, "reductions", [1], values, results, N=4)
    assert results.tolist() == [2.0, 3.0, -4.0, 1.0, 3.0, 6.0, 2.0]


def test_reductions_of_bf16_keep_nan(worker: InterpreterWorker) -> None:
    values = torch.tensor([1.0, float("nan"), 3.0, 4.0], dtype=torch.bfloat16)
    results = torch.empty(7)
    worker.launch(KERNELS, "reductions", [1], values, results, N=4)
    assert torch.isnan(results[0]) and torch.isnan(results[4])


def test_arithmetic_of_bf16(worker: InterpreterWorker) -> None:
    left, right = random(256, scale=9).bfloat16(), random(256, scale=7).flip(0).bfloat16()
    results = torch.empty(4, 256, dtype=torch.bfloat16)
    worker.launch(KERNELS, "arithmetic", [1], left, right, results, N=256)
    expected = [left + right, left * right, torch.where(left > right, left, -right), left.int().bfloat16()]
    check_exact(results, torch.stack(expected), name="results")


def test_loops_with_run_time_bounds(worker: InterpreterWorker) -> None:
    result = torch.empty(1)
    worker.launch(KERNELS, "running_total", [1], torch.arange(100.0), result, 100, BLOCK=16)
    assert result.item() == 4950.0


def test_division_follows_c(worker: InterpreterWorker) -> None:
    """-1 // 4 is 0 and -1 % 4 is -1 in a kernel: an index must be checked before it is divided (BL-22)."""
    values = torch.tensor([-1, -5, 7, 8], dtype=torch.int32)
    quotient, remainder = torch.empty(4, dtype=torch.int32), torch.empty(4, dtype=torch.int32)
    worker.launch(KERNELS, "division", [1], values, quotient, remainder, 4, N=4)
    assert quotient.tolist() == [0, -1, 1, 2]
    assert remainder.tolist() == [-1, -1, 3, 0]


def test_maximum_with_nan_differs_between_versions(worker: InterpreterWorker) -> None:
    """Which is why kernels must guard NaN themselves: both answers are seen in the versions we support."""
    result = torch.empty(1)
    worker.launch(KERNELS, "not_a_number", [1], torch.tensor([float("nan")]), result)
    assert result.isnan().item() or result.item() == 1.0
