"""Read 64-bit little-endian ELF files: sections, symbols, notes. Standard library only.

Source of the layout: the System V ABI's ELF-64 object file format.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from dsv4gen.base.errors import CompileError

MACHINE_AMDGPU = 224
MACHINE_CUDA = 190

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_NOTE = struct.Struct("<III")
_SHT_SYMTAB = 2
_SHT_NOTE = 7
_SHT_NOBITS = 8
_SHT_DYNSYM = 11


@dataclass(frozen=True)
class Section:
    """One section; `content` is empty for sections that take no room in the file (size still tells)."""

    name: str
    kind: int
    address: int
    size: int
    link: int
    info: int
    content: bytes


@dataclass(frozen=True)
class Symbol:
    """One symbol; `kind` is 2 for functions, 1 for objects, `section` an index into the sections."""

    name: str
    value: int
    size: int
    kind: int
    other: int
    section: int


@dataclass(frozen=True)
class Note:
    """One note: owner, type number, description."""

    owner: str
    kind: int
    content: bytes


@dataclass(frozen=True)
class Elf:
    """A parsed file. `machine` is the ELF machine number, `flags` the machine's own flags."""

    machine: int
    flags: int
    sections: tuple[Section, ...]

    @classmethod
    def parse(cls, raw: bytes, *, what: str = "code object") -> Elf:
        """Parse a file's bytes.

        Raises:
            CompileError: not an ELF file of this kind, or one that is cut short.
        """
        try:
            return _parse(raw)
        except (struct.error, IndexError, ValueError) as error:
            raise CompileError(f"{what} is not a readable ELF file of {len(raw)} bytes: {error}") from error

    def section(self, name: str) -> Section | None:
        """The first section of that name, or None."""
        return next((section for section in self.sections if section.name == name), None)

    def symbols(self) -> tuple[Symbol, ...]:
        """The symbols of the full table, or of the dynamic one when the file is stripped."""
        for kind in (_SHT_SYMTAB, _SHT_DYNSYM):
            for table in self.sections:
                if table.kind == kind:
                    return tuple(_symbols(table, self.sections[table.link].content))
        return ()

    def notes(self) -> tuple[Note, ...]:
        """Every note of every note section."""
        return tuple(note for section in self.sections if section.kind == _SHT_NOTE for note in _notes(section.content))


def _parse(raw: bytes) -> Elf:
    identity, _, machine, _, _, _, offset, flags, _, _, _, entry_size, count, names = _HEADER.unpack_from(raw)
    if identity[:6] != b"\x7fELF\x02\x01":
        raise ValueError("wrong magic bytes")
    if entry_size != _SECTION.size:
        raise ValueError("wrong section entry size")
    entries = [_SECTION.unpack_from(raw, offset + index * entry_size) for index in range(count)]
    texts = _file_content(raw, entries[names])
    sections = tuple(
        Section(
            _text_at(texts, entry[0]),
            entry[1],
            entry[3],
            entry[5],
            entry[6],
            entry[7],
            _file_content(raw, entry),
        )
        for entry in entries
    )
    return Elf(machine, flags, sections)


def _file_content(raw: bytes, entry: tuple[int, ...]) -> bytes:
    kind, offset, size = entry[1], entry[4], entry[5]
    if kind == _SHT_NOBITS:
        return b""
    if offset + size > len(raw):
        raise ValueError("a section ends behind the file's end")
    return raw[offset : offset + size]


def _symbols(table: Section, names: bytes) -> Iterator[Symbol]:
    for name, information, other, section, value, size in _SYMBOL.iter_unpack(table.content):
        yield Symbol(_text_at(names, name), value, size, information & 15, other, section)


def _notes(content: bytes) -> Iterator[Note]:
    position = 0
    while position + _NOTE.size <= len(content):
        owner_size, size, kind = _NOTE.unpack_from(content, position)
        owner_at = position + _NOTE.size
        at = owner_at + _aligned(owner_size)
        owner = content[owner_at : owner_at + owner_size].rstrip(b"\0").decode("latin-1")
        yield Note(owner, kind, content[at : at + size])
        position = at + _aligned(size)


def _aligned(size: int) -> int:
    return (size + 3) // 4 * 4


def _text_at(texts: bytes, offset: int) -> str:
    return texts[offset : texts.index(b"\0", offset)].decode("utf-8", "replace")
