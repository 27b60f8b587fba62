"""Front end 1: the assembly text that clang, ziglang and Triton emit. Needs no tool and no library.

Instructions get one dword of address space each. PC-relative symbol references are resolved by what they mean:
the compiler chose the addend so that `symbol@rel32@lo+N`, added to the last s_getpc_b64's result, is the symbol.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from dsv4gen.base.errors import CompileError, Place
from dsv4gen.emulate.amdgcn.assembly_scan import LABEL, scan_assembly, without_comment
from dsv4gen.emulate.amdgcn.data_section import DataSection
from dsv4gen.emulate.amdgcn.expressions import evaluate
from dsv4gen.emulate.amdgcn.instruction_text import parse_instruction
from dsv4gen.emulate.amdgcn.metadata import (
    USER_GROUPS,
    DescriptorFields,
    build_descriptor,
    kernel_entry,
    target_of,
)
from dsv4gen.emulate.amdgcn.program import CODE_BASE, Expression, Instruction, Operand, Program

_INLINED_AT = re.compile(r"@\[ (.+?):(\d+):\d+")
_RELATIVE = re.compile(r"(.+)@(rel32|gotpcrel32|abs32)@(lo|hi)(?:\+\d+)?")


@dataclass
class _Reader:
    """What has been read of the code so far."""

    file: str
    files: Mapping[str, str]
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    source: Place | None = None
    callers: tuple[Place, ...] = ()


def read_assembly(text: str, symbol: str, *, file: str = "kernel.s") -> Program:
    """The program of one kernel; `file` names the text in messages.

    Raises:
        CompileError: no such kernel, or text that is not AMD assembly.
    """
    assembly = scan_assembly(text)
    entry = kernel_entry(assembly.metadata, symbol)
    if symbol not in assembly.descriptors or symbol not in assembly.functions:
        raise CompileError(f"{file} has metadata but no code for kernel {symbol!r}")
    reader = _Reader(file, assembly.files)
    for lines in assembly.functions_of(symbol):
        _read_function(reader, lines)
    fields = _descriptor_fields(assembly.descriptors[symbol], entry)
    descriptor = build_descriptor(symbol, target_of(assembly.target), entry, fields)
    data_offset = (4 * len(reader.instructions) + 255) // 256 * 256
    data = copy.deepcopy(assembly.data)
    symbols = {**reader.labels, **{name: data_offset + offset for name, offset in data.labels.items()}}
    instructions = _Resolver(symbols, data, data_offset).resolve(reader.instructions)
    return Program(instructions, symbols, descriptor, bytes(data.content), data_offset, tuple(data.relocations))


def _read_function(reader: _Reader, lines: Iterable[tuple[int, str]]) -> None:
    reader.source, reader.callers = None, ()
    for number, line in lines:
        code = without_comment(line)
        label = LABEL.match(code) if code[:1] not in ("\t", " ", "") else None
        while label:
            reader.labels[label[1] or label[2]] = 4 * len(reader.instructions)
            code = code[label.end() :]
            label = LABEL.match(code)
        code = code.strip()
        if code.startswith("."):
            if code.startswith(".loc"):
                _set_source(reader, code, line)
        elif code and "=" not in code:
            _read_instruction(reader, code, number)


def _read_instruction(reader: _Reader, code: str, number: int) -> None:
    place = reader.source or Place(reader.file, number)
    address = 4 * len(reader.instructions)
    text = " ".join(code.split())
    reader.instructions.append(parse_instruction(text, address, place, reader.callers))


def _set_source(reader: _Reader, code: str, line: str) -> None:
    """`.loc FILE LINE COLUMN`; the calls an instruction was inlined through are told in the comment only."""
    _, file, row = code.split()[:3]
    reader.source = Place(reader.files.get(file, reader.file), int(row)) if int(row) else None
    reader.callers = tuple(Place(name, int(at)) for name, at in _INLINED_AT.findall(line))


def _descriptor_fields(directives: Mapping[str, str], entry: Mapping[str, object]) -> DescriptorFields:
    def number(name: str) -> int:
        return int(directives.get(f".amdhsa_{name}", "0"), 0)

    def size(name: str) -> int:
        # With calls the directive may be an expression over other functions' sizes; the metadata has its value.
        text = directives.get(f".amdhsa_{name}", "0")
        value = int(text, 0) if text.isdigit() else entry.get(f".{name}", 0)
        return value if isinstance(value, int) else 0

    return DescriptorFields(
        group_bytes=size("group_segment_fixed_size"),
        private_bytes=size("private_segment_fixed_size"),
        kernarg_bytes=number("kernarg_size"),
        user_registers=tuple(name for name, _, _ in USER_GROUPS if number(f"user_sgpr_{name}")),
        user_count=number("user_sgpr_count"),
        preload_dwords=number("user_sgpr_kernarg_preload_length"),
        preload_offset_dwords=number("user_sgpr_kernarg_preload_offset"),
        workgroup_ids=(
            bool(int(directives.get(".amdhsa_system_sgpr_workgroup_id_x", "1"))),
            bool(number("system_sgpr_workgroup_id_y")),
            bool(number("system_sgpr_workgroup_id_z")),
        ),
        private_segment=bool(
            number("enable_private_segment") or number("system_sgpr_private_segment_wavefront_offset")
        ),
        fp16_overflow=bool(number("fp16_overflow")),
    )


class _Resolver:
    """Turns symbol operands into numbers: branch targets into addresses, references into distances."""

    def __init__(self, symbols: Mapping[str, int], data: DataSection, data_offset: int) -> None:
        self._symbols = symbols
        self._data = data
        self._data_offset = data_offset
        self._got: dict[str, int] = {}
        self._pc = 0

    def resolve(self, instructions: list[Instruction]) -> tuple[Instruction, ...]:
        resolved = []
        for record in instructions:
            if record.mnemonic == "s_getpc_b64":
                self._pc = record.address + 4
            if any(isinstance(operand.value, Expression) for operand in record.operands):
                record = replace(record, operands=tuple(self._operand(operand) for operand in record.operands))
            resolved.append(record)
        return tuple(resolved)

    def _operand(self, operand: Operand) -> Operand:
        if not isinstance(operand.value, Expression):
            return operand
        return replace(operand, value=self._value(operand.value.text))

    def _value(self, text: str) -> int:
        reference = _RELATIVE.fullmatch(text)
        if reference is None:
            return evaluate(text, self._symbols)
        symbol, kind, half = reference.groups()
        if kind == "abs32":
            value = CODE_BASE + evaluate(symbol, self._symbols)
        elif kind == "rel32":
            value = evaluate(symbol, self._symbols) - self._pc
        else:
            value = self._got_slot(symbol) - self._pc
        return value & 0xFFFFFFFF if half == "lo" else value >> 32 & 0xFFFFFFFF

    def _got_slot(self, symbol: str) -> int:
        if symbol not in self._got:
            self._got[symbol] = self._data_offset + self._data.address_word(symbol)
        return self._got[symbol]
