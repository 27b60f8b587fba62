"""The runtime's structures as Python sees them; runtime/wave.h is the other side, and `check_layout` compares."""

from __future__ import annotations

import ctypes

from dsv4gen.base.errors import EmulationError
from dsv4gen.emulate.amdgcn.registers import SLOTS

ROW_LANES = 64
ROW_BYTES = 4 * ROW_LANES
SCALARS_OFFSET = 128
ROWS_OFFSET = SCALARS_OFFSET + 4 * SLOTS + ROW_BYTES
#: function, instruction, counted, immediate, immediate2, d, m, a, b, c, e, x, y, padding
OP_FORMAT = "<QIIqq8i"
OP_BYTES = 64
MAX_FINDINGS = 64
MAX_USER = 32

U32, U64 = ctypes.c_uint32, ctypes.c_uint64


class Buffer(ctypes.Structure):
    """A range of device addresses and the host memory behind it."""

    _fields_ = (("device", U64), ("bytes", U64), ("host", U64), ("writable", U64))


class Shadow(ctypes.Structure):
    """One record of the LDS race detector, for one dword."""

    _fields_ = (
        ("epoch", U32),
        ("written", U32),
        ("writers", U32),
        ("readers", U32),
        ("write_at", U32 * 4),
        ("read_at", U32 * 4),
    )


class FindingRecord(ctypes.Structure):
    """One kind of misbehaviour at one pair of instructions."""

    _fields_ = (
        ("kind", U32),
        ("instruction", U32),
        ("other_instruction", U32),
        ("wave", U32),
        ("other_wave", U32),
        ("lane", U32),
        ("block", U32 * 3),
        ("count", U32),
        ("address", U64),
    )


class TrapRecord(ctypes.Structure):
    """Why a wave stopped."""

    _fields_ = (
        ("kind", U32),
        ("instruction", U32),
        ("wave", U32),
        ("lane", U32),
        ("block", U32 * 3),
        ("bytes", U32),
        ("address", U64),
    )


class MemoryCount(ctypes.Structure):
    """Counters of one memory instruction."""

    _fields_ = (("lines", U64), ("conflicts", U64), ("lanes", U64))


class Launch(ctypes.Structure):
    """Everything the waves of one launch share."""

    _fields_ = (
        ("ops", U64),
        ("first_op", U64),
        ("counts", U64),
        ("memory_counts", U64),
        ("entries", U64),
        ("entry_count", U64),
        ("code_base", U64),
        ("buffers", U64),
        ("buffer_count", U64),
        ("lds", U64),
        ("shadow", U64),
        ("scratch", U64),
        ("constants", U64),
        ("waves", U64),
        ("wave_stride", U64),
        ("poisoned_rows", U64),
        ("budget", U64),
        ("seed", U64),
        ("quantum", U64),
        ("grid", U32 * 3),
        ("block", U32 * 3),
        ("lanes", U32),
        ("lds_bytes", U32),
        ("scratch_bytes", U32),
        ("wave_count", U32),
        ("order", U32),
        ("user_count", U32),
        ("user", U32 * MAX_USER),
        ("id_slot", ctypes.c_int32 * 3),
        ("scratch_offset_slot", ctypes.c_int32),
        ("ids_in_ttmp", U32),
        ("line_shift", U32),
        ("banks", U32),
        ("fp16_overflow", U32),
        ("count_memory", U32),
        ("epoch", U32),
        ("block_epoch", U32),
        ("block_id", U32 * 3),
        ("finding_count", U32),
        ("trap", TrapRecord),
        ("findings", FindingRecord * MAX_FINDINGS),
    )


def check_layout(library: ctypes.CDLL) -> None:
    """Compare sizes and offsets with those the library was compiled with.

    Raises:
        EmulationError: they differ, so one side was changed alone.
    """
    expected = (
        OP_BYTES,
        ctypes.sizeof(Launch),
        ctypes.sizeof(Shadow),
        ctypes.sizeof(Buffer),
        ctypes.sizeof(FindingRecord),
        SCALARS_OFFSET,
        ROWS_OFFSET,
        SLOTS,
    )
    compiled = tuple((U64 * len(expected)).in_dll(library, "emulator_layout"))
    if compiled != expected:
        raise EmulationError(f"runtime/wave.h and layout.py disagree: {compiled} against {expected}")
