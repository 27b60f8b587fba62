"""Decode MessagePack, the format of the AMD metadata note. Source: the MessagePack specification.

Binary and extension types do not occur in that note and are refused.
"""

from __future__ import annotations

import struct

from dsv4gen.base.errors import CompileError

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]

_CONSTANTS: dict[int, bool | None] = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_TEXT_LENGTHS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I"}
_LIST_LENGTHS = {0xDC: ">H", 0xDD: ">I"}
_MAP_LENGTHS = {0xDE: ">H", 0xDF: ">I"}


def decode(raw: bytes) -> Value:
    """The one value that `raw` holds.

    Raises:
        CompileError: cut short, or a type that AMD metadata does not use.
    """
    try:
        return _Reader(raw).value()
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise CompileError(f"the metadata note is damaged: {error}") from error


class _Reader:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._position = 0

    def value(self) -> Value:
        tag = self._raw[self._position]
        self._position += 1
        if tag < 0x80:
            return tag
        if tag < 0x90:
            return self._map(tag & 0x0F)
        if tag < 0xA0:
            return self._list(tag & 0x0F)
        if tag < 0xC0:
            return self._text(tag & 0x1F)
        if tag >= 0xE0:
            return tag - 0x100
        return self._tagged(tag)

    def _tagged(self, tag: int) -> Value:
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        if tag in _NUMBERS:
            return self._number(_NUMBERS[tag])
        if tag in _TEXT_LENGTHS:
            return self._text(int(self._number(_TEXT_LENGTHS[tag])))
        if tag in _LIST_LENGTHS:
            return self._list(int(self._number(_LIST_LENGTHS[tag])))
        if tag in _MAP_LENGTHS:
            return self._map(int(self._number(_MAP_LENGTHS[tag])))
        raise CompileError(f"the metadata note has an unexpected type 0x{tag:02x} at byte {self._position - 1}")

    def _number(self, form: str) -> int | float:
        number: int | float = struct.unpack_from(form, self._raw, self._position)[0]
        self._position += struct.calcsize(form)
        return number

    def _text(self, length: int) -> str:
        end = self._position + length
        if end > len(self._raw):
            raise IndexError("text ends behind the note's end")
        text = self._raw[self._position : end].decode()
        self._position = end
        return text

    def _list(self, length: int) -> list[Value]:
        return [self.value() for _ in range(length)]

    def _map(self, length: int) -> dict[str, Value]:
        pairs: dict[str, Value] = {}
        for _ in range(length):
            key = self.value()
            if not isinstance(key, str):
                raise CompileError("the metadata note has a key that is not text")
            pairs[key] = self.value()
        return pairs
