"""Front end 1: the assembly text that clang, ziglang and Triton emit. Needs no tool and no library.

Instructions get one dword of address space each. PC-relative symbol references are resolved by what they mean:
the compiler chose the addend so that `symbol@rel32@lo+N`, added to the last s_getpc_b64's result, is the symbol.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dsv4gen.base.errors import CompileError, Place
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

_LABEL = re.compile(r'\s*(?:"([^"]+)"|([.$\w]+)):')
_INLINED_AT = re.compile(r"@\[ (.+?):(\d+):\d+")
_FILE = re.compile(r'(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')
_RELATIVE = re.compile(r"(.+)@(rel32|gotpcrel32|abs32)@(lo|hi)(?:\+\d+)?")
_DATA_SECTIONS = (".rodata", ".data", ".bss", ".AMDGPU.constants")


@dataclass
class _Reader:
    """What has been read so far."""

    file: str
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    data: DataSection = field(default_factory=DataSection)
    descriptors: dict[str, dict[str, str]] = field(default_factory=dict)
    metadata: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    target: str = ""
    section: str = "text"  # text, data or skipped
    mode: str = ""  # "" , "metadata", or the kernel whose descriptor is being read
    source: Place | None = None
    callers: tuple[Place, ...] = ()


def read_assembly(text: str, symbol: str, *, file: str = "kernel.s") -> Program:
    """The program of one kernel; `file` names the text in messages.

    Raises:
        CompileError: no such kernel, or text that is not AMD assembly.
    """
    reader = _Reader(file)
    for number, line in enumerate(text.splitlines(), start=1):
        _read_line(reader, line, number)
    if not reader.target:
        raise CompileError(f"{file} has no .amdgcn_target: not AMD assembly text")
    entry = kernel_entry(_parse_metadata(reader.metadata), symbol)
    if symbol not in reader.descriptors or symbol not in reader.labels:
        raise CompileError(f"{file} has metadata but no code for kernel {symbol!r}")
    fields = _descriptor_fields(reader.descriptors[symbol], entry)
    descriptor = build_descriptor(symbol, target_of(reader.target), entry, fields)
    code_bytes = 4 * len(reader.instructions)
    data_offset = (code_bytes + 255) // 256 * 256
    symbols = dict(reader.labels)
    symbols.update({name: data_offset + offset for name, offset in reader.data.labels.items()})
    instructions = _Resolver(symbols, reader.data, data_offset).resolve(reader.instructions)
    return Program(
        instructions,
        symbols,
        descriptor,
        bytes(reader.data.content),
        data_offset,
        tuple(reader.data.relocations),
    )


def _read_line(reader: _Reader, line: str, number: int) -> None:
    if reader.mode == "metadata":
        if ".end_amdgpu_metadata" in line:
            reader.mode = ""
        else:
            reader.metadata.append(line)
        return
    code = _without_comment(line)
    label = _LABEL.match(code)
    while label:
        _place_label(reader, label[1] or label[2])
        code = code[label.end() :]
        label = _LABEL.match(code)
    code = code.strip()
    if code.startswith("."):
        name, _, arguments = code.replace("\t", " ").partition(" ")
        if name == ".loc":
            # The calls an instruction was inlined through are told in the comment only.
            reader.callers = tuple(Place(file, int(row)) for file, row in _INLINED_AT.findall(line))
        _read_directive(reader, name, arguments.strip())
    elif code and reader.section == "text" and "=" not in code:
        place = reader.source or Place(reader.file, number)
        record = parse_instruction(" ".join(code.split()), 4 * len(reader.instructions), place)
        reader.instructions.append(replace(record, callers=reader.callers) if reader.callers else record)


def _without_comment(line: str) -> str:
    """The line up to `;` or `//`, both outside quotes."""
    if ";" not in line and "//" not in line:
        return line
    quoted = False
    for position, character in enumerate(line):
        if character == '"':
            quoted = not quoted
        elif not quoted and (character == ";" or line.startswith("//", position)):
            return line[:position]
    return line


def _place_label(reader: _Reader, name: str) -> None:
    if reader.section == "text":
        reader.labels[name] = 4 * len(reader.instructions)
    elif reader.section == "data":
        reader.data.label(name)


def _read_directive(reader: _Reader, name: str, arguments: str) -> None:
    if name == ".end_amdhsa_kernel":
        reader.mode = ""
    elif reader.mode:
        reader.descriptors[reader.mode][name] = arguments
    elif name == ".amdhsa_kernel":
        reader.mode = arguments
        reader.descriptors[arguments] = {}
    elif name == ".amdgpu_metadata":
        reader.mode = "metadata"
    elif name == ".amdgcn_target":
        reader.target = arguments.strip('"')
    elif name in (".text", ".data", ".bss"):
        reader.section = "text" if name == ".text" else "data"
    elif name == ".section":
        reader.section = _section_kind(arguments)
    elif name == ".file":
        _remember_file(reader, arguments)
    elif name == ".loc":
        _set_source(reader, arguments)
    elif reader.section == "data":
        reader.data.directive(name, arguments)


def _section_kind(arguments: str) -> str:
    name = arguments.split(",")[0].strip().strip('"')
    if name.startswith(".text"):
        return "text"
    return "data" if name.startswith(_DATA_SECTIONS) else "skipped"


def _remember_file(reader: _Reader, arguments: str) -> None:
    match = _FILE.match(arguments)
    if match:
        reader.files[match[1]] = match[3] or match[2]


def _set_source(reader: _Reader, arguments: str) -> None:
    parts = arguments.split()
    line = int(parts[1])
    reader.source = Place(reader.files.get(parts[0], reader.file), line) if line else None


def _parse_metadata(lines: list[str]) -> Mapping[str, object]:
    from ruamel.yaml import YAML

    loaded = YAML(typ="safe", pure=True).load("\n".join(lines).replace("\t", " "))
    if not isinstance(loaded, Mapping):
        raise CompileError("the assembly text has no .amdgpu_metadata block")
    return loaded


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
