"""Lower a whole program to ops: one pass over the instructions, then branch targets become op indices.

Every instruction without a translation is collected; the error lists them all.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dsv4gen.base.errors import EmulationError
from dsv4gen.emulate.amdgcn.generation import Generation, generation_of
from dsv4gen.emulate.amdgcn.layout import OP_FORMAT
from dsv4gen.emulate.amdgcn.lowering.builder import Builder, Op, Unsupported
from dsv4gen.emulate.amdgcn.lowering.lanes import lower_lanes
from dsv4gen.emulate.amdgcn.lowering.matrix import lower_matrix
from dsv4gen.emulate.amdgcn.lowering.memory import lower_lds, lower_memory
from dsv4gen.emulate.amdgcn.lowering.relative import IndexMode, lower_relative
from dsv4gen.emulate.amdgcn.lowering.scalar import (
    lower_mode,
    lower_program_counter,
    lower_save_exec,
    lower_scalar,
    lower_scalar_load,
)
from dsv4gen.emulate.amdgcn.lowering.vector import DPP_KINDS, lower_compare, lower_dual, lower_vector
from dsv4gen.emulate.amdgcn.names import canonical
from dsv4gen.emulate.amdgcn.program import Instruction, Program, Register
from dsv4gen.emulate.amdgcn.tables import compare, convert, float32, half, integer, packed, scalar, steps
from dsv4gen.emulate.amdgcn.tables.rows import Row

_VECTOR: Mapping[str, Row] = {
    **integer.VECTOR,
    **float32.VECTOR,
    **half.VECTOR,
    **packed.VECTOR,
    **convert.VECTOR,
}

#: Hints, waits and cache control: results land at once here, so they do nothing.
_NOTHING = re.compile(
    r"s_(wait\w*|nop|sleep\w*|setprio\w*|clause|delay_alu|set_inst_prefetch_distance|inst_prefetch|icache_inv"
    r"|dcache_\w+|sendmsg|sethalt|ttrace\w*|code_end|prefetch_\w+|barrier_signal|incperflevel|decperflevel|version)"
    r"|buffer_(inv|wbl2|wbinvl1\w*|gl[01]_inv)|global_(inv|wb|wbinv)|v_nop|v_pipeflush"
)
#: Modifiers that some lowering reads, and cache hints, which change nothing here. Others are refused.
_MODIFIERS = frozenset(
    (
        *(
            "offset",
            "offset0",
            "offset1",
            "offen",
            "idxen",
            "lds",
            "sc0",
            "sc1",
            "nt",
            "glc",
            "slc",
            "dlc",
            "th",
            "scope",
        ),
        *(
            "clamp",
            "mul",
            "div",
            "op_sel",
            "op_sel_hi",
            "neg_lo",
            "neg_hi",
            "bitop3",
            "byte_sel",
            "cbsz",
            "abid",
            "blgp",
        ),
        *("dst_sel", "dst_unused", "src0_sel", "src1_sel", "row_mask", "bank_mask", "bound_ctrl", "fi", "row_bcast"),
        *DPP_KINDS,
    )
)
_BARRIERS = ("s_barrier", "s_barrier_wait")


@dataclass(frozen=True)
class Lowered:
    """A program ready to run: ops, constants, and how many rows a wave needs."""

    program: Program
    generation: Generation
    ops: tuple[Op, ...]
    constants: bytes
    registers: int
    temporaries: int
    op_of_instruction: tuple[int, ...]

    @property
    def functions(self) -> list[str]:
        """The instruction functions that occur, in a fixed order."""
        return sorted({op.function for op in self.ops})

    def packed(self, addresses: Mapping[str, int]) -> bytes:
        """The ops as the runtime's array; `addresses` has the functions' addresses."""
        parts = []
        for index, op in enumerate(self.ops):
            last = index + 1 == len(self.ops) or self.ops[index + 1].instruction != op.instruction
            parts.append(
                struct.pack(
                    OP_FORMAT,
                    addresses[op.function],
                    op.instruction,
                    int(last),
                    _signed(op.immediate),
                    _signed(op.immediate2),
                    *(op.d, op.m, op.a, op.b, op.c, op.e, op.x, op.y),
                )
            )
        return b"".join(parts)


def lower(program: Program) -> Lowered:
    """Lower all instructions of a program.

    Raises:
        EmulationError: instructions without a translation; the message lists all of them.
    """
    generation = generation_of(program.descriptor.target)
    vectors, accumulators = _register_counts(program)
    builder = Builder(generation, program.descriptor.wave, vectors, accumulators)
    mode = IndexMode()
    first_op: list[int] = []
    missing: dict[str, str] = {}
    for index, record in enumerate(program.instructions):
        first_op.append(len(builder.ops))
        builder.begin(index)
        try:
            _lower_instruction(builder, record, _next_address(program, index), mode)
        except Unsupported as error:
            missing.setdefault(record.mnemonic, f"{record.text}: {error.message}")
    if missing:
        listed = "\n  ".join(f"{mnemonic}: {reason}" for mnemonic, reason in sorted(missing.items()))
        raise EmulationError(
            f"{len(missing)} instruction(s) of {program.descriptor.symbol} for {generation.name} "
            f"have no translation:\n  {listed}",
            remedy="add a row to dsv4gen/emulate/amdgcn/tables (docs/emulation.md says how)",
        )
    return Lowered(
        program,
        generation,
        tuple(_with_targets(program, builder.ops, first_op)),
        builder.constants.content,
        builder.registers,
        builder.temporaries,
        tuple(first_op),
    )


def _next_address(program: Program, index: int) -> int:
    if index + 1 < len(program.instructions):
        return program.instructions[index + 1].address
    return program.instructions[index].address + 4


def _register_counts(program: Program) -> tuple[int, int]:
    """Vector registers and accumulators in use."""
    counts = {"v": 1, "a": 0}
    for record in program.instructions:
        both = [record] if record.second is None else [record, record.second]
        for operand in (operand for single in both for operand in single.operands):
            register = operand.value
            if isinstance(register, Register) and register.file in counts:
                counts[register.file] = max(counts[register.file], register.index + register.count)
    return counts["v"], counts["a"]


def _lower_instruction(builder: Builder, record: Instruction, next_address: int, mode: IndexMode) -> None:
    name = canonical(record.mnemonic)
    unknown = [modifier for modifier in record.modifiers if modifier not in _MODIFIERS]
    if unknown:
        raise Unsupported(f"modifier {', '.join(unknown)}")
    if lower_relative(builder, record, name, mode):
        return
    if record.second is not None:
        second = record.second
        lower_dual(builder, _vector_row(record), _vector_row(second))
    elif _NOTHING.fullmatch(name):
        builder.emit(".nothing")
    elif name in steps.CONTROL_STEPS:
        _lower_branch(builder, record, name)
    elif name in _BARRIERS:
        builder.emit(".barrier")
    elif name.startswith("s_endpgm"):
        builder.emit(".end")
    elif name == "s_trap":
        builder.emit(".trap")
    elif name in scalar.SCALAR:
        lower_scalar(builder, record, scalar.SCALAR[name], name)
    elif name in scalar.SAVE_EXEC:
        lower_save_exec(builder, record, name)
    elif (variant := _variant(builder, record, name)) in _VECTOR:
        lower_vector(builder, _without_integer_clamp(record, variant), _VECTOR[variant], variant)
    elif name.startswith("v_cmp"):
        _lower_compare(builder, record, name)
    elif not any(attempt for attempt in _attempts(builder, record, name, next_address)):
        raise Unsupported("no table has it")


def _variant(builder: Builder, record: Instruction, name: str) -> str:
    """The row of the target's fp8 dialect, or of the saturating form of an integer instruction."""
    if builder.generation.fnuz and f"{name}.fnuz" in _VECTOR:
        return f"{name}.fnuz"
    if "clamp" in record.modifiers and f"{name}.clamp" in _VECTOR:
        return f"{name}.clamp"
    return name


