"""What the engine reports (protocol.h), in words: kernel, block, thread, line, and what went wrong."""

from __future__ import annotations

import signal
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dsv4gen.emulate.simt.memory_file import Placed

FINDING = struct.Struct("<8I2Q")

_SIGNAL = 1
_STATES = {5: "has ended", 3: "is at a block barrier", 4: "is at a cluster barrier"}
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

    @property
    def is_signal(self) -> bool:
        """Whether the worker died with this finding."""
        return self.kind == _SIGNAL

    def text(self, kernel: str, regions: Sequence[Placed]) -> str:
        """The finding as one line."""
        where = f"kernel {kernel}, block {self.block}, thread {self.thread}"
        where += f", line {self.line}" if self.line else ""
        return f"{where}: {self._crash(regions) if self.is_signal else _WORDS[self.kind](self)}"

    @property
    def _other(self) -> str:
        state = _STATES.get(self.detail, f"is at line {self.other_line}")
        return f"thread {self.other_thread} {state}"

    @property
    def _signed(self) -> int:
        return self.detail - (1 << 64) if self.detail >> 63 else self.detail

    def _crash(self, regions: Sequence[Placed]) -> str:
        name = signal.Signals(self.detail).name
        if self.detail == signal.SIGTERM:
            return "still running at the time limit (the line is that of the last barrier, vote or shuffle)"
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
    name = " / ".join(region.names)
    if address < region.address:
        return f"{region.address - address} bytes before array {name}"
    if address >= region.address + region.size:
        return f"{address - region.address - region.size} bytes past the end of array {name}"
    return f"at byte {address - region.address} of array {name}, which is read-only"


def _distance(address: int, region: Placed) -> int:
    return max(region.address - address, address - region.address - region.size, 0)


_WORDS: dict[int, Callable[[Finding], str]] = {
    2: lambda finding: "no kernel of this name in the program",
    3: lambda finding: f"divergent vote or shuffle in a logical warp: {finding._other}",
    4: lambda finding: f"shuffle from lane {finding.detail} of the wave, which is not active in it",
    5: lambda finding: f"divergent barrier: {finding._other}",
    6: lambda finding: f"barrier that thread {finding.other_thread} misses, because it has ended",
    7: lambda finding: f"shared memory of {finding.detail} bytes exceeds the limit of {finding.detail2}",
    8: lambda finding: f"second shared struct of {finding.detail} bytes, the first has {finding.detail2}",
    9: lambda finding: f"shared memory written at byte {finding._signed} of a struct of {finding.detail2} bytes",
    10: lambda finding: f"address {finding.detail:#x} is not a multiple of {finding.detail2}",
    11: lambda finding: f"rank {finding.detail} in a cluster of {finding.detail2} blocks",
    12: lambda finding: f"remote access to byte {finding._signed} of a shared struct of {finding.detail2} bytes",
    13: lambda finding: f"remote access to the shared memory of rank {finding.detail}, which has ended",
}
