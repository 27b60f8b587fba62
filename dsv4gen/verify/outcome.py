"""What verification found: resources per kernel, executed cases per symbol, findings, and what was not executed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dsv4gen.console import say, table

RESOURCE_HEAD = (
    "target",
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
EXECUTED_HEAD = ("target", "kernel", "oracle", "cases", "row paths")


@dataclass(frozen=True)
class KernelRow:
    """One compiled kernel: registers per thread, bytes of scratch and shared memory, resident blocks per unit."""

    target: str
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
        return tuple(asdict(self).values())


@dataclass(frozen=True)
class ExecutedRow:
    """One symbol on one oracle: how many cases ran and agreed, which branches they took."""

    target: str
    symbol: str
    oracle: str
    cases: int
    row_paths: tuple[str, ...]

    def cells(self) -> tuple[object, ...]:
        """The row of the printed table."""
        return self.target, self.symbol, self.oracle, self.cases, " ".join(self.row_paths)


@dataclass(frozen=True)
class Outcome:
    """Everything one run of `verify` found."""

    targets: tuple[str, ...]
    kernels: tuple[KernelRow, ...]
    executed: tuple[ExecutedRow, ...]
    not_executed: tuple[str, ...]
    findings: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: Mapping[str, float]

    @property
    def passed(self) -> bool:
        """No finding, and nothing left unexecuted without a reason."""
        return not self.findings and not self.not_executed

    def to_json(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {**asdict(self), "passed": self.passed}

    def show(self) -> None:
        """Print for people."""
        if self.kernels:
            table(RESOURCE_HEAD, [row.cells() for row in self.kernels])
            say()
        if self.executed:
            table(EXECUTED_HEAD, [row.cells() for row in self.executed])
            say()
        for note in self.notes:
            say(f"note: {note}", "dim")
        for symbol in self.not_executed:
            say(f"not executed: {symbol}", "bad")
        for finding in self.findings:
            say(f"finding: {finding}", "bad")
        cases = sum(row.cases for row in self.executed)
        timing = ", ".join(f"{name} {value:.1f} s" for name, value in self.seconds.items())
        verdict = "verified" if self.passed else "NOT verified"
        say(
            f"{verdict}: {len(self.targets)} targets, {len(self.kernels)} kernels compiled, {cases} cases executed, "
            f"{len(self.findings)} findings ({timing})",
            "good" if self.passed else "bad",
        )
