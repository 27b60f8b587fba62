"""Resident waves and blocks of one unit, and the two meanings of the second launch-bounds number.

HIP: C22's occupancy remark and the LLVM register allocation rules, reproduced for all register counts; shared
memory rounded up to the hardware granule, which that remark leaves out. CUDA: cuda_occupancy.h. "Unit" is what
`unit.kind` says: a compute unit, a workgroup processor, or an SM.
"""

from __future__ import annotations

from dataclasses import dataclass

from dsv4gen.base.errors import ProofError
from dsv4gen.target.record import TargetRecord

#: gfx9: accumulation registers start at a multiple of this many vector registers.
_ACCUMULATOR_ALIGN = 4

#: gfx9 scalar file: waves per SIMD drop from 8 to 7 above this many registers.
_SCALARS_FOR_ALL_WAVES = 100


@dataclass(frozen=True)
class Occupancy:
    """What one unit holds at once; `limit` names the resource that stops the next block."""

    blocks: int
    waves: int
    limit: str


def round_up(value: int, step: int) -> int:
    """The smallest multiple of `step` that is at least `value`."""
    return -(-value // step) * step


def waves_by_registers(record: TargetRecord, vector: int, accumulator: int = 0, scalar: int = 0) -> int:
    """Waves per SIMD (HIP targets) that the registers of one lane allow.

    `scalar` counts a wave's scalar registers, special ones included; only targets with accumulators lose by it.
    """
    regs = record.regs
    if regs.accumulator and accumulator:
        vector = round_up(vector, _ACCUMULATOR_ALIGN)
    used = round_up(max(vector + accumulator, 1), regs.granule)
    waves = min(record.unit.waves_per_simd, regs.file // used)
    if regs.accumulator and scalar > _SCALARS_FOR_ALL_WAVES:
        waves = min(waves, record.unit.waves_per_simd - 1)
    return waves


def occupancy(
    record: TargetRecord,
    threads: int,
    *,
    vector: int,
    accumulator: int = 0,
    scalar: int = 0,
    shared_bytes: int = 0,
) -> Occupancy:
    """Blocks of `threads` threads that one unit holds, given registers per thread and shared bytes per block."""
    if record.bounds.second == "blocks_per_unit":
        limits = _cuda_limits(record, threads, vector, shared_bytes)
    else:
        waves = waves_by_registers(record, vector, accumulator, scalar)
        limits = _hip_limits(record, threads, waves, shared_bytes)
    limit = min(limits, key=lambda name: limits[name])
    return Occupancy(limits[limit], limits[limit] * _waves(record, threads), limit)


def _waves(record: TargetRecord, threads: int) -> int:
    return -(-threads // record.wave.launch)


def _hip_limits(record: TargetRecord, threads: int, waves_per_simd: int, shared_bytes: int) -> dict[str, int]:
    unit, waves = record.unit, _waves(record, threads)
    limits = {
        "registers": waves_per_simd * unit.simds // waves,
        "threads": unit.waves_per_simd * unit.simds // waves,
        "blocks": unit.blocks if waves == 1 else unit.blocks_multi_wave,
    }
    if shared_bytes:
        limits["shared memory"] = record.shared.unit // round_up(shared_bytes, record.shared.granule)
    return limits


def _cuda_limits(record: TargetRecord, threads: int, registers: int, shared_bytes: int) -> dict[str, int]:
    unit, shared, warps = record.unit, record.shared, _waves(record, threads)
    per_warp = round_up(max(registers, 1) * record.wave.launch, record.regs.granule)
    by_registers = record.regs.file // unit.simds // per_warp * unit.simds // warps
    if per_warp * round_up(warps, unit.simds) > record.regs.file:
        by_registers = 0
    return {
        "registers": by_registers,
        "threads": unit.waves_per_simd * unit.simds // warps,
        "shared memory": shared.unit // round_up(shared_bytes + shared.reserved, shared.granule),
        "blocks": unit.blocks,
    }


def second_bound(record: TargetRecord, threads: int, blocks: int) -> int:
    """The second launch-bounds number that asks for `blocks` resident blocks of `threads` threads per unit.

    CUDA counts blocks per SM. HIP counts waves per SIMD, and clang drops a number that is out of range with no
    more than a warning, which leaves the kernel without any bound; so it is refused here.

    Raises:
        ProofError: the unit cannot hold that many.
    """
    asked = f"{blocks} blocks of {threads} threads on one {record.unit.kind} of {record.device}"
    if not 0 < threads <= record.block.threads or blocks < 1:
        raise ProofError(f"{asked}: a block has 1 to {record.block.threads} threads")
    if record.bounds.second == "blocks_per_unit":
        if blocks * threads > record.unit.threads or blocks > record.unit.blocks:
            limits = f"{record.unit.threads} threads and {record.unit.blocks} blocks"
            raise ProofError(f"{asked}: it holds {limits}", remedy="ask for fewer blocks")
        return blocks
    waves = -(-blocks * _waves(record, threads) // record.unit.simds)
    if waves > record.unit.waves_per_simd:
        limit = record.unit.waves_per_simd
        raise ProofError(f"{asked}: {waves} waves per SIMD, of {limit}", remedy="ask for fewer blocks")
    return waves


def register_cap(record: TargetRecord, threads: int, second: int) -> int:
    """Registers per thread the compiler may use under launch bounds (`threads`, `second`)."""
    if record.bounds.second == "blocks_per_unit":
        step = record.regs.granule // record.wave.launch
        return min(record.regs.per_thread, record.regs.file // (second * threads) // step * step)
    granule = record.regs.granule
    return min(record.regs.per_thread, record.regs.file // second // granule * granule)
