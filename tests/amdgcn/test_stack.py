"""Scratch, calls, generic pointers, constant tables, hidden arguments: what HIP code of users brings along."""

from __future__ import annotations

import numpy as np
import pytest

from dsv4gen.emulate.amdgcn import Kernel
from tests.amdgcn.compiled import TARGETS, compile_hip, hip_kernel

MASK = 0xFFFFFFFF
TABLE = (3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3)


@pytest.mark.parametrize("target", TARGETS)
def test_spilled_registers(target: str) -> None:
    kernel = hip_kernel("stack", "spill", target)
    assert kernel.program.descriptor.private_bytes > 0, "the kernel does not spill"
    values = np.random.default_rng(0).integers(0, 1 << 32, (256, 48), np.uint64).astype(np.uint32)
    found = np.zeros_like(values)
    result = kernel.run(1, 256, [found, values], order="random:1")
    assert result.problems == ()
    scaled = values.astype(object) * np.arange(1, 97, 2) & MASK
    for row, given in zip(found.tolist(), scaled.tolist(), strict=True):
        total = 0
        for value in given:
            total = total * 31 + value & MASK
        assert row == [value ^ total for value in reversed(given)]


def weigh(values: list[int], n: int) -> int:
    return sum(values[i] * TABLE[(i + n) % 16] for i in range(n)) & MASK


def descend(n: int) -> int:
    return n if n < 2 else descend(n - 1) + weigh([n], 1) + descend(n - 2) & MASK


def expected_pointers(given: np.ndarray, n: int) -> list[int]:
    shared = [t * n for t in range(256)]
    results = []
    for t in range(256):
        local = [i * n for i in range(16)]
        local[t % 16] += 5
        where = shared[t % 128 :] if t % 3 == 0 else local[t % 8 :] if t % 3 == 1 else given[t:].tolist()
        results.append(weigh(where, 8) + descend(t % 4) + local[(t + 3) % 16] & MASK)
    return results


@pytest.mark.parametrize("route", ("text", "object"))
@pytest.mark.parametrize("target", TARGETS)
def test_calls_and_generic_pointers(target: str, route: str) -> None:
    if route == "text":
        kernel = hip_kernel("stack", "pointers", target)
    else:
        kernel = Kernel.from_code_object(compile_hip("stack", target, output="-c"), "pointers")
    given = np.random.default_rng(1).integers(0, 1000, 264).astype(np.uint32)
    found = np.zeros(512, np.uint32)
    result = kernel.run(2, 256, [found, given, np.uint32(7)])
    assert result.problems == ()
    assert found.tolist() == 2 * expected_pointers(given, 7)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("version", (5, 6))
def test_hidden_arguments(target: str, version: int) -> None:
    text = compile_hip("stack", target, flags=(f"-mcode-object-version={version}",)).decode()
    kernel = Kernel.from_assembly(text, "sizes")
    found = np.zeros((3, 4), np.uint32)
    result = kernel.run((3, 1, 1), 64, [found])
    assert result.problems == ()
    assert found.tolist() == [[64, 192, 0, 0]] * 3


@pytest.mark.parametrize("target", TARGETS)
def test_block_ids_of_all_axes(target: str) -> None:
    kernel = hip_kernel("stack", "sizes", target)
    found = np.zeros((2, 4), np.uint32)
    for order in ("ascending", "descending", "random:3"):
        result = kernel.run((2, 3, 4), 64, [found], order=order)
        assert result.problems == ()
    assert found[:, 2].max() <= 2
    assert found[:, 3].max() <= 3
