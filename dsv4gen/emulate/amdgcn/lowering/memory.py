"""Lower memory instructions: an address step, then one load, store or atomic step."""

from __future__ import annotations

import re

from dsv4gen.emulate.amdgcn.lowering.builder import Builder, Unsupported, integer_modifier
from dsv4gen.emulate.amdgcn.program import Instruction, Operand, Register
from dsv4gen.emulate.amdgcn.tables.memory import ATOMICS, DWORDS, GFX9_ATOMICS, PARTS

_NAME = re.compile(r"(global|flat|buffer|scratch)_(load|store|atomic)_(\w+)")
_TWO = re.compile(r"ds_(read|write)2(st64)?_b(32|64)")
_TRANSPOSED = re.compile(r"ds_read_b(?:64|96)_tr_b(4|6|8|16)")
_INDEXED = 1


def lower_memory(builder: Builder, record: Instruction, name: str) -> bool:
    """`global_*`, `flat_*`, `buffer_*`, `scratch_*`; False for other instructions."""
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    space, operation, kind = match.groups()
    if operation == "atomic":
        _lower_atomic(builder, record, space, kind)
        return True
    if "lds" in record.modifiers or kind.startswith("lds_"):
        _lower_load_into_lds(builder, record, space, kind.removeprefix("lds_"))
        return True
    load = operation == "load"
    data, operands = _split_data(record, space, load)
    address, fields = _address(builder, record, space, operands)
    if load:
        fields["d"] = _vector(builder, data)
    else:
        fields["b"] = _vector(builder, data)
    builder.emit(f".{operation}_{transfer(kind)}", a=address, **fields)
    return True


def transfer(kind: str) -> str:
    """The step suffix of a load's or store's type.

    Raises:
        Unsupported: an unknown type.
    """
    if kind in DWORDS:
        return f"x{DWORDS[kind]}"
    if kind in PARTS:
        size, extend, half = PARTS[kind]
        return f"{size}_{extend}_{half}"
    raise Unsupported(f"memory type {kind}")


def _split_data(record: Instruction, space: str, load: bool) -> tuple[Operand, tuple[Operand, ...]]:
    """The data operand, and the others. Stores of global, flat and scratch name the address first."""
    operands = record.operands
    if load or space == "buffer":
        return operands[0], operands[1:]
    return operands[1], (operands[0], *operands[2:])


def _vector(builder: Builder, operand: Operand) -> int:
    register = operand.value
    if not isinstance(register, Register) or register.file == "s":
        raise Unsupported(f"data {register!r}")
    return builder.vector(register)


def _address(
    builder: Builder, record: Instruction, space: str, operands: tuple[Operand, ...]
) -> tuple[int, dict[str, int]]:
    """Rows of 64-bit addresses, and what the access step needs besides them."""
    offset = integer_modifier(record, "offset")
    if space == "buffer":
        return _buffer_address(builder, record, operands, offset)
    vector = operands[0]
    base = operands[1] if len(operands) > 1 else Operand(None)
    if space == "scratch":
        result = builder.temporary(2)
        row = builder.constant_row(0) if vector.value is None else builder.row(vector, "u32")
        builder.emit(".address_scratch", d=result, a=row, b=builder.scalar(base, "u32"), immediate=offset)
        return result, {}
    if base.value is not None:
        result = builder.temporary(2)
        builder.emit(
            ".address_scalar_base",
            d=result,
            a=builder.row(vector, "u32"),
            b=builder.scalar(base, "u64"),
            immediate=offset,
        )
        return result, {}
    row = builder.row(vector, "u64")
    if offset == 0:
        return row, {}
    result = builder.temporary(2)
    builder.emit(".address_global", d=result, a=row, immediate=offset)
    return result, {}


def _buffer_address(
    builder: Builder, record: Instruction, operands: tuple[Operand, ...], offset: int
) -> tuple[int, dict[str, int]]:
    vector, descriptor, scalar = operands
    indexed, with_offset = "idxen" in record.modifiers, "offen" in record.modifiers
    zero = builder.constant_row(0)
    offsets = indices = zero
    if indexed or with_offset:
        first = builder.row(vector, "u32")
        indices = first if indexed else zero
        # With both switches the pair is (index, offset).
        offsets = (first + 256 if indexed else first) if with_offset else zero
    result, left = builder.temporary(2), builder.temporary()
    builder.emit(
        ".address_buffer",
        d=result,
        a=offsets,
        c=indices,
        b=builder.scalar(descriptor, "u64"),
        e=builder.scalar(scalar, "u32"),
        x=left,
        immediate=offset,
        immediate2=_INDEXED if indexed else 0,
    )
    return result, {"x": left}


