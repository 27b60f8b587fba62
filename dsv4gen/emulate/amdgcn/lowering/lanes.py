"""Lower instructions that move values between lanes, or between lanes and scalars."""

from __future__ import annotations

import re

from dsv4gen.emulate.amdgcn.lowering.builder import Builder, Unsupported, integer_modifier, list_modifier
from dsv4gen.emulate.amdgcn.program import Instruction, Operand, Register

_SWIZZLE = re.compile(r"swizzle\((\w+),\s*(.*)\)")


def lower_lanes(builder: Builder, record: Instruction, name: str) -> bool:
    """Lane moves; False for other instructions."""
    lowering = _LOWERINGS.get(name)
    if lowering is None:
        return False
    lowering(builder, record, name)
    return True


def _row(builder: Builder, operand: Operand) -> int:
    register = operand.value
    if not isinstance(register, Register) or register.file == "s":
        raise Unsupported(f"vector register expected, not {register!r}")
    return builder.vector(register)


def _read_first_lane(builder: Builder, record: Instruction, _: str) -> None:
    target, source = record.operands
    result = builder.scalar_result(target)
    builder.emit(".read_first_lane", d=result, a=builder.row(source, "u32"))
    builder.after_scalar_write(target)


def _read_lane(builder: Builder, record: Instruction, _: str) -> None:
    target, source, lane = record.operands
    result = builder.scalar_result(target)
    builder.emit(".read_lane", d=result, a=builder.row(source, "u32"), b=builder.scalar(lane, "u32"))
    builder.after_scalar_write(target)


def _write_lane(builder: Builder, record: Instruction, _: str) -> None:
    target, value, lane = record.operands
    builder.emit(
        ".write_lane",
        d=_row(builder, target),
        a=builder.scalar(value, "u32"),
        b=builder.scalar(lane, "u32"),
    )


def _gather(builder: Builder, record: Instruction, name: str) -> None:
    target, address, data = record.operands
    step = ".scatter" if name == "ds_permute_b32" else ".gather"
    builder.emit(
        step,
        d=_row(builder, target),
        a=builder.row(address, "u32"),
        b=builder.row(data, "u32"),
        immediate=integer_modifier(record, "offset"),
        immediate2=int(name == "ds_bpermute_fi_b32"),
    )


def _swizzle(builder: Builder, record: Instruction, _: str) -> None:
    target, source = record.operands
    control = swizzle_control(record.modifiers.get("offset", 0))
    builder.emit(".swizzle", d=_row(builder, target), a=_row(builder, source), immediate=control)


def swizzle_control(value: object) -> int:
    """The 16-bit control of ds_swizzle from a number or from `swizzle(MODE, ...)`.

    Raises:
        Unsupported: an unknown mode.
    """
    if isinstance(value, int):
        return value
    match = _SWIZZLE.fullmatch(str(value))
    if match is None:
        raise Unsupported(f"offset:{value}")
    mode, rest = match[1], [part.strip() for part in match[2].split(",")]
    if mode == "BITMASK_PERM":
        return _bit_mask(rest[0].strip('"'))
    numbers = [int(part, 0) for part in rest]
    if mode == "QUAD_PERM":
        return 0x8000 | sum(lane << 2 * index for index, lane in enumerate(numbers))
    if mode == "SWAP":
        return numbers[0] << 10 | 0x1F
    if mode == "REVERSE":
        return (numbers[0] - 1) << 10 | 0x1F
    if mode == "BROADCAST":
        return (32 - numbers[0]) & 0x1F | numbers[1] << 5
    raise Unsupported(f"swizzle mode {mode}")


def _bit_mask(letters: str) -> int:
    """`BITMASK_PERM`: one letter per lane-number bit, highest first: 0, 1, p(reserve), i(nvert)."""
    and_mask = or_mask = xor_mask = 0
    for letter in letters:
        and_mask, or_mask, xor_mask = and_mask << 1, or_mask << 1, xor_mask << 1
        and_mask |= letter in "pi"
        or_mask |= letter == "1"
        xor_mask |= letter == "i"
    return and_mask | or_mask << 5 | xor_mask << 10


def _permute_row(builder: Builder, record: Instruction, name: str) -> None:
    target, source, low, high = record.operands
    inactive, bound = list_modifier(record, "op_sel", (0, 0))[:2]
    builder.emit(
        ".permute_row",
        d=_row(builder, target),
        a=_row(builder, source),
        b=builder.scalar(low, "u32"),
        c=builder.scalar(high, "u32"),
        immediate=int("x16" in name),
        immediate2=inactive | bound << 1,
    )


def _permute_row_by(builder: Builder, record: Instruction, name: str) -> None:
    target, source, selectors = record.operands
    inactive = list_modifier(record, "op_sel", (0, 0))[0]
    builder.emit(
        ".permute_row_by",
        d=_row(builder, target),
        a=_row(builder, source),
        b=_row(builder, selectors),
        immediate=int("x16" in name),
        immediate2=inactive,
    )


def _swap_halves(builder: Builder, record: Instruction, _: str) -> None:
    target, source = record.operands
    builder.emit(".swap_halves", d=_row(builder, target), a=_row(builder, source))


def _exchange(builder: Builder, record: Instruction, name: str) -> None:
    first, second = record.operands
    width = 16 if "16" in name else 32
    builder.emit(".exchange", d=_row(builder, first), a=_row(builder, second), immediate=width)


def _pair_rows(builder: Builder, record: Instruction, _: str) -> None:
    """v_pk_mov_b32: op_sel[0] picks a row of the first source, op_sel[1] one of the second."""
    target, first, second = record.operands
    selected = list_modifier(record, "op_sel", (0, 0))
    rows = [
        builder.row(operand, "u64") + 256 * select for operand, select in zip((first, second), selected, strict=False)
    ]
    builder.emit(".pair_rows", d=_row(builder, target), a=rows[0], b=rows[1])


def _swap_rows(builder: Builder, record: Instruction, _: str) -> None:
    first, second = record.operands
    builder.emit(".swap_rows", d=_row(builder, first), a=_row(builder, second))


_LOWERINGS = {
    "v_readfirstlane_b32": _read_first_lane,
    "v_readlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    "ds_bpermute_b32": _gather,
    "ds_bpermute_fi_b32": _gather,
    "ds_permute_b32": _gather,
    "ds_swizzle_b32": _swizzle,
    "v_permlane16_b32": _permute_row,
    "v_permlanex16_b32": _permute_row,
    "v_permlane16_var_b32": _permute_row_by,
    "v_permlanex16_var_b32": _permute_row_by,
    "v_permlane64_b32": _swap_halves,
    "v_permlane16_swap_b32": _exchange,
    "v_permlane32_swap_b32": _exchange,
    "v_swap_b32": _swap_rows,
    "v_pk_mov_b32": _pair_rows,
}
