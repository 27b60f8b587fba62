"""Our CUDA formula against NVIDIA's own header, which travels with Triton, over many launch configurations."""

from __future__ import annotations

import importlib.util
import random
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dsv4gen.target import TargetRecord
from dsv4gen.target.occupancy import occupancy
from tests.tools import need_module, need_tool

Question = tuple[int, int, int]

DRIVER = r"""
#include <cstdio>
#include "cuda_occupancy.h"
int main() {
  cudaOccDeviceProp device; cudaOccDeviceState state;
  long unit, block, reserved;
  int major, minor, threads_per_unit, threads, registers; long shared;
  if (scanf("%d %d %d %ld %ld %ld", &major, &minor, &threads_per_unit, &unit, &block, &reserved) != 6) return 1;
  device.computeMajor = major; device.computeMinor = minor;
  device.maxThreadsPerBlock = 1024; device.maxThreadsPerMultiprocessor = threads_per_unit;
  device.regsPerBlock = 65536; device.regsPerMultiprocessor = 65536; device.warpSize = 32;
  device.sharedMemPerBlock = 49152; device.sharedMemPerMultiprocessor = unit;
  device.sharedMemPerBlockOptin = block; device.reservedSharedMemPerBlock = reserved; device.numSms = 1;
  state.carveoutConfig = 100;
  while (scanf("%d %d %ld", &threads, &registers, &shared) == 3) {
    cudaOccFuncAttributes kernel; cudaOccResult result;
    kernel.maxThreadsPerBlock = 1024; kernel.numRegs = registers; kernel.sharedSizeBytes = 0;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF; kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = block; kernel.numBlockBarriers = 1;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, shared)) return 2;
    printf("%d\n", result.activeBlocksPerMultiprocessor);
  }
  return 0;
}
"""


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Callable[[TargetRecord, list[Question]], list[int]]:
    """Blocks per SM by NVIDIA's header for (threads, registers, shared bytes) on one device."""
    compiler = need_tool("g++")
    need_module("triton")
    found = importlib.util.find_spec("triton")
    assert found is not None and found.origin is not None
    include = Path(found.origin).parent / "backends" / "nvidia" / "include"
    program = tmp_path_factory.mktemp("occupancy") / "ask"
    command = [compiler, "-x", "c++", "-", "-w", "-I", str(include), "-o", str(program)]
    subprocess.run(command, input=DRIVER, text=True, check=True)

    def run(record: TargetRecord, questions: list[Question]) -> list[int]:
        shared, (major, minor) = record.shared, record.detect.capability
        head = f"{major} {minor} {record.unit.threads} {shared.unit} {shared.block} {shared.reserved}\n"
        lines = head + "".join(f"{threads} {regs} {size}\n" for threads, regs, size in questions)
        done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
        return [int(word) for word in done.stdout.split()]

    return run


@pytest.mark.parametrize("device", ["sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100", "sm_103", "sm_120"])
def test_same_blocks_per_sm(
    records: Mapping[str, TargetRecord], ask: Callable[[TargetRecord, list[Question]], list[int]], device: str
) -> None:
    record, draw = records[device], random.Random(device)
    questions = [
        (draw.randint(1, 1024), draw.randint(16, 255), draw.choice((0, draw.randint(1, record.shared.block))))
        for _ in range(2000)
    ]
    ours = [occupancy(record, threads, vector=regs, shared_bytes=size).blocks for threads, regs, size in questions]
    theirs = ask(record, questions)
    assert len(theirs) == len(questions)
    wrong = [row for row in zip(questions, ours, theirs, strict=True) if row[1] != row[2]]
    assert wrong == []