def _lower_load_into_lds(builder: Builder, record: Instruction, space: str, kind: str) -> None:
    """Loads that write LDS at M0 + offset + lane * size instead of a register."""
    size = 4 * DWORDS[kind] if kind in DWORDS else PARTS[kind][0]
    address, fields = _address(builder, record, space, record.operands)
    offset = integer_modifier(record, "offset")
    builder.emit(f".load_into_lds_{size}", a=address, immediate=offset, **fields)


def _lower_atomic(builder: Builder, record: Instruction, space: str, kind: str) -> None:
    operation = atomic_operation(kind)
    returns = "sc0" in record.modifiers and builder.generation.family == "cdna"
    returns = returns or "glc" in record.modifiers or "RETURN" in str(record.modifiers.get("th", ""))
    operands = record.operands
    if space == "buffer":
        data, rest = operands[0], operands[1:]
        result = data
    else:
        result = operands[0]
        operands = operands[1:] if returns else operands
        data, rest = operands[1], (operands[0], *operands[2:])
    address, fields = _address(builder, record, space, rest)
    location = _vector(builder, data)
    rows = 2 if ATOMICS[operation][0] == "u64" else 1
    fields.pop("x", None)
    builder.emit(
        f".atomic_{operation}",
        a=address,
        b=location,
        c=location + 256 * rows if operation.startswith("cmpswap") else location,
        d=_vector(builder, result) if returns else 0,
        immediate=int(returns),
    )


def atomic_operation(kind: str) -> str:
    """Our name of an atomic operation in any generation's spelling.

    Raises:
        Unsupported: an unknown operation.
    """
    name = GFX9_ATOMICS.get(kind, kind).replace("min_num_", "min_").replace("max_num_", "max_")
    if name not in ATOMICS:
        raise Unsupported(f"atomic operation {kind}")
    return name


def lower_two(builder: Builder, record: Instruction, name: str) -> bool:
    """`ds_read2_*` and `ds_write2_*`; False for other instructions."""
    match = _TWO.fullmatch(name)
    if match is None:
        return False
    dwords = int(match[3]) // 32
    unit = 4 * dwords * (64 if match[2] else 1)
    offsets = {
        "immediate": integer_modifier(record, "offset0") * unit,
        "immediate2": integer_modifier(record, "offset1") * unit,
    }
    operands = record.operands
    if match[1] == "read":
        address = builder.row(operands[1], "u32")
        builder.emit(f".lds_load_two_x{dwords}", d=_vector(builder, operands[0]), a=address, **offsets)
    else:
        address = builder.row(operands[0], "u32")
        first, second = _vector(builder, operands[1]), _vector(builder, operands[2])
        builder.emit(f".lds_store_two_x{dwords}", a=address, b=first, c=second, **offsets)
    return True


def lower_lds(builder: Builder, record: Instruction, name: str) -> bool:
    """`ds_*` loads, stores and atomics; False for other instructions."""
    if lower_two(builder, record, name):
        return True
    match = re.fullmatch(r"ds_(read|write)_(\w+)", name)
    offset = integer_modifier(record, "offset")
    operands = record.operands
    if match and (match[2] in DWORDS or match[2] in PARTS):
        step = transfer(match[2])
        if match[1] == "read":
            address = builder.row(operands[1], "u32")
            builder.emit(f".lds_load_{step}", d=_vector(builder, operands[0]), a=address, immediate=offset)
        else:
            address = builder.row(operands[0], "u32")
            builder.emit(f".lds_store_{step}", a=address, b=_vector(builder, operands[1]), immediate=offset)
        return True
    match = _TRANSPOSED.fullmatch(name)
    if match:
        address = builder.row(operands[1], "u32")
        target = _vector(builder, operands[0])
        builder.emit(f".lds_load_transposed_b{match[1]}", d=target, a=address, immediate=offset)
        return True
    return _lower_lds_atomic(builder, record, name, offset)


_LDS_ATOMIC = re.compile(r"ds_(\w+?)(_rtn)?_([ubif](?:32|64)|f16|bf16)")


def _lower_lds_atomic(builder: Builder, record: Instruction, name: str, offset: int) -> bool:
    match = _LDS_ATOMIC.fullmatch(name)
    if match is None:
        return False
    operation, returns, kind = match[1], bool(match[2]), match[3]
    swapped = operation == "cmpst"  # gfx9: the compared value comes first
    operation = {"wrxchg": "swap", "cmpst": "cmpswap", "cmpstore": "cmpswap"}.get(operation, operation)
    ours = f"{operation}_{kind}"
    if ours not in ATOMICS:
        return False
    operands = record.operands[1:] if returns else record.operands
    data = _vector(builder, operands[1])
    other = _vector(builder, operands[2]) if len(operands) > 2 else data
    if swapped:
        data, other = other, data
    builder.emit(
        f".lds_atomic_{ours}",
        d=_vector(builder, record.operands[0]) if returns else 0,
        a=builder.row(operands[0], "u32"),
        b=data,
        c=other,
        immediate=offset,
        immediate2=int(returns),
    )
    return True
