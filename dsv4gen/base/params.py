"""The by-value `Params` struct every generated HIP/CUDA kernel takes: layout and packing.

The plan computes a layout, the template prints the struct from it, and the runtime, the SIMT host build and
the amdgcn emulator pack arguments with it, so that the four cannot disagree.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from dsv4gen.base.errors import ArgumentError, did_you_mean

#: kind -> (size and alignment in bytes, struct code, C++ type)
KINDS: dict[str, tuple[int, str, str]] = {
    "pointer": (8, "Q", "void*"),
    "i64": (8, "q", "i64"),
    "u64": (8, "Q", "u64"),
    "i32": (4, "i", "i32"),
    "u32": (4, "I", "u32"),
    "f32": (4, "f", "float"),
}


@dataclass(frozen=True)
class Field:
    """One member of the struct; `c_type` and `doc` are what the template prints, e.g. `const float*` and its shape."""

    name: str
    kind: str
    offset: int
    c_type: str
    doc: str = ""

    @property
    def size(self) -> int:
        """Bytes this member takes."""
        return KINDS[self.kind][0]


@dataclass(frozen=True)
class ParamsLayout:
    """Members in order with C alignment, so that host packing equals the device's struct."""

    fields: tuple[Field, ...]
    size: int

    @classmethod
    def of(cls, members: Iterable[tuple[str, str, str]]) -> ParamsLayout:
        """Lay out `(name, kind, c_type)` members; an empty c_type takes the kind's own."""
        fields: list[Field] = []
        offset = 0
        for name, kind, c_type in members:
            size, _, default = KINDS[kind]
            offset = -(-offset // size) * size
            fields.append(Field(name, kind, offset, c_type or default))
            offset += size
        widest = max((field.size for field in fields), default=1)
        return cls(tuple(fields), -(-offset // widest) * widest)

    def documented(self, docs: Mapping[str, str]) -> ParamsLayout:
        """The same layout with a line for people to each member that has one."""
        return replace(self, fields=tuple(replace(field, doc=docs.get(field.name, "")) for field in self.fields))

    @property
    def format(self) -> str:
        """The `struct` format string of the whole block, explicit padding included."""
        text, end = "<", 0
        for field in self.fields:
            pad = field.offset - end
            text += (f"{pad}x" if pad else "") + KINDS[field.kind][1]
            end = field.offset + field.size
        return text + (f"{self.size - end}x" if self.size > end else "")

    def pack(self, values: Mapping[str, int | float]) -> bytes:
        """The struct's bytes; pointers are given as addresses.

        Raises:
            ArgumentError: a member without a value, a value without a member, or a value out of range.
        """
        names = [field.name for field in self.fields]
        for name in values:
            if name not in names:
                raise ArgumentError(f"no parameter {name!r}{did_you_mean(name, names)}")
        missing = [name for name in names if name not in values]
        if missing:
            raise ArgumentError(f"no value for parameter {', '.join(missing)}")
        try:
            return struct.pack(self.format, *(values[name] for name in names))
        except struct.error as error:
            raise ArgumentError(f"a parameter is out of range: {error}") from error
