"""Lower matrix instructions."""

from __future__ import annotations

from dataclasses import replace

from dsv4gen.emulate.amdgcn.lowering.builder import Builder, Unsupported, integer_modifier, list_modifier
from dsv4gen.emulate.amdgcn.program import Instruction, Operand, Register
from dsv4gen.emulate.amdgcn.tables.matrix import SCALED_FORMATS, MatrixShape, mfma_shape, wmma_shape

_HAS_SCALES = 1 << 8


def lower_matrix(builder: Builder, record: Instruction, name: str) -> bool:
    """`v_mfma_*` and `v_wmma_*`; False for other instructions."""
    if name.startswith("v_wmma_"):
        return _lower_wmma(builder, record, name)
    shape = mfma_shape(name, fnuz=builder.generation.fnuz)
    if shape is None:
        return False
    if name.endswith("f8f6f4"):
        _lower_scaled(builder, record, shape)
        return True
    if "neg" in record.modifiers:
        raise Unsupported("neg")
    control = integer_modifier(record, "cbsz") | integer_modifier(record, "abid") << 4
    control |= integer_modifier(record, "blgp") << 8
    _emit(builder, record, f".mfma_{shape.result}", shape, immediate2=control)
    return True


def _lower_scaled(builder: Builder, record: Instruction, shape: MatrixShape) -> None:
    """f8f6f4: cbsz and blgp name the formats; the scaled form has two more operands."""
    shape = replace(
        shape,
        format_a=SCALED_FORMATS[integer_modifier(record, "cbsz")],
        format_b=SCALED_FORMATS[integer_modifier(record, "blgp")],
    )
    extra = {"immediate2": 0}
    if len(record.operands) > 4:
        scales = record.operands[4:]
        extra["e"], extra["y"] = (builder.row(scale, "u32") for scale in scales)
        low, high = list_modifier(record, "op_sel", (0, 0, 0)), list_modifier(record, "op_sel_hi", (0, 0, 0))
        byte_a, byte_b = low[0] | high[0] << 1, low[1] | high[1] << 1
        extra["immediate2"] = byte_a | byte_b << 4 | _HAS_SCALES
    _emit(builder, record, ".mfma_scaled", shape, **extra)


def _lower_wmma(builder: Builder, record: Instruction, name: str) -> bool:
    negated_low = list_modifier(record, "neg_lo", (0, 0, 0))
    shape = wmma_shape(name, negated_low)
    if shape is None:
        return False
    if "clamp" in record.modifiers or builder.wave != 32:
        raise Unsupported("clamp" if "clamp" in record.modifiers else "wave64")
    negated_high = list_modifier(record, "neg_hi", (0, 0, 0))
    control = int(builder.generation.ids_in_ttmp)
    control |= list_modifier(record, "op_sel", (0, 0, 0))[2] << 1
    for index in range(3):
        # neg_hi on the addend means its absolute value; compilers do not emit it.
        control |= negated_low[index] << (4 + index) | negated_high[index] << (8 + index)
    step = ".wmma_integer" if shape.result == "i32" else ".wmma_float"
    _emit(builder, record, step, shape, immediate2=control)
    return True


def _emit(builder: Builder, record: Instruction, step: str, shape: MatrixShape, **extra: int) -> None:
    target, first, second, addend = record.operands[:4]
    builder.emit(
        step,
        d=_rows(builder, target),
        a=_rows(builder, first),
        b=_rows(builder, second),
        immediate=shape.packed(),
        **_addend(builder, addend, shape),
        **extra,
    )


def _rows(builder: Builder, operand: Operand) -> int:
    register = operand.value
    if not isinstance(register, Register) or register.file == "s":
        raise Unsupported(f"matrix operand {register!r}")
    return builder.vector(register)


def _addend(builder: Builder, operand: Operand, shape: MatrixShape) -> dict[str, int]:
    if isinstance(operand.value, Register):
        return {"c": _rows(builder, operand)}
    kind = {"i32": "u32", "f64": "f64"}.get(shape.result, "f32")
    if shape.result in ("f16", "bf16"):
        kind = shape.result
    return {"c": builder.constant_row(builder.constant(operand, kind), kind), "x": 1}
