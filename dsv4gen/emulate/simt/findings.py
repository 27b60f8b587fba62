"""What the engine reports (protocol.h), in words: kernel, block, thread, line, and what went wrong."""

from __future__ import annotations

import signal
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from dsv4gen.emulate.simt.memory_file import Placed

FINDING = struct.Struct("<8I2Q")


class Kind(IntEnum):
    """FindingKind of protocol.h."""

    SIGNAL = 1
    UNKNOWN_SYMBOL = 2
    DIVERGENT_COLLECTIVE = 3
    INACTIVE_SOURCE = 4
    DIVERGENT_BARRIER = 5
    MISSED_BARRIER = 6
    MISSED_CLUSTER_BARRIER = 7
    SHARED_LIMIT = 8
    SHARED_TWICE = 9
    SHARED_GUARD = 10
    MISALIGNED = 11
    REMOTE_RANK = 12
    REMOTE_ADDRESS = 13
    REMOTE_EARLY = 14
    REMOTE_ENDED = 15
    UNKNOWN_TRANSACTION = 16
    EXPECTED_TWICE = 17
    STUCK_TRANSACTION = 18
    NOTHING_EXPECTED = 19
    UNREAD_PUSH = 20
    NO_MEMORY = 21


_WORDS = {
    Kind.UNKNOWN_SYMBOL: "no kernel of this name in the program",
    Kind.DIVERGENT_COLLECTIVE: "divergent vote or shuffle in a logical warp: thread {other_thread} {other}",
    Kind.INACTIVE_SOURCE: "shuffle from lane {detail} of the wave, which does not take part in it",
    Kind.DIVERGENT_BARRIER: "divergent barrier: thread {other_thread} {other}",
    Kind.MISSED_BARRIER: "barrier that thread {other_thread} misses, because it has ended",
    Kind.MISSED_CLUSTER_BARRIER: "cluster barrier that the block of rank {detail} misses, because it has ended",
    Kind.SHARED_LIMIT: "shared memory of {detail} bytes exceeds the limit of {detail2}",
    Kind.SHARED_TWICE: "second shared struct, of {detail} bytes; the first has {detail2}",
    Kind.SHARED_GUARD: "shared memory written at byte {signed} of a struct of {detail2} bytes",
    Kind.MISALIGNED: "address {detail:#x} is not a multiple of {detail2}",
    Kind.REMOTE_RANK: "rank {detail} in a cluster of {detail2} blocks",
    Kind.REMOTE_ADDRESS: "remote access at byte {signed} of a shared struct of {detail2} bytes",
    Kind.REMOTE_EARLY: "remote access to rank {detail} before any cluster barrier: its block may not run yet",
    Kind.REMOTE_ENDED: "remote access to the shared memory of rank {detail}, whose block has ended",
    Kind.UNKNOWN_TRANSACTION: "byte {signed} of a shared struct of {detail2} bytes is no transaction barrier",
    Kind.EXPECTED_TWICE: "second expectation in a phase of a transaction barrier, {signed} bytes of which are to come",
    Kind.STUCK_TRANSACTION: "waits for ever at a transaction barrier: {signed} of the expected bytes do not come",
    Kind.NOTHING_EXPECTED: "waits for ever at a transaction barrier: no thread of its block expects bytes",
    Kind.UNREAD_PUSH: "the block of rank {detail} has ended, and bytes pushed to it are still on their way",
    Kind.NO_MEMORY: "the emulator has no memory for this launch",
}
_OF_THE_LAUNCH = (Kind.UNKNOWN_SYMBOL, Kind.NO_MEMORY)
_OF_A_BLOCK = (Kind.SHARED_GUARD, Kind.UNREAD_PUSH)

# What a thread that breaks a collective does instead: State of engine.h.
_STATES = {
    1: "is at a vote at line {}",
    2: "is at a shuffle at line {}",
    3: "is at a block barrier at line {}",
    4: "is at a cluster barrier at line {}",
    5: "is at a transaction barrier at line {}",
    6: "has ended",
}
# Where an address lies: Area of protocol.h.
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
        return f"kernel {kernel}{self._where()}: {self._crash(regions) if self._is_crash else self._words()}"

    @property
    def _is_crash(self) -> bool:
        return self.kind == Kind.SIGNAL

    def _where(self) -> str:
        """Block, thread and line, as far as the finding is about one."""
        if self.kind in _OF_THE_LAUNCH:
            return ""
        if self.kind in _OF_A_BLOCK:
            return f", block {self.block}"
        # A crash happens somewhere after the last primitive that passed its caller's line on.
        line = f", {'after ' if self._is_crash else ''}line {self.line}" if self.line else ""
        return f", block {self.block}, thread {self.thread}{line}"

    def _words(self) -> str:
        other = _STATES.get(self.detail, "").format(self.other_line)
        if self.other_line == self.line:
            other += " in another call"
        numbers = {"detail": self.detail, "detail2": self.detail2, "signed": self._signed}
        return _WORDS[Kind(self.kind)].format(**numbers, other_thread=self.other_thread, other=other)

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
