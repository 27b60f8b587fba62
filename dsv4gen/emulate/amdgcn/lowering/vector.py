"""Lower vector instructions with a table row: operands, modifiers (DPP, SDWA, op_sel, output), dual issue."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dsv4gen.emulate.amdgcn.lowering.builder import (
    Builder,
    Unsupported,
    integer_modifier,
    list_modifier,
    without_modifiers,
)
from dsv4gen.emulate.amdgcn.names import encoding
from dsv4gen.emulate.amdgcn.program import Instruction, Operand, Register
from dsv4gen.emulate.amdgcn.registers import NULL_WRITE, VCC
from dsv4gen.emulate.amdgcn.tables.half import KEEP_HIGH_HALF
from dsv4gen.emulate.amdgcn.tables.rows import SOURCE_NAMES, Row

_WIDE = ("u64", "i64", "f64")
_HALF = ("u16", "i16", "f16", "bf16")
_FIELDS = {
    "BYTE_0": (0, 8),
    "BYTE_1": (8, 8),
    "BYTE_2": (16, 8),
    "BYTE_3": (24, 8),
    "WORD_0": (0, 16),
    "WORD_1": (16, 16),
    "DWORD": (0, 32),
}
_UNUSED = {"UNUSED_PAD": 0, "UNUSED_SEXT": 1, "UNUSED_PRESERVE": 2}
#: modifier -> number of runtime/lanes.h `DppKind`
DPP_KINDS = {
    "quad_perm": 0,
    "row_shl": 1,
    "row_shr": 2,
    "row_ror": 3,
    "row_mirror": 4,
    "row_half_mirror": 5,
    "row_newbcast": 8,
    "row_share": 8,
    "row_xmask": 9,
    "wave_shr": 10,
    "wave_shl": 11,
    "wave_ror": 12,
    "wave_rol": 13,
    "dpp8": 14,
}


@dataclass(frozen=True)
class _Result:
    """Where a result is computed, and where it belongs when a last step has to move it there."""

    location: int
    final: int
    register: Register


def lower_vector(builder: Builder, record: Instruction, row: Row, function: str) -> None:
    """One instruction whose first result is a row of lanes."""
    record = _with_implicit_mask(record, row)
    _check_operand_count(record, row)
    results = record.operands[: len(row.results)]
    sources = record.operands[len(row.results) :]
    moved = encoding(record.mnemonic) == "dpp" or _dpp_kind(record) is not None
    locations = source_locations(builder, record, row, sources)
    result = _result_place(builder, record, row, results[0])
    fields = dict(zip(SOURCE_NAMES, locations, strict=False))
    if len(row.results) > 1:
        fields["m"] = builder.scalar_result(results[1])
    if row.reads_result:
        fields["x"] = _old_value(builder, row, result)
    if "option" in row.expression:
        high = result.register.half == 1
        fields["immediate"] = option_bits(record) | int(high) << len(row.sources)
    builder.emit(function, d=result.location, **fields)
    if result.location != result.final:
        _finish(builder, record, row, result)
    if moved:
        builder.emit(".exec_restore")


def lower_compare(builder: Builder, record: Instruction, row: Row, function: str, *, writes_exec: bool) -> None:
    """A comparison: the result is a mask; `v_cmpx` writes EXEC, on RDNA nothing else."""
    explicit = len(record.operands) - len(row.sources)
    if explicit not in (0, 1) or (explicit == 0 and not writes_exec):
        raise Unsupported(f"{len(record.operands)} operands")
    moved = _dpp_kind(record) is not None
    locations = source_locations(builder, record, row, record.operands[explicit:])
    target = builder.scalar_result(record.operands[0]) if explicit else builder.slot(NULL_WRITE)
    builder.emit(function, d=target, a=locations[0], b=locations[1])
    if moved:
        builder.emit(".exec_restore")
    if writes_exec:
        builder.emit(".exec_from_mask", a=target)
    elif explicit:
        builder.after_scalar_write(record.operands[0])


def lower_dual(builder: Builder, first: tuple[Instruction, Row, str], second: tuple[Instruction, Row, str]) -> None:
    """A dual-issue pair: both halves read their sources before either writes."""
    record, row, function = first
    register = record.operands[0].value
    if not isinstance(register, Register):
        raise Unsupported("dual-issue result")
    record = _with_implicit_mask(record, row)
    held = builder.temporary()
    locations = source_locations(builder, record, row, record.operands[1:])
    fields = dict(zip(SOURCE_NAMES, locations, strict=False))
    final = builder.vector(register)
    builder.emit(function, d=held, x=final, **fields)
    lower_vector(builder, *second)
    builder.emit(".copy_row", d=final, a=held)


def source_locations(builder: Builder, record: Instruction, row: Row, sources: tuple[Operand, ...]) -> list[int]:
    """Locations of all sources with every input modifier applied."""
    selected = list_modifier(record, "op_sel", (0, 0, 0, 0))
    locations = []
    for index, (operand, kind) in enumerate(zip(sources, row.sources, strict=True)):
        if kind == "mask":
            locations.append(builder.mask(operand))
        elif kind.endswith("x2"):
            locations.append(pair_location(builder, record, index, operand, kind))
        elif kind == "mix":
            locations.append(_mixed(builder, record, index, operand))
        elif index < 2 and _selection(record, index) is not None:
            locations.append(_selected(builder, record, index, operand, kind))
        elif kind in _HALF and selected[index]:
            high = builder.step(".high_half", builder.row(without_modifiers(operand), "u32"))
            locations.append(builder.signed(high, operand, kind))
        elif index == 0 and _dpp_kind(record) is not None:
            locations.append(_moved(builder, record, operand, kind))
        else:
            locations.append(builder.row(operand, kind))
    return locations


def pair_location(builder: Builder, record: Instruction, index: int, operand: Operand, kind: str) -> int:
    """A packed source: which half (or row) serves which element, and the signs of fp16 and fp32."""
    wide = kind == "f32x2"
    select = list_modifier(record, "op_sel", (0, 0, 0, 0))[index]
    select |= list_modifier(record, "op_sel_hi", (1, 1, 1, 1))[index] << 1
    if kind in ("f16x2", "f32x2"):
        select |= list_modifier(record, "neg_lo", (0, 0, 0, 0))[index] << 2
        select |= list_modifier(record, "neg_hi", (0, 0, 0, 0))[index] << 3
    if isinstance(operand.value, Register):
        source = builder.row(without_modifiers(operand), "u64" if wide else "u32")
    else:
        # A constant fills both rows of an fp32 pair, but only the low half of an fp16 pair.
        bits = builder.constant(operand, {"f32x2": "f32", "f16x2": "f16"}.get(kind, "u32"))
        source = builder.constant_row(bits << 32 | bits, "u64") if wide else builder.constant_row(bits)
    if select == 2:
        return source
    result = builder.temporary(2)
    builder.emit(".arrange_rows" if wide else ".arrange_halves", d=result, a=source, immediate=select)
    return result


def _mixed(builder: Builder, record: Instruction, index: int, operand: Operand) -> int:
    """A source of v_fma_mix: fp32, or with op_sel_hi the fp16 half that op_sel names."""
    is_half = list_modifier(record, "op_sel_hi", (0, 0, 0))[index]
    if not is_half:
        return builder.row(operand, "f32")
    high = list_modifier(record, "op_sel", (0, 0, 0))[index]
    kind = "u32" if isinstance(operand.value, Register) else "f16"
    source = builder.row(without_modifiers(operand), kind)
    return builder.signed(builder.step(".widen_half", source, immediate=high), operand, "f32")


def option_bits(record: Instruction) -> int:
    """What an expression calls `option`: a truth table, signedness of integers, or op_sel as bits.

    For conversions between sizes op_sel's entries are in text order: sources, then the result's position in bits
    2 and 3. byte_sel is the same number in one piece.
    """
    if "bitop3" in record.modifiers:
        return integer_modifier(record, "bitop3")
    if "neg_lo" in record.modifiers:
        return sum(bit << index for index, bit in enumerate(list_modifier(record, "neg_lo", (0,))))
    if "byte_sel" in record.modifiers:
        byte = integer_modifier(record, "byte_sel")
        return byte | byte << 2
    return sum(bit << index for index, bit in enumerate(list_modifier(record, "op_sel", (0,))))


def _with_implicit_mask(record: Instruction, row: Row) -> Instruction:
    """VOP2 forms do not print the VCC they read."""
    missing = len(row.results) + len(row.sources) - len(record.operands)
    if missing == 1 and row.sources[-1] == "mask":
        return replace(record, operands=(*record.operands, Operand(Register("s", VCC, 2))))
    return record


def _check_operand_count(record: Instruction, row: Row) -> None:
    expected = len(row.results) + len(row.sources)
    if len(record.operands) != expected:
        raise Unsupported(f"{len(record.operands)} operands where the table has {expected}")


def _selection(record: Instruction, index: int) -> str | None:
    value = record.modifiers.get(f"src{index}_sel")
    return value if isinstance(value, str) else None


def _selected(builder: Builder, record: Instruction, index: int, operand: Operand, kind: str) -> int:
    """SDWA: a byte or word of the source, then its modifiers."""
    first, width = _FIELDS[_selection(record, index) or "DWORD"]
    location = builder.row(without_modifiers(operand), "u32")
    if width != 32:
        location = builder.step(
            ".select_field", location, immediate=first | width << 8, immediate2=int(operand.sign_extend)
        )
    return builder.signed(location, operand, kind)


def _dpp_kind(record: Instruction) -> str | None:
    for name in record.modifiers:
        if name in DPP_KINDS or name == "row_bcast":
            return name
    return None


def dpp_control(record: Instruction) -> tuple[int, int]:
    """The control word and the kind that runtime/lanes.h expects."""
    name = _dpp_kind(record)
    value = record.modifiers[name] if name else 0
    if name == "row_bcast":
        kind, control = (6 if value == 15 else 7), 0
    elif isinstance(value, tuple):
        width = 3 if name == "dpp8" else 2
        kind, control = DPP_KINDS[str(name)], sum(lane << width * i for i, lane in enumerate(value))
    else:
        kind, control = DPP_KINDS[str(name)], int(value)
    control |= integer_modifier(record, "row_mask", 15) << 32 | integer_modifier(record, "bank_mask", 15) << 36
    control |= integer_modifier(record, "bound_ctrl") << 40 | integer_modifier(record, "fi") << 41
    return control, kind


def _moved(builder: Builder, record: Instruction, operand: Operand, kind: str) -> int:
    """DPP: a copy whose lanes come from other lanes; EXEC is narrowed until the instruction ends."""
    control, number = dpp_control(record)
    source = builder.row(without_modifiers(operand), kind)
    wide = kind in _WIDE
    result = builder.temporary(2 if wide else 1)
    builder.emit(".dpp_begin", d=result, a=source, immediate=control, immediate2=number)
    if wide:
        builder.emit(".dpp_move", d=result + 256, a=source + 256, immediate=control & 0xFFFFFFFF, immediate2=number)
    return builder.signed(result, operand, kind)


def _result_place(builder: Builder, record: Instruction, row: Row, operand: Operand) -> _Result:
    register = operand.value
    if not isinstance(register, Register) or register.file == "s":
        raise Unsupported(f"result {register!r}")
    final = builder.vector(register)
    direct = not (_output_modifiers(record) or _result_field(builder, record, row, register))
    return _Result(final if direct else builder.temporary(2), final, register)


def _output_modifiers(record: Instruction) -> bool:
    return any(name in record.modifiers for name in ("clamp", "mul", "div"))


def _result_field(builder: Builder, record: Instruction, row: Row, register: Register) -> tuple[int, int, int] | None:
    """The field of the result register that is written: (first bit, width, what happens to the rest)."""
    named = record.modifiers.get("dst_sel")
    if isinstance(named, str) and named != "DWORD":
        return (*_FIELDS[named], _UNUSED[str(record.modifiers.get("dst_unused", "UNUSED_PAD"))])
    if row.results[0] not in _HALF:
        return None
    if row.sources[0] == "mix":
        return (16 if "mixhi" in row.name else 0), 16, 2
    if "option" in row.expression:
        return (0, 16, 2) if builder.generation.keeps_high_half else None
    selected = list_modifier(record, "op_sel", (0, 0, 0, 0))
    high = register.half == 1 or bool(selected[len(row.sources)])
    if high:
        return 16, 16, 2
    keeps = builder.generation.keeps_high_half or register.half == 0 or "op_sel" in record.modifiers
    keeps = keeps or row.name in KEEP_HIGH_HALF
    return (0, 16, 2) if keeps and not isinstance(named, str) else None


def _old_value(builder: Builder, row: Row, result: _Result) -> int:
    """The location of the accumulator that an instruction such as v_fmac reads."""
    high = result.register.half == 1 and row.results[0] in _HALF
    return builder.step(".high_half", result.final) if high else result.final


def _finish(builder: Builder, record: Instruction, row: Row, result: _Result) -> None:
    """Output scaling and clamping, then the move into a field of the result register."""
    kind = row.results[0]
    field = _result_field(builder, record, row, result.register)
    source = result.location
    if _output_modifiers(record):
        step = f".finish_{kind}"
        if not kind.startswith("f"):
            raise Unsupported("clamp of an integer")
        power = {2: 1, 4: 2}.get(integer_modifier(record, "mul"), 0)
        power = 3 if "div" in record.modifiers else power
        target = builder.temporary(2) if field else result.final
        builder.emit(step, d=target, a=source, immediate=power, immediate2=integer_modifier(record, "clamp"))
        source = target
    if field:
        first, width, rest = field
        builder.emit(".insert_field", d=result.final, a=source, immediate=first | width << 8, immediate2=rest)