def _without_integer_clamp(record: Instruction, variant: str) -> Instruction:
    if not variant.endswith(".clamp"):
        return record
    kept = {name: value for name, value in record.modifiers.items() if name != "clamp"}
    return replace(record, modifiers=kept)


def _attempts(builder: Builder, record: Instruction, name: str, next_address: int) -> Iterator[bool]:
    """Classes that know their instructions by pattern; each yields whether it took this one."""
    yield lower_lanes(builder, record, name)
    yield lower_matrix(builder, record, name)
    yield lower_lds(builder, record, name)
    yield lower_memory(builder, record, name)
    yield lower_scalar_load(builder, record)
    yield lower_program_counter(builder, record, name, next_address)
    yield lower_mode(builder, record, name)


def _vector_row(record: Instruction) -> tuple[Instruction, Row, str]:
    name = canonical(record.mnemonic)
    if name not in _VECTOR:
        raise Unsupported(f"no table has {name}")
    return Instruction(record.mnemonic, record.operands, record.modifiers), _VECTOR[name], name


def _lower_compare(builder: Builder, record: Instruction, name: str) -> None:
    writes_exec = name.startswith("v_cmpx_")
    name = name.replace("v_cmpx_", "v_cmp_")
    if name not in compare.COMPARE:
        raise Unsupported("no table has it")
    lower_compare(builder, record, compare.COMPARE[name], name, writes_exec=writes_exec)


def _lower_branch(builder: Builder, record: Instruction, name: str) -> None:
    target = record.operands[0].value
    if not isinstance(target, int):
        raise Unsupported(f"branch target {target!r}")
    builder.emit(name, immediate=target)


def _with_targets(program: Program, ops: list[Op], first_op: list[int]) -> Iterator[Op]:
    """Replace branch targets, which are addresses so far, by op indices."""
    by_address = {record.address: position for record, position in zip(program.instructions, first_op, strict=True)}
    for op in ops:
        if op.function not in steps.CONTROL_STEPS or not op.function.startswith("s_"):
            yield op
            continue
        if op.immediate not in by_address:
            raise EmulationError(f"branch to {op.immediate:#x}, where no instruction starts")
        yield Op(op.function, op.instruction, immediate=by_address[op.immediate])


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value
