"""Lower scalar instructions: table rows, saveexec, scalar loads, program counter and mode registers."""

from __future__ import annotations

import re

from dsv4gen.emulate.amdgcn.lowering.builder import Builder, Unsupported, integer_modifier
from dsv4gen.emulate.amdgcn.program import CODE_BASE, Instruction, Operand
from dsv4gen.emulate.amdgcn.tables.rows import SOURCE_NAMES, Row

_LOAD = re.compile(r"s_(buffer_)?load_(?:dword(?:x(\d+))?|b(\d+)|([iu](?:8|16)))")
_MODE_REGISTER = re.compile(r"hwreg\((?:HW_REG_(?:WAVE_)?MODE|1)(?:,\s*(\d+),\s*(\d+))?\)")


def lower_scalar(builder: Builder, record: Instruction, row: Row, function: str) -> None:
    """One instruction over the scalar file."""
    has_result = row.results[0] != "scc"
    expected = len(row.sources) + has_result
    if len(record.operands) != expected:
        raise Unsupported(f"{len(record.operands)} operands where the table has {expected}")
    sources = record.operands[1:] if has_result else record.operands
    fields = {
        name: builder.scalar(operand, kind)
        for name, operand, kind in zip(SOURCE_NAMES, sources, row.sources, strict=False)
    }
    if has_result:
        fields["d"] = builder.scalar_result(record.operands[0])
    builder.emit(function, **fields)
    if has_result:
        builder.after_scalar_write(record.operands[0])


def lower_save_exec(builder: Builder, record: Instruction, function: str) -> None:
    """`s_and_saveexec_b64` and its relatives."""
    target, source = record.operands
    builder.emit(function, d=builder.scalar_result(target), a=builder.mask(source))


def lower_scalar_load(builder: Builder, record: Instruction) -> bool:
    """`s_load_*` and `s_buffer_load_*`; False when the instruction is neither."""
    match = _LOAD.fullmatch(record.mnemonic)
    if match is None:
        return False
    target, base = record.operands[:2]
    # Newer text has both a register and `offset:`; older text has one of them as the third operand.
    offset = record.operands[2] if len(record.operands) > 2 else Operand(0)
    immediate = integer_modifier(record, "offset")
    if isinstance(offset.value, int):
        immediate, offset = immediate + offset.value, Operand(0)
    space = "buffer_" if match[1] else ""
    dwords = int(match[2] or 1) if match[3] is None else int(match[3]) // 32
    step = f".scalar_{space}load_{match[4] or f'x{dwords}'}"
    builder.emit(
        step,
        d=builder.scalar_result(target),
        a=builder.scalar(base, "u64"),
        b=builder.scalar(offset, "u32"),
        immediate=immediate,
    )
    builder.after_scalar_write(target)
    return True


def lower_program_counter(builder: Builder, record: Instruction, name: str, next_address: int) -> bool:
    """`s_getpc`, `s_setpc`, `s_swappc`, `s_call`; False for other instructions."""
    after = CODE_BASE + next_address
    if name == "s_getpc_b64":
        source = builder.constants.add(after.to_bytes(8, "little"))
        builder.emit("s_mov_b64", d=builder.scalar_result(record.operands[0]), a=source)
    elif name == "s_setpc_b64":
        builder.emit(".jump_to_address", a=builder.scalar(record.operands[0], "u64"))
    elif name == "s_swappc_b64":
        builder.emit(
            ".jump_to_address",
            a=builder.scalar(record.operands[1], "u64"),
            d=builder.scalar_result(record.operands[0]),
            immediate=after,
            immediate2=1,
        )
    elif name == "s_call_b64":
        target = record.operands[1].value
        if not isinstance(target, int):
            raise Unsupported(f"call target {target!r}")
        location = builder.constants.add((CODE_BASE + target).to_bytes(8, "little"))
        result = builder.scalar_result(record.operands[0])
        builder.emit(".jump_to_address", a=location, d=result, immediate=after, immediate2=1)
    else:
        return False
    return True


def lower_mode(builder: Builder, record: Instruction, name: str) -> bool:
    """`s_setreg` on the mode register, `s_getreg` of registers that read as 0; False for other instructions."""
    if name in ("s_setreg_b32", "s_setreg_imm32_b32"):
        register, source = record.operands
        match = _MODE_REGISTER.fullmatch(str(register.value))
        if match is None:
            builder.emit(".nothing")
        else:
            first, width = int(match[1] or 0), int(match[2] or 32)
            builder.emit(".set_mode", a=builder.scalar(source, "u32"), immediate=first | width << 8)
        return True
    if name == "s_getreg_b32":
        zero = builder.constants.add(bytes(8))
        builder.emit("s_mov_b32", d=builder.scalar_result(record.operands[0]), a=zero)
        return True
    return False
