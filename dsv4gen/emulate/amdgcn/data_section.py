"""Collect the constant data of assembly text: bytes, labels, and words that hold addresses."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

_SIZES = {
    ".byte": 1,
    ".short": 2,
    ".2byte": 2,
    ".hword": 2,
    ".long": 4,
    ".4byte": 4,
    ".int": 4,
    ".quad": 8,
    ".8byte": 8,
}
_NUMBER = re.compile(r"-?(0x[0-9a-fA-F]+|\d+)")


@dataclass
class DataSection:
    """Bytes so far; labels and relocations are offsets into them."""

    content: bytearray = field(default_factory=bytearray)
    labels: dict[str, int] = field(default_factory=dict)
    relocations: list[tuple[int, str]] = field(default_factory=list)

    def label(self, name: str) -> None:
        """Place a label here."""
        self.labels[name] = len(self.content)

    def directive(self, name: str, arguments: str) -> None:
        """Apply one directive; those that place no bytes are ignored."""
        if name in _SIZES:
            for part in arguments.split(","):
                self._word(part.strip(), _SIZES[name])
        elif name in (".zero", ".skip", ".space"):
            self.content += bytes(int(arguments.split(",")[0], 0))
        elif name in (".asciz", ".ascii", ".string"):
            self._text(arguments, terminated=name != ".ascii")
        elif name == ".p2align":
            self.align(1 << int(arguments.split(",")[0], 0))
        elif name == ".fill":
            self._fill(arguments)

    def align(self, size: int) -> None:
        """Pad with zeros to a multiple of `size` bytes."""
        self.content += bytes(-len(self.content) % size)

    def address_word(self, expression: str) -> int:
        """Add an 8-byte word that holds an address; returns its offset."""
        self.align(8)
        offset = len(self.content)
        self.relocations.append((offset, expression))
        self.content += bytes(8)
        return offset

    def _word(self, text: str, size: int) -> None:
        if _NUMBER.fullmatch(text):
            self.content += (int(text, 0) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
        elif size == 8:
            self.relocations.append((len(self.content), text))
            self.content += bytes(8)
        else:
            self.content += bytes(size)

    def _text(self, arguments: str, *, terminated: bool) -> None:
        # Octal escapes and quotes are written as in Python.
        value = ast.literal_eval("b" + arguments.strip())
        self.content += value + (b"\0" if terminated else b"")

    def _fill(self, arguments: str) -> None:
        count, size, value = ([int(part, 0) for part in arguments.split(",")] + [1, 0])[:3]
        self.content += (value & ((1 << 8 * size) - 1)).to_bytes(size, "little") * count
