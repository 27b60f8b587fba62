"""The budget check: each way of being outside it is found, and named with need and limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dsv4gen.toolchain.resources import KernelResources, check_budget, check_static_shared
from tests.toolchain.sources import record

GOOD = KernelResources(
    symbol="topk",
    vector_registers=64,
    accumulator_registers=0,
    scalar_registers=40,
    spilled_vector=0,
    spilled_scalar=0,
    scratch_bytes=0,
    static_shared_bytes=16384,
    dynamic_shared_bytes=0,
    max_threads=512,
    wave=64,
)


def findings(kernel: KernelResources, target: str = "gfx942", **budget: int) -> str:
    return "\n".join(str(error) for error in check_budget(kernel, record(target), **budget))


def test_a_kernel_inside_its_budget() -> None:
    assert findings(GOOD, expected_shared=16384, threads=512, min_blocks=2) == ""


@pytest.mark.parametrize(
    ("change", "budget", "expected"),
    [
        ({"spilled_vector": 3}, {}, "3 spilled vector registers, 0 allowed"),
        ({"spilled_scalar": 2}, {}, "2 spilled scalar registers, 0 allowed"),
        ({"spilled_vector": 3}, {"allowed_spills": 2}, "3 spilled vector registers, 2 allowed"),
        ({"spilled_scalar": 3}, {"allowed_spills": 9, "allowed_scalar_spills": 2}, "2 allowed"),
        ({"scratch_bytes": 16}, {}, "16 bytes of scratch per thread, 0 allowed"),
        ({"static_shared_bytes": 65540}, {}, "65540 bytes of static shared memory, the limit is 65536"),
        ({"dynamic_shared_bytes": 49160}, {}, "65544 bytes of shared memory per block, the limit is 65536"),
        ({}, {"expected_shared": 16380}, "16384 bytes of shared memory, the proof computed 16380"),
        ({}, {"threads": 1024}, "blocks of 1024 threads, the kernel was compiled for 512"),
        ({"max_threads": 2048}, {}, "blocks of 2048 threads, the limit is 1024"),
        ({"vector_registers": 200}, {"min_blocks": 2}, "1 blocks per unit fit (registers), 2 were asked for"),
        ({"static_shared_bytes": 40000}, {"min_blocks": 2}, "1 blocks per unit fit (shared memory), 2"),
    ],
)
def test_each_excess_is_found(change: dict[str, int], budget: dict[str, int], expected: str) -> None:
    text = findings(replace(GOOD, **change), **budget)
    assert expected in text
    assert text.startswith("topk on gfx942: ")


def test_listed_spills_are_allowed() -> None:
    spilled = replace(GOOD, spilled_vector=3, spilled_scalar=5, scratch_bytes=12)
    assert findings(spilled, allowed_spills=3, allowed_scalar_spills=5, allowed_scratch=12) == ""


@pytest.mark.parametrize(
    ("target", "fits"),
    [
        ("gfx90a", False),
        ("gfx942", False),
        ("gfx1100", False),
        ("gfx1201", False),
        ("gfx950", True),
        ("sm_80", True),
        ("sm_90", True),
        ("sm_100", True),
        ("sm_120", True),
    ],
)
def test_ninety_thousand_bytes_per_block(target: str, fits: bool) -> None:
    dynamic = replace(GOOD, static_shared_bytes=0, dynamic_shared_bytes=90000)
    assert (findings(dynamic, target) == "") is fits


def test_sixty_kib_fit_on_sm_120_as_dynamic_memory_only() -> None:
    static = replace(GOOD, static_shared_bytes=61440)
    (error,) = check_static_shared([static], record("sm_120"))
    assert "61440 bytes of static shared memory, the limit is 49152" in str(error)
    assert "dynamic" in error.remedy
    assert not check_static_shared([replace(GOOD, static_shared_bytes=0, dynamic_shared_bytes=61440)], record("sm_120"))


def test_the_launch_decides_the_occupancy() -> None:
    full = GOOD.for_launch(record("gfx942"))
    assert full.occupancy is not None
    assert (full.occupancy.blocks, full.occupancy.waves) == (4, 32)
    more = GOOD.for_launch(record("gfx942"), dynamic_shared_bytes=40000)
    assert more.occupancy is not None
    assert (more.shared_bytes, more.occupancy.blocks, more.occupancy.limit) == (56384, 1, "shared memory")
