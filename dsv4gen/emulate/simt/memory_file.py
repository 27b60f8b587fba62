"""The memory file that worker and Python share: where arrays go, what lies around them, and the way back.

An array (any strides) is taken as the span of bytes it covers; arrays whose spans overlap share one region,
so views of one buffer stay aliased. Each region ends where unmapped memory begins, with the original
addresses modulo 16, and what is left of its pages is poison that is checked after the launch:

    | poison | span of the array(s) | < 16 bytes of poison | nothing mapped for a mebibyte or more
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

PAGE = 4096
ALIGNMENT = 16
POISON = 0xAB
WINDOW_START = 1 << 37
_GAP = 1 << 20

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Placed:
    """One region: host bytes [low, high) of the arrays in `names` lie at `address` of the launch's memory."""

    names: tuple[str, ...]
    low: int
    high: int
    writable: bool
    address: int
    page_address: int
    page_bytes: int
    file_offset: int

    @property
    def size(self) -> int:
        """Bytes of the span."""
        return self.high - self.low

    @property
    def label(self) -> str:
        """The arrays' names for messages."""
        return " / ".join(self.names)

    @property
    def lead(self) -> int:
        """Bytes of poison before the span."""
        return self.address - self.page_address

    def translate(self, host_address: int) -> int:
        """The launch's address of a host address inside the span."""
        return self.address + host_address - self.low


def place(arrays: Mapping[str, Array], first_offset: int) -> tuple[Placed, ...]:
    """Lay out arrays in the window and in the file, whose first `first_offset` bytes are taken."""
    regions: list[Placed] = []
    address, offset = WINDOW_START + _GAP, first_offset
    for names, low, high, writable in _merged_spans(arrays):
        tail = -high % ALIGNMENT
        page_bytes = -(-(high - low + tail) // PAGE) * PAGE
        start = address + page_bytes - tail - (high - low)
        regions.append(Placed(names, low, high, writable, start, address, page_bytes, offset))
        address += page_bytes + _GAP
        offset += page_bytes
    return tuple(regions)


def copy_in(region: Placed, file: Bytes) -> None:
    """Write the span and the poison around it into the file's bytes."""
    pages = _pages(region, file)
    pages[: region.lead] = POISON
    pages[region.lead : region.lead + region.size] = _host_bytes(region)
    pages[region.lead + region.size :] = POISON


def copy_out(region: Placed, file: Bytes) -> None:
    """Bring the span back into the host's arrays."""
    if region.writable:
        _host_bytes(region)[:] = _pages(region, file)[region.lead : region.lead + region.size]


def overwritten_poison(region: Placed, file: Bytes) -> int | None:
    """Offset from the span's start of the nearest word of poison that was changed, None when all is whole."""
    pages = _pages(region, file)
    before = np.flatnonzero(pages[: region.lead] != POISON)
    if before.size:
        return (int(before[-1]) - region.lead) // 4 * 4
    after = np.flatnonzero(pages[region.lead + region.size :] != POISON)
    return region.size + int(after[0]) if after.size else None


def first_address(array: Array) -> int:
    """The host address of an array's first element."""
    return int(array.__array_interface__["data"][0])


def span(array: Array) -> tuple[int, int]:
    """The host addresses [low, high) an array covers."""
    low = high = first_address(array)
    if array.size == 0:
        return low, high
    for extent, stride in zip(array.shape, array.strides, strict=True):
        reach = (extent - 1) * stride
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high + array.itemsize


def _merged_spans(arrays: Mapping[str, Array]) -> list[tuple[tuple[str, ...], int, int, bool]]:
    """Spans in address order as (names, low, high, writable), overlapping ones as one."""
    listed = sorted((*span(array), name, bool(array.flags.writeable)) for name, array in arrays.items())
    merged: list[tuple[tuple[str, ...], int, int, bool]] = []
    for low, high, name, writable in listed:
        if merged and low < merged[-1][2]:
            names, first, last, before = merged[-1]
            merged[-1] = ((*names, name), first, max(last, high), before or writable)
        else:
            merged.append(((name,), low, high, writable))
    return merged


def _host_bytes(region: Placed) -> Bytes:
    return np.ctypeslib.as_array((ctypes.c_uint8 * region.size).from_address(region.low))


def _pages(region: Placed, file: Bytes) -> Bytes:
    return file[region.file_offset : region.file_offset + region.page_bytes]
