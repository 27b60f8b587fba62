"""What the engine reports (protocol.h), in words: kernel, block, thread, line, and what went wrong."""

from __future__ import annotations

import signal
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from dsv4gen.emulate.simt.memory_file import Placed

FINDING = struct.Struct("<8I2Q")

_SIGNAL = 1
_VOTE, _SHUFFLE, _BLOCK_BARRIER, _CLUSTER_BARRIER, _ENDED = 1, 2, 3, 4, 5
_STATES = {
    _VOTE: "at a vote",
    _SHUFFLE: "at a shuffle",
    _BLOCK_BARRIER: "at a block barrier",
    _CLUSTER_BARRIER: "at a cluster barrier",
}
_SHARED, _STACK = 2, 3


@dataclass(frozen=True)
class Finding:
    """One record of the engine; what the last four numbers mean depends on `kind` (see protocol.h)."""

    kind: int
    block: tuple[int, int, int]
    thread: int
    line: int
    other_thread: int
    other_line: int
    detail: int
    detail2: int

    @classmethod
    def read(cls, raw: bytes) -> Finding:
        """Unpack one record."""
        kind, x, y, z, *numbers = FINDING.unpack(raw)
        return cls(kind, (x, y, z), *numbers)

    def text(self, kernel: str, regions: Sequence[Placed]) -> str:
        """The finding as one line."""
        where = f"kernel {kernel}, block {self.block}, thread {self.thread}"
        if self.kind == _SIGNAL:
            # The line is that of the last primitive that passed its caller's line on.
            where += f", after line {self.line}" if self.line else ""
            return f"{where}: {self._crash(regions)}"
        where += f", line {self.line}" if self.line else ""
        return f"{where}: {self._words()}"

    def _words(self) -> str:
        numbers = {"detail": self.detail, "detail2": self.detail2, "other_thread": self.other_thread}
        other = self._other if self.detail in _STATES or self.detail == _ENDED else ""
        return _WORDS[self.kind].format(**numbers, signed=self._signed, other=other)

    @property
    def _other(self) -> str:
        if self.detail == _ENDED:
            return f"thread {self.other_thread} has ended"
        same = " in another call" if self.other_line == self.line else ""
        return f"thread {self.other_thread} is {_STATES[self.detail]} at line {self.other_line}{same}"

    @property
    def _signed(self) -> int:
        return self.detail - (1 << 64) if self.detail >> 63 else self.detail

    def _crash(self, regions: Sequence[Placed]) -> str:
        name = signal.Signals(self.detail).name
        if self.detail == signal.SIGTERM:
            return "still running at the time limit"
        if self.detail not in (signal.SIGSEGV, signal.SIGBUS):
            return name
        access = "write" if self.other_line else "read"
        if self.other_thread == _SHARED:
            return f"{name}: {access} outside the block's shared memory"
        if self.other_thread == _STACK:
            return f"{name}: stack overflow, 60 KiB a thread are available"
        return f"{name}: {access} {_nearest(self.detail2, regions)}"


def _nearest(address: int, regions: Sequence[Placed]) -> str:
    """The address in terms of the array it is inside of or closest to."""
    if not regions or min(_distance(address, region) for region in regions) > 1 << 30:
        return f"at {address:#x}, far from every array"
    region = min(regions, key=lambda region: _distance(address, region))
    name = region.label
    if address < region.address:
        return f"{region.address - address} bytes before array {name}"
    if address >= region.address + region.size:
        return f"{address - region.address - region.size} bytes past the end of array {name}"
    return f"at byte {address - region.address} of array {name}, which is read-only"


def _distance(address: int, region: Placed) -> int:
    return max(region.address - address, address - region.address - region.size, 0)


# By FindingKind; braces take the finding's numbers.
_WORDS = {
    2: "no kernel of this name in the program",
    3: "divergent vote or shuffle in a logical warp: {other}",
    4: "shuffle from lane {detail} of the wave, which does not take part in it",
    5: "divergent barrier: {other}",
    6: "barrier that thread {other_thread} misses, because it has ended",
    7: "cluster barrier that the block of rank {detail} misses, because it has ended",
    8: "shared memory of {detail} bytes exceeds the limit of {detail2}",
    9: "second shared struct, of {detail} bytes; the first has {detail2}",
    10: "shared memory written at byte {signed} of a struct of {detail2} bytes",
    11: "address {detail:#x} is not a multiple of {detail2}",
    12: "rank {detail} in a cluster of {detail2} blocks",
    13: "remote access at byte {signed} of a shared struct of {detail2} bytes",
    14: "remote access to rank {detail} before any cluster barrier: its block may not have started",
    15: "remote access to the shared memory of rank {detail}, whose block has ended",
    16: "the emulator has no memory for this launch",
}
