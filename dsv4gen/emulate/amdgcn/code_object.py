"""Front end 2: a code object (ELF), disassembled by llvm-objdump.

The descriptor is read from `<symbol>.kd`; addresses are the file's own, so constant data keeps its place.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Iterator
from dataclasses import replace

from dsv4gen.base.errors import CompileError, ToolMissing
from dsv4gen.emulate.amdgcn.instruction_text import parse_instruction
from dsv4gen.emulate.amdgcn.metadata import (
    USER_GROUPS,
    DescriptorFields,
    build_descriptor,
    kernel_entry,
    target_of,
)
from dsv4gen.emulate.amdgcn.program import Instruction, Operand, Program
from dsv4gen.toolchain import process
from dsv4gen.toolchain.elf import Elf, Section
from dsv4gen.toolchain.hsaco import read_metadata
from dsv4gen.toolchain.locate import find_llvm

_LINE = re.compile(r"\s+(\S.*?)\s*//\s*([0-9A-F]+):((?:\s[0-9A-F]{8})+)")
_BRANCH = re.compile(r"s_(?:c?branch\w*|call_b64)")
_DESCRIPTOR = struct.Struct("<III4xq20xIIIHH")
_RELA = struct.Struct("<QQq")
_SYMBOL_VALUE = struct.Struct("<8xQ")
_SHT_RELA = 4
_R_ABS64 = 3
_R_RELATIVE64 = 13


def read_code_object(binary: bytes, symbol: str) -> Program:
    """The program of one kernel of a code object.

    Raises:
        CompileError: not an AMD code object, no such kernel, or code that cannot be disassembled.
        ToolMissing: no llvm-objdump.
    """
    metadata = read_metadata(binary)
    entry = kernel_entry(metadata, symbol)
    target = target_of(str(metadata.get("amdhsa.target", "")))
    elf = Elf.parse(binary)
    symbols = {found.name: found.value for found in elf.symbols() if found.section}
    if symbol not in symbols or f"{symbol}.kd" not in symbols:
        raise CompileError(f"the code object has no symbol {symbol!r} with a descriptor {symbol}.kd")
    image = _memory_image(elf)
    fields = _descriptor_fields(image, symbols[f"{symbol}.kd"])
    others = _other_kernels(elf, symbol)
    instructions = tuple(_instructions(_disassemble(binary, target), others))
    if not instructions:
        raise CompileError("llvm-objdump found no instructions in the code object")
    return Program(
        instructions,
        symbols,
        build_descriptor(symbol, target, entry, fields),
        image,
        0,
        tuple(_relocations(elf)),
    )


def _other_kernels(elf: Elf, symbol: str) -> list[range]:
    """Addresses of the code of kernels other than this one; what is left may be called."""
    found = elf.symbols()
    kernels = {entry.name.removesuffix(".kd") for entry in found if entry.name.endswith(".kd")} - {symbol}
    return [range(entry.value, entry.value + entry.size) for entry in found if entry.name in kernels]


def _memory_image(elf: Elf) -> bytes:
    """The loaded sections, at their addresses."""
    loaded = [section for section in elf.sections if section.address]
    image = bytearray(max((section.address + section.size for section in loaded), default=0))
    for section in loaded:
        image[section.address : section.address + len(section.content)] = section.content
    return bytes(image)


def _descriptor_fields(image: bytes, address: int) -> DescriptorFields:
    group, private, kernarg, _, _, _, resources, properties, preload = _DESCRIPTOR.unpack_from(image, address)
    return DescriptorFields(
        group_bytes=group,
        private_bytes=private,
        kernarg_bytes=kernarg,
        user_registers=tuple(name for name, bit, _ in USER_GROUPS if properties >> bit & 1),
        user_count=resources >> 1 & 31,
        preload_dwords=preload & 127,
        preload_offset_dwords=preload >> 7,
        workgroup_ids=(bool(resources >> 7 & 1), bool(resources >> 8 & 1), bool(resources >> 9 & 1)),
        private_segment=bool(resources & 1),
        fp16_overflow=False,
    )


def _relocations(elf: Elf) -> Iterator[tuple[int, str]]:
    for section in elf.sections:
        if section.kind == _SHT_RELA and section.address:
            yield from _section_relocations(elf, section)


def _section_relocations(elf: Elf, section: Section) -> Iterator[tuple[int, str]]:
    symbols = elf.section(".dynsym")
    for offset, information, addend in _RELA.iter_unpack(section.content):
        kind = information & 0xFFFFFFFF
        if kind == _R_RELATIVE64:
            yield offset, str(addend)
        elif kind == _R_ABS64:
            value = _SYMBOL_VALUE.unpack_from(symbols.content, 24 * (information >> 32))[0] if symbols else 0
            yield offset, str(value + addend)
        else:
            raise CompileError(f"the code object has a relocation of kind {kind}")


@functools.lru_cache(maxsize=2)
def _disassemble(binary: bytes, target: str) -> str:
    program = find_llvm("llvm-objdump")
    if program is None:
        raise ToolMissing("no llvm-objdump", remedy="apt-get install llvm-22, or emulate from assembly text")
    # Without real-true16 the 16-bit registers of gfx11 and gfx12 cannot be printed.
    extra = ["--mattr=+real-true16"] if target.startswith(("gfx11", "gfx12")) else []
    with process.private_folder("objdump") as folder:
        (folder / "kernel.hsaco").write_bytes(binary)
        outcome = process.run([str(program), "-d", f"--mcpu={target}", *extra, "kernel.hsaco"], folder)
    if not outcome.succeeded:
        raise CompileError(f"{outcome.shown_command}: {outcome.reason}\n{outcome.output}")
    return outcome.output


def _instructions(text: str, skipped: list[range]) -> Iterator[Instruction]:
    for line in text.splitlines():
        match = _LINE.match(line)
        if match is None:
            continue
        address = int(match[2], 16)
        if any(address in other for other in skipped):
            continue
        record = parse_instruction(" ".join(match[1].split()), address)
        yield _with_target(record, address) if _BRANCH.fullmatch(record.mnemonic) else record


def _with_target(record: Instruction, address: int) -> Instruction:
    """Replace the branch distance in dwords by the target's address."""
    distance = record.operands[-1].value
    if not isinstance(distance, int):
        raise CompileError(f"cannot read the target of {record.text!r}")
    signed = (distance & 0xFFFF ^ 0x8000) - 0x8000
    target = Operand(address + 4 + 4 * signed)
    return replace(record, operands=(*record.operands[:-1], target))
