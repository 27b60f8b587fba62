"""Collects the ops of a kernel: where registers, temporaries and constants live, and how operands become rows.

An operand location is one number: a byte offset from the wave's state when it is not negative, from the end of the
constants when it is negative (runtime/wave.h, `dwords`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace

from dsv4gen.base.errors import EmulationError
from dsv4gen.emulate.amdgcn.generation import Generation
from dsv4gen.emulate.amdgcn.layout import ROW_BYTES, ROWS_OFFSET, SCALARS_OFFSET
from dsv4gen.emulate.amdgcn.program import Instruction, Operand, Register
from dsv4gen.emulate.amdgcn.registers import EXEC, NULL_READ, NULL_WRITE

_WIDE = ("u64", "i64", "f64")
_HALF = ("u16", "i16", "f16", "bf16")
ABSOLUTE, NEGATE = 1, 2


class Unsupported(EmulationError):
    """An instruction, operand or modifier without a translation."""

    code = "DSV501"


@dataclass(frozen=True)
class Op:
    """One call of an instruction function; operands are locations."""

    function: str
    instruction: int
    immediate: int = 0
    immediate2: int = 0
    d: int = 0
    m: int = 0
    a: int = 0
    b: int = 0
    c: int = 0
    e: int = 0
    x: int = 0
    y: int = 0


@dataclass
class Constants:
    """Values that instructions name literally; `content` ends where negative locations start."""

    chunks: list[bytes] = field(default_factory=list)
    used: int = 0
    known: dict[bytes, int] = field(default_factory=dict)

    def add(self, value: bytes) -> int:
        """The location of these bytes, padded to 64."""
        if value not in self.known:
            padded = value + bytes(-len(value) % 64)
            self.chunks.append(padded)
            self.used += len(padded)
            self.known[value] = -self.used
        return self.known[value]

    @property
    def content(self) -> bytes:
        """All constants; the last one added comes first."""
        return b"".join(reversed(self.chunks))


class Builder:
    """Ops so far, and the operands of the instruction being lowered."""

    def __init__(self, generation: Generation, wave: int, vectors: int, accumulators: int) -> None:
        self.generation = generation
        self.wave = wave
        self.ops: list[Op] = []
        self.constants = Constants()
        self.registers = vectors + accumulators
        self.temporaries = 0
        self._vectors = vectors
        self._used = 0
        self._instruction = 0

    # --- ops -------------------------------------------------------------------------------------------------
    def begin(self, instruction: int) -> None:
        """Start an instruction: its temporaries are free again."""
        self._instruction = instruction
        self._used = 0

    def emit(self, function: str, **fields: int) -> None:
        """Add an op."""
        self.ops.append(Op(function, self._instruction, **fields))

    def temporary(self, rows: int = 1) -> int:
        """The location of fresh rows."""
        first = self.registers + self._used
        self._used += rows
        self.temporaries = max(self.temporaries, self._used)
        return ROWS_OFFSET + ROW_BYTES * first

    # --- registers -------------------------------------------------------------------------------------------
    def vector(self, register: Register) -> int:
        """The location of a vector register or accumulator."""
        index = register.index + (self._vectors if register.file == "a" else 0)
        return ROWS_OFFSET + ROW_BYTES * index

    @staticmethod
    def slot(index: int) -> int:
        """The location of a scalar slot."""
        return SCALARS_OFFSET + 4 * index

    def scalar_result(self, operand: Operand) -> int:
        """Where a scalar result goes; `null` swallows it."""
        register = operand.value
        if not isinstance(register, Register) or register.file != "s":
            raise Unsupported(f"result {register!r}")
        return self.slot(NULL_WRITE if register.index == NULL_READ else register.index)

    def after_scalar_write(self, operand: Operand) -> None:
        """Follow a scalar result that is, or covers, EXEC."""
        register = operand.value
        if isinstance(register, Register) and register.index <= EXEC + 1 < register.index + 2 * register.count:
            self.emit(".exec_written")

    # --- sources ---------------------------------------------------------------------------------------------
    def scalar(self, operand: Operand, kind: str) -> int:
        """The location of a scalar source."""
        value = operand.value
        if isinstance(value, Register):
            if value.file != "s" or operand.negate or operand.absolute:
                raise Unsupported(f"scalar operand {operand}")
            return self.slot(value.index)
        if value is None:
            return self.slot(NULL_READ)
        return self.constants.add(struct.pack("<Q", self.constant(operand, kind)))

    def constant(self, operand: Operand, kind: str) -> int:
        """The bits of a literal operand of this type, 64 of them for wide types, else 32."""
        value = operand.value
        if isinstance(value, float):
            return _float_bits(value, kind)
        if not isinstance(value, int):
            raise Unsupported(f"operand {value!r}")
        if kind in ("s16", "i16"):
            return ((value & 0xFFFF) ^ 0x8000) - 0x8000 & 0xFFFFFFFF
        if kind == "u16":
            return value & 0xFFFF
        if kind == "f64" and not -16 <= value <= 64:
            return (value & 0xFFFFFFFF) << 32
        return value & (0xFFFFFFFFFFFFFFFF if kind in _WIDE else 0xFFFFFFFF)

    def row(self, operand: Operand, kind: str) -> int:
        """The location of a vector source of this type, with its modifiers applied."""
        register = operand.value
        if isinstance(register, Register) and register.file != "s":
            location = self.vector(register)
            if register.half == 1:
                location = self.step(".high_half", location)
        elif isinstance(register, Register):
            wide = kind in _WIDE
            location = self.temporary(2 if wide else 1)
            self.emit(".broadcast2" if wide else ".broadcast", d=location, a=self.slot(register.index))
        else:
            location = self.constant_row(self.constant(operand, kind), kind)
        return self.signed(location, operand, kind)

    def constant_row(self, bits: int, kind: str = "u32") -> int:
        """The location of a row (two for wide types) with one value in every lane."""
        low = struct.pack("<I", bits & 0xFFFFFFFF) * 64
        return self.constants.add(low + struct.pack("<I", bits >> 32) * 64 if kind in _WIDE else low)

    def signed(self, location: int, operand: Operand, kind: str) -> int:
        """Apply |x| and -x."""
        if not operand.negate and not operand.absolute:
            return location
        flags = (ABSOLUTE if operand.absolute else 0) | (NEGATE if operand.negate else 0)
        step = ".modify_f64" if kind in _WIDE else ".modify_f16" if kind in _HALF else ".modify_f32"
        return self.step(step, location, rows=2 if kind in _WIDE else 1, immediate=flags)

    def step(self, function: str, source: int, rows: int = 1, **fields: int) -> int:
        """Run rows through a step and return the location of the result, of as many rows."""
        result = self.temporary(rows)
        self.emit(function, d=result, a=source, **fields)
        return result

    def mask(self, operand: Operand) -> int:
        """The location of a mask of lanes."""
        return self.scalar(operand, "u64")


def without_modifiers(operand: Operand) -> Operand:
    """The bare operand."""
    return replace(operand, negate=False, absolute=False, sign_extend=False)


def integer_modifier(record: Instruction, name: str, missing: int = 0) -> int:
    """An integer modifier such as `offset:16`.

    Raises:
        Unsupported: it is not an integer.
    """
    value = record.modifiers.get(name, missing)
    if not isinstance(value, int):
        raise Unsupported(f"{name}:{value}")
    return value


def list_modifier(record: Instruction, name: str, missing: tuple[int, ...]) -> tuple[int, ...]:
    """A list modifier such as `op_sel:[0,1]`, padded with the missing value's tail."""
    value = record.modifiers.get(name, missing)
    if not isinstance(value, tuple):
        raise Unsupported(f"{name}:{value}")
    return (*value, *missing[len(value) :])


def _float_bits(value: float, kind: str) -> int:
    if kind in ("u64", "i64", "f64"):
        return int.from_bytes(struct.pack("<d", value), "little")
    if kind == "bf16":
        return int.from_bytes(struct.pack("<f", value), "little") >> 16
    if kind in _HALF:
        return int.from_bytes(struct.pack("<e", value), "little")
    return int.from_bytes(struct.pack("<f", value), "little")
