"""What verification found: resources per kernel, executed cases per symbol, findings, and what was not executed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import Any, TypeVar

from dsv4gen.console import say, table

KIND = "dsv4gen verify"
SCHEMA = 1

#: the oracle that executes AMD machine code
MACHINE_CODE = "amdgcn emulator"

RESOURCE_HEAD = (
    "target",
    "family",
    "kernel",
    "compiler",
    "regs",
    "acc",
    "scalar",
    "spills",
    "scratch",
    "shared",
    "limit",
    "blocks/unit",
)
EXECUTED_HEAD = ("target", "family", "kernel or op", "oracle", "cases", "row paths")
GAP_HEAD = ("target", "family", "not executed", "on", "because")


@dataclass(frozen=True)
class KernelRow:
    """One compiled kernel: registers per thread, bytes of scratch and shared memory, resident blocks per unit.

    `device` is what it was compiled for: the target itself, or a device that runs the target's source.
    """

    target: str
    family: str
    device: str
    symbol: str
    compiler: str
    registers: int
    accumulators: int
    scalars: int
    spills: int
    scratch: int
    shared: int
    shared_limit: int
    blocks_per_unit: int

    def cells(self) -> tuple[object, ...]:
        """The row of the printed table."""
        return self.device, self.family, *astuple(self)[3:]


@dataclass(frozen=True)
class ExecutedRow:
    """One symbol on one oracle: how many cases ran and agreed, which branches they took."""

    target: str
    family: str
    symbol: str
    oracle: str
    cases: int
    row_paths: tuple[str, ...]

    def cells(self) -> tuple[object, ...]:
        """The row of the printed table."""
        return self.target, self.family, self.symbol, self.oracle, self.cases, " ".join(self.row_paths)


@dataclass(frozen=True)
class Counted:
    """One launch on the machine-code emulator: executed wave instructions and counters by name; counts, never time."""

    case: str
    grid: tuple[int, int, int]
    block: int
    instructions: int
    counters: Mapping[str, int]


@dataclass(frozen=True)
class CounterRow:
    """The launch of a symbol that executed the most instructions."""

    target: str
    family: str
    symbol: str
    counted: Counted


@dataclass(frozen=True)
class Finding:
    """Something wrong; `stage` is compile or run."""

    target: str
    family: str
    stage: str
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Gap:
    """A symbol, or one row path of it, that no case reached on an oracle.

    With a `reason` nothing of the family can run there, and no case was missing.
    """

    target: str
    family: str
    symbol: str
    row_path: str = ""
    oracle: str = ""
    reason: str = ""

    def __str__(self) -> str:
        branch = f": row path {self.row_path}" if self.row_path else ""
        place = f" on {self.oracle}" if self.oracle else ""
        return f"{self.target} {self.family} {self.symbol}{branch}{place}: {self.reason or 'no case reached it'}"

    def cells(self) -> tuple[object, ...]:
        """The row of the printed table."""
        return self.target, self.family, self.symbol, self.oracle, self.reason


Row = TypeVar("Row", KernelRow, ExecutedRow, CounterRow, Finding, Gap)


@dataclass(frozen=True)
class Outcome:
    """Everything one run of `verify` found.

    `digests` says what was verified, by target and family: the digest that `Manifest.family_digest` gives for it.
    """

    targets: tuple[str, ...]
    kernels: tuple[KernelRow, ...]
    executed: tuple[ExecutedRow, ...]
    not_executed: tuple[Gap, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    seconds: Mapping[str, float]
    counters: tuple[CounterRow, ...] = ()
    digests: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    finished: str = ""

    @property
    def passed(self) -> bool:
        """No finding, and nothing left unexecuted without a reason."""
        return not self.findings and not self.unreached

    @property
    def unreached(self) -> tuple[Gap, ...]:
        """What was not executed without a reason: cases are missing."""
        return tuple(gap for gap in self.not_executed if not gap.reason)

    def part(self, target: str, family: str) -> Outcome:
        """What concerns one family on one target; notes and seconds stay those of the whole run."""

        def mine(rows: Iterable[Row]) -> tuple[Row, ...]:
            return tuple(row for row in rows if (row.target, row.family) == (target, family))

        return replace(
            self,
            targets=(target,),
            kernels=mine(self.kernels),
            executed=mine(self.executed),
            not_executed=mine(self.not_executed),
            findings=mine(self.findings),
            counters=mine(self.counters),
            digests={target: {family: self.digests[target][family]}},
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data for `--json` and for files of results."""
        return {"kind": KIND, "schema": SCHEMA, **asdict(self), "passed": self.passed}

    def show(self) -> None:
        """Print for people."""
        explained = [gap.cells() for gap in self.not_executed if gap.reason]
        for head, rows in (
            (RESOURCE_HEAD, [row.cells() for row in self.kernels]),
            (EXECUTED_HEAD, [row.cells() for row in self.executed]),
            (GAP_HEAD, explained),
        ):
            if rows:
                table(head, rows)
                say()
        for note in self.notes:
            say(f"note: {note}", "dim")
        for gap in self.unreached:
            say(f"not executed: {gap}", "bad")
        for finding in self.findings:
            say(f"finding: {finding}", "bad")
        say(self._verdict(), "good" if self.passed else "bad")

    def _verdict(self) -> str:
        """The last line."""
        counts = [
            f"{len(self.targets)} target{'s' if len(self.targets) != 1 else ''}",
            f"{len(self.kernels)} kernels compiled",
            f"{sum(row.cases for row in self.executed)} cases executed",
            *([f"{len(self.not_executed)} not executed"] if self.not_executed else []),
            f"{len(self.findings)} findings",
        ]
        timing = ", ".join(f"{name} {value:.1f} s" for name, value in self.seconds.items())
        return f"{'verified' if self.passed else 'NOT verified'}: {', '.join(counts)} ({timing})"
