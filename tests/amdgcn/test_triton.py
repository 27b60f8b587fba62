"""Kernels that Triton compiled, run from their assembly text on every target."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dsv4gen.emulate.amdgcn import Kernel, Result
from tests.amdgcn.compiled import TARGETS
from tests.amdgcn.test_convert import table
from tests.tools import need_module

F32 = np.float32


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every kernel for every target."""
    need_module("triton")
    folder = tmp_path_factory.mktemp("triton")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    environment = {**kept, "TRITON_CACHE_DIR": str(folder / "cache"), "TRITON_DEFAULT_FP_FUSION": "1"}
    script = Path(__file__).with_name("triton_kernels.py")
    done = subprocess.run(
        [sys.executable, str(script), str(folder), *TARGETS],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def run(folder: Path, name: str, target: str, grid: int, args: Sequence[Any], order: str = "ascending") -> Result:
    """Launch a compiled kernel; Triton's two extra pointers are added by the emulator."""
    about = json.loads((folder / f"{name}.{target}.json").read_text())
    kernel = Kernel.from_assembly((folder / f"{name}.{target}.s").read_text(), about["symbol"], file=f"{name}.s")
    result = kernel.run(grid, about["threads"], args, lds=about["lds"], order=order)
    assert result.problems == ()
    return result


def to_bf16(x: np.ndarray) -> np.ndarray:
    bits = np.ascontiguousarray(x, F32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(F32)


@pytest.mark.parametrize("target", TARGETS)
def test_rms_norm(compiled: Path, target: str) -> None:
    rng = np.random.default_rng(0)
    x, weight = to_bf16(rng.standard_normal((3, 512))), to_bf16(rng.standard_normal(512))
    found = np.zeros((3, 512), F32)
    run(compiled, "rms_norm", target, 3, [x, weight, found, np.int32(512), F32(1e-6)])
    wide = from_bf16(x)
    wanted = wide / np.sqrt((wide * wide).mean(1, keepdims=True) + 1e-6) * from_bf16(weight)
    assert np.abs(found - wanted).max() < 2e-6


@pytest.mark.parametrize("target", TARGETS)
def test_dequantize_is_exact(compiled: Path, target: str) -> None:
    rng = np.random.default_rng(1)
    fnuz = target == "gfx942"
    codes = rng.integers(0, 256, (48, 128)).astype(np.uint8)
    codes[(codes == 128) | (codes & 127 == 127)] = 0
    scales = rng.integers(120, 134, (48, 2)).astype(np.uint8)
    found = np.full((48, 128), 7, np.uint16)
    run(compiled, "dequantize", target, 3, [codes, scales, found, np.int32(37)])
    factors = np.repeat(2.0 ** (scales.astype(F32) - 127), 64, axis=1)
    wanted = to_bf16(table("fp8", fnuz=fnuz)[codes] * factors)
    assert np.array_equal(found[:37], wanted[:37])
    assert (found[37:] == 7).all()
    if target == "gfx942":
        # Read as the other dialect, every value is off by a factor: the mistake is seen.
        wrong = to_bf16(table("fp8", fnuz=False)[codes] * factors)
        assert not np.array_equal(found[:37], wrong[:37])


@pytest.mark.parametrize("target", TARGETS)
def test_attention(compiled: Path, target: str) -> None:
    rng = np.random.default_rng(2)
    q, k, v = (to_bf16(rng.standard_normal((rows, 64))) for rows in (16, 96, 96))
    found = np.zeros((16, 64), F32)
    for order in ("ascending", "random:4"):
        run(compiled, "attention", target, 1, [q, k, v, found, F32(0.18), np.int32(80)], order)
        scores = from_bf16(q) @ from_bf16(k)[:80].T * 0.18
        weights = np.exp2(scores - scores.max(1, keepdims=True))
        wanted = (weights / weights.sum(1, keepdims=True)) @ from_bf16(v)[:80]
        assert np.abs(found - wanted).max() < 2e-3


@pytest.mark.parametrize("target", TARGETS)
def test_histogram(compiled: Path, target: str) -> None:
    x = np.random.default_rng(3).integers(0, 64, 1200).astype(np.int32)
    found = np.zeros(64, np.int32)
    run(compiled, "histogram", target, 3, [x, found, np.int32(1200)])
    assert found.tolist() == np.bincount(x, minlength=64).tolist()


@pytest.mark.parametrize("target", TARGETS)
def test_atomics(compiled: Path, target: str) -> None:
    x = np.random.default_rng(4).integers(0, 1000, 512).astype(np.int32)
    found = np.zeros(32, np.int32)
    found[16:24] = 5000
    sums = np.zeros(8, F32)
    run(compiled, "atomics", target, 2, [x, found, sums])
    for key in range(8):
        members = x[x % 8 == key]
        wanted = (members.size, members.max(), members.min(), np.bitwise_xor.reduce(members))
        assert [found[key], found[8 + key], found[16 + key], found[24 + key]] == list(wanted)
        assert sums[key] == members.sum()


@pytest.mark.parametrize("target", TARGETS)
def test_sort_and_scan(compiled: Path, target: str) -> None:
    x = np.random.default_rng(5).integers(-1000, 1000, (2, 256)).astype(np.int32)
    ordered, sums = np.zeros_like(x), np.zeros_like(x)
    run(compiled, "sort_and_scan", target, 2, [x, ordered, sums], "random:9")
    assert np.array_equal(ordered, np.sort(x, axis=1))
    assert np.array_equal(sums, np.cumsum(x, axis=1))


@pytest.mark.parametrize("name", ("rms_norm", "attention"))
def test_code_object_runs_alike(compiled: Path, name: str) -> None:
    target = "gfx942"
    about = json.loads((compiled / f"{name}.{target}.json").read_text())
    binary = (compiled / f"{name}.{target}.hsaco").read_bytes()
    kernels = (
        Kernel.from_assembly((compiled / f"{name}.{target}.s").read_text(), about["symbol"]),
        Kernel.from_code_object(binary, about["symbol"]),
    )
    rng = np.random.default_rng(6)
    inputs = [to_bf16(rng.standard_normal((96, 512))) for _ in range(3)]
    results = []
    for kernel in kernels:
        out = np.zeros((16, 512), F32)
        args: list[Any] = (
            [inputs[0], inputs[1], out, np.int32(512), F32(1e-6)]
            if name == "rms_norm"
            else [*inputs, out, F32(0.1), np.int32(64)]
        )
        outcome = kernel.run(1, about["threads"], args, lds=about["lds"])
        assert outcome.problems == ()
        results.append((out, outcome.instructions))
    assert np.array_equal(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]
