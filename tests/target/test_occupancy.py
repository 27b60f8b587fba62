"""Occupancy and launch bounds against documented and measured values."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
from collections.abc import Mapping

import pytest

from dsv4gen.base.errors import ProofError
from dsv4gen.target import TargetRecord
from dsv4gen.target.occupancy import Occupancy, occupancy, register_cap, second_bound, waves_by_registers
from tests.tools import need_tool

Records = Mapping[str, TargetRecord]

#: Waves per SIMD that clang's occupancy remark printed, by device and VGPR count.
REMARKS = {
    "gfx90a": {1: 8, 64: 8, 65: 7, 72: 7, 73: 6, 80: 6, 96: 5, 128: 4, 129: 3, 168: 3, 169: 2, 256: 2},
    "gfx1100": {1: 16, 64: 16, 96: 16, 97: 12, 120: 12, 121: 10, 144: 10, 145: 9, 192: 8, 193: 7, 256: 5},
    "gfx1102": {64: 16, 96: 10, 97: 9},
    "gfx1151": {96: 16, 98: 12},
    "gfx1250": {64: 16, 65: 12, 96: 10, 112: 9, 128: 8, 256: 4, 257: 3, 512: 2, 513: 1, 1024: 1},
}


@pytest.mark.parametrize("device", REMARKS)
def test_waves_by_registers(records: Records, device: str) -> None:
    found = {count: waves_by_registers(records[device], count) for count in REMARKS[device]}
    assert found == REMARKS[device]


@pytest.mark.parametrize(("device", "count"), [(device, count) for device in REMARKS for count in (65, 96, 97, 128)])
def test_clang_says_the_same(records: Records, device: str, count: int) -> None:
    """Clobbering one high register fixes the count; the remark holds the compiler's own occupancy."""
    clang = need_tool("clang-22")
    source = f'__attribute__((amdgpu_kernel)) void k(void) {{ __asm__ volatile("" ::: "v{count - 1}"); }}'
    flags = ["--target=amdgcn-amd-amdhsa", f"-mcpu={device}", "-nogpulib", "-Rpass-analysis=kernel-resource-usage"]
    command = [clang, *flags, "-x", "c", "-", "-c", "-o", os.devnull]
    remarks = subprocess.run(command, input=source, capture_output=True, text=True, check=True).stderr
    assert f" VGPRs: {count} " in remarks
    found = re.search(r"Occupancy \[waves/SIMD\]: (\d+)", remarks)
    assert found is not None
    assert waves_by_registers(records[device], count) == int(found.group(1))


def test_gfx9_accumulators_and_scalars(records: Records) -> None:
    record = records["gfx942"]
    assert waves_by_registers(record, 256, 256) == 1
    assert waves_by_registers(record, 61, 64) == 4
    assert waves_by_registers(record, 32, scalar=100) == 8
    assert waves_by_registers(record, 32, scalar=101) == 7
    assert waves_by_registers(records["gfx1100"], 32, scalar=106) == 16


def test_shared_memory_is_rounded_as_the_hardware_does(records: Records) -> None:
    assert occupancy(records["gfx950"], 256, vector=32, shared_bytes=26_928) == Occupancy(5, 20, "shared memory")
    coarse = records["gfx950"].shared.model_copy(update={"granule": 1})
    by_remark = dataclasses.replace(records["gfx950"], shared=coarse)
    assert occupancy(by_remark, 256, vector=32, shared_bytes=26_928).blocks == 6


@pytest.mark.parametrize(
    ("device", "threads", "vector", "shared_bytes", "expected"),
    [
        ("gfx942", 1024, 64, 32768, Occupancy(2, 32, "registers")),
        ("gfx942", 1024, 65, 32768, Occupancy(1, 16, "registers")),
        ("gfx942", 64, 16, 0, Occupancy(32, 32, "registers")),
        ("gfx942", 256, 16, 65536, Occupancy(1, 4, "shared memory")),
        ("gfx942", 256, 16, 65537, Occupancy(0, 0, "shared memory")),
        ("gfx1100", 1024, 96, 65536, Occupancy(2, 64, "registers")),
        ("gfx1100", 1024, 97, 0, Occupancy(1, 32, "registers")),
        ("gfx1250", 64, 32, 0, Occupancy(16, 32, "blocks")),
        ("gfx1250", 32, 32, 0, Occupancy(32, 32, "blocks")),
        ("sm_90", 512, 64, 16384, Occupancy(2, 32, "registers")),
        ("sm_90", 1024, 32, 0, Occupancy(2, 64, "registers")),
        ("sm_90", 256, 32, 232448, Occupancy(1, 8, "shared memory")),
        ("sm_90", 256, 32, 232449, Occupancy(0, 0, "shared memory")),
        ("sm_90", 32, 16, 0, Occupancy(32, 32, "blocks")),
        ("sm_90", 1024, 65, 0, Occupancy(0, 0, "registers")),
        ("sm_89", 1024, 32, 0, Occupancy(1, 32, "threads")),
        ("sm_120", 1024, 32, 0, Occupancy(1, 32, "threads")),
        ("sm_120", 512, 32, 0, Occupancy(3, 48, "threads")),
        ("sm_86", 64, 32, 0, Occupancy(16, 32, "blocks")),
        ("sm_80", 96, 40, 0, Occupancy(16, 48, "registers")),
    ],
)
def test_occupancy(
    records: Records, device: str, threads: int, vector: int, shared_bytes: int, expected: Occupancy
) -> None:
    assert occupancy(records[device], threads, vector=vector, shared_bytes=shared_bytes) == expected


