"""What a run gives back: the error that stopped it, findings, counters; and how they are told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dsv4gen.base.errors import EmulationError
from dsv4gen.emulate.amdgcn.arguments import MappedBuffer
from dsv4gen.emulate.amdgcn.layout import FindingRecord, TrapRecord
from dsv4gen.emulate.amdgcn.program import Instruction, Program

#: runtime/wave.h FindingKind -> (name, what happened)
_FINDINGS = (
    ("lds race", "LDS race: read of byte {address:#x} that wave {other_wave} wrote in the same barrier interval"),
    ("lds race", "LDS race: write of byte {address:#x} that wave {other_wave} wrote in the same barrier interval"),
    ("lds race", "LDS race: write of byte {address:#x} that wave {other_wave} read in the same barrier interval"),
    ("uninitialised lds", "read of LDS byte {address:#x}, which nothing has written"),
    ("divergent barrier", "divergent barrier: wave {other_wave} waits at another barrier"),
    ("divergent barrier", "divergent barrier: lanes {address:#x} of the wave do not take part"),
    ("divergent barrier", "divergent barrier: wave {other_wave} ended while others wait"),
)
_UNPAIRED = ("uninitialised lds",)
#: runtime/wave.h TrapKind -> what happened
_TRAPS = (
    "",
    "global access out of bounds",
    "write to read-only memory",
    "LDS access out of bounds",
    "scratch access out of bounds",
    "instruction budget exhausted (a spin that nothing ends, or a budget that is too small)",
    "jump to an address where no code starts",
    "s_trap",
    "buffer descriptor with swizzling",
    "relative register number outside the wave's registers",
    "rounding mode other than to nearest even, which is not emulated",
)
_MANY = 126  # wave number in a record that stands for several waves


@dataclass(frozen=True)
class Finding:
    """One kind of misbehaviour at one pair of instructions: where it was seen first, and how often."""

    kind: str
    message: str
    instruction: Instruction
    other: Instruction | None
    wave: int
    lane: int
    block: tuple[int, int, int]
    count: int

    def __str__(self) -> str:
        where = location(self.instruction)
        other = f"\n    against: {location(self.other)}" if self.other else ""
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.message}{times}\n    at {where}, wave {self.wave}, lane {self.lane}, block {self.block}{other}"


@dataclass(frozen=True)
class Result:
    """The outcome of one launch.

    `error` is the text of the trap that stopped the launch, or None. `counters` has the executed wave
    instructions by class, LDS bank conflicts, cache lines touched, barriers. `executed` has a count for every
    instruction of the program.
    """

    error: str | None
    findings: tuple[Finding, ...]
    instructions: int
    counters: Mapping[str, int]
    executed: tuple[int, ...]
    seconds: float

    @property
    def races(self) -> tuple[Finding, ...]:
        """The LDS races among the findings."""
        return tuple(finding for finding in self.findings if finding.kind == "lds race")

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong, as text; empty for a clean run."""
        return ((self.error,) if self.error else ()) + tuple(str(finding) for finding in self.findings)

    def check(self) -> Result:
        """This result, if it is clean.

        Raises:
            EmulationError: a trap or a finding.
        """
        if self.problems:
            raise EmulationError("\n".join(self.problems))
        return self


def location(record: Instruction) -> str:
    """`pc 0x1c (device.h:27 called from kernel.hip:31) s_barrier`."""
    places = [place for place in (record.place, *record.callers) if place]
    source = f" ({' called from '.join(map(str, places))})" if places else ""
    return f"pc {record.address:#x}{source} `{record.text}`"


def finding_of(record: FindingRecord, program: Program) -> Finding:
    """A record of the runtime in words."""
    kind, message = _FINDINGS[record.kind]
    other_wave = "several" if record.other_wave == _MANY else str(record.other_wave)
    pairs = kind not in _UNPAIRED and "lanes" not in message
    return Finding(
        kind,
        message.format(address=record.address, other_wave=other_wave),
        program.instructions[record.instruction],
        program.instructions[record.other_instruction] if pairs else None,
        record.wave,
        record.lane,
        (record.block[0], record.block[1], record.block[2]),
        record.count,
    )


def describe_trap(record: TrapRecord, program: Program, mappings: Sequence[MappedBuffer]) -> str:
    """The error text of a trap."""
    what = _TRAPS[record.kind]
    if record.bytes:
        what += f": {record.bytes} bytes at {record.address:#x}"
        what += _nearest(record.address, mappings) if record.kind in (1, 2) else ""
    elif record.address:
        what += f": {record.address:#x}"
    where = location(program.instructions[record.instruction])
    return f"{what}\n    at {where}, wave {record.wave}, lane {record.lane}, block {tuple(record.block)}"


def _nearest(address: int, mappings: Sequence[MappedBuffer]) -> str:
    """`, 16 bytes past the end of argument 2`, or an empty text when no buffer is near."""
    best: tuple[int, str] | None = None
    for mapping in mappings:
        name, size = mapping.buffer.name or "a buffer", mapping.buffer.size
        before, after = mapping.device - address, address - mapping.device - size
        if after >= 0 and (best is None or after < best[0]):
            best = after, f", {after} bytes past the end of {name} ({size} bytes)"
        elif before > 0 and (best is None or before < best[0]):
            best = before, f", {before} bytes before the start of {name} ({size} bytes)"
        elif before <= 0 and after < 0:
            best = 0, f", in {name} ({size} bytes)"
    return best[1] if best and best[0] < 1 << 34 else ""
