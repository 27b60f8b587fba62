"""Lower moves between registers whose numbers a scalar decides: v_movrels, v_movreld, and gfx9's index mode."""

from __future__ import annotations

from dataclasses import dataclass

from dsv4gen.emulate.amdgcn.lowering.builder import Builder, Unsupported
from dsv4gen.emulate.amdgcn.program import Instruction, Operand, Register
from dsv4gen.emulate.amdgcn.registers import M0

_SOURCE, _RESULT = 1, 2
_SIDES = {"gpr_idx(SRC0)": _SOURCE, "gpr_idx(DST)": _RESULT}


@dataclass
class IndexMode:
    """Between s_set_gpr_idx_on and s_set_gpr_idx_off: the index and the side it applies to; side 0 is off."""

    index: int = 0
    side: int = 0


def lower_relative(builder: Builder, record: Instruction, name: str, mode: IndexMode) -> bool:
    """Relative moves and the index mode; False for other instructions."""
    if name in ("v_movrels_b32", "v_movreld_b32"):
        side = _SOURCE if name == "v_movrels_b32" else _RESULT
        _move(builder, record, builder.slot(M0), side)
    elif name == "s_set_gpr_idx_on":
        index, sides = record.operands
        mode.side = _SIDES.get(str(sides.value), 0)
        if not mode.side:
            raise Unsupported(f"index mode {sides.value}")
        mode.index = builder.scalar(index, "u32")
        builder.emit(".nothing")
    elif name == "s_set_gpr_idx_off":
        mode.side = 0
        builder.emit(".nothing")
    elif mode.side and name == "v_mov_b32":
        _move(builder, record, mode.index, mode.side)
    elif mode.side and name.startswith("v_"):
        raise Unsupported("index mode")
    else:
        return False
    return True


def _move(builder: Builder, record: Instruction, index: int, side: int) -> None:
    target, source = record.operands
    first = (source if side == _SOURCE else target).value
    if not isinstance(first, Register) or first.file == "s":
        raise Unsupported(f"relative register {first!r}")
    row = builder.row(source, "u32") if side == _RESULT else builder.vector(first)
    builder.emit(
        ".move_relative",
        d=_vector(builder, target),
        a=row,
        b=index,
        immediate=first.index,
        immediate2=side,
    )


def _vector(builder: Builder, operand: Operand) -> int:
    if not isinstance(operand.value, Register):
        raise Unsupported(f"result {operand.value!r}")
    return builder.vector(operand.value)