@pytest.mark.parametrize(
    ("device", "by_bound"),
    [
        ("gfx942", {2: 256, 4: 128, 8: 64}),
        ("gfx1100", {8: 192, 16: 96}),
        ("gfx1201", {8: 192, 16: 96}),
        ("gfx1250", {2: 512, 4: 256, 8: 128, 16: 64}),
    ],
)
def test_register_cap_by_waves(records: Records, device: str, by_bound: dict[int, int]) -> None:
    assert {bound: register_cap(records[device], 256, bound) for bound in by_bound} == by_bound


def test_register_cap_by_blocks(records: Records) -> None:
    record = records["sm_90"]
    assert register_cap(record, 512, 2) == 64
    assert register_cap(record, 256, 8) == 32
    assert register_cap(record, 1024, 1) == 64
    assert register_cap(record, 128, 1) == 255


@pytest.mark.parametrize(
    ("device", "caps"),
    [
        ("gfx90a", {1024: 128, 512: 256, 256: 512}),
        ("gfx1100", {1024: 192, 512: 256, 256: 256}),
        ("gfx1250", {1024: 128, 512: 256, 256: 512}),
    ],
)
def test_one_block_alone_gets_the_documented_registers(records: Records, device: str, caps: dict[int, int]) -> None:
    record = records[device]
    assert {threads: register_cap(record, threads, second_bound(record, threads, 1)) for threads in caps} == caps


def test_compute_unit_mode_halves_the_registers(records: Records) -> None:
    record = records["gfx1100"]
    half = dataclasses.replace(record, unit=record.unit.model_copy(update={"simds": 2}))
    assert register_cap(half, 1024, second_bound(half, 1024, 1)) == 96


@pytest.mark.parametrize(
    ("device", "threads", "blocks", "expected"),
    [
        ("gfx942", 512, 2, 4),
        ("gfx942", 1024, 2, 8),
        ("gfx942", 256, 1, 1),
        ("gfx942", 64, 1, 1),
        ("gfx1100", 1024, 1, 8),
        ("gfx1100", 1024, 2, 16),
        ("gfx1100", 96, 3, 3),
        ("sm_90", 512, 2, 2),
        ("sm_90", 1024, 2, 2),
        ("sm_89", 512, 3, 3),
    ],
)
def test_second_bound(records: Records, device: str, threads: int, blocks: int, expected: int) -> None:
    assert second_bound(records[device], threads, blocks) == expected


@pytest.mark.parametrize(
    ("device", "threads", "blocks", "reason"),
    [
        ("gfx942", 1024, 3, "12 waves per SIMD, of 8"),
        ("gfx1201", 1024, 3, "24 waves per SIMD, of 16"),
        ("sm_89", 1024, 2, "it holds 1536 threads and 24 blocks"),
        ("sm_120", 512, 4, "it holds 1536 threads and 24 blocks"),
        ("sm_90", 32, 33, "it holds 2048 threads and 32 blocks"),
        ("gfx942", 2048, 1, "a block has 1 to 1024 threads"),
        ("sm_90", 0, 1, "a block has 1 to 1024 threads"),
        ("sm_90", 64, 0, "a block has 1 to 1024 threads"),
    ],
)
def test_bounds_the_compiler_would_drop(records: Records, device: str, threads: int, blocks: int, reason: str) -> None:
    with pytest.raises(ProofError, match=reason):
        second_bound(records[device], threads, blocks)


def test_a_copied_number_would_be_wrong(records: Records) -> None:
    """Two blocks per unit is the bound 2 on CUDA and 4 on HIP; taken as is, HIP would allow twice the registers."""
    cuda, hip = records["sm_90"], records["gfx942"]
    assert second_bound(cuda, 512, 2) != second_bound(hip, 512, 2)
    assert register_cap(hip, 512, 2) == 2 * register_cap(hip, 512, second_bound(hip, 512, 2))
