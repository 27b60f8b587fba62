"""What the cases of one family did on one oracle, and the run of a Triton family as machine code."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from dsv4gen.base.errors import DsvError, ToolMissing
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.reference.case import Case
from dsv4gen.target import TargetRecord
from dsv4gen.verify.outcome import Counted
from dsv4gen.verify.progress import Step
from dsv4gen.verify.triton_machine import TritonMachine

#: of blocks, waves and lanes; cases take them in turn
ORDERS = ("ascending", "descending", "random:1", "random:2")


@dataclass
class Run:
    """What one distinct text did: cases per symbol, branches taken, counts of its longest launch, findings."""

    oracle: str
    cases: dict[str, int] = field(default_factory=dict)
    #: what must have run; empty for the plan's symbols or ops
    names: tuple[str, ...] = ()
    row_paths: dict[str, set[str]] = field(default_factory=dict)
    counted: dict[str, Counted] = field(default_factory=dict)
    #: what each case reached, in their order: symbols, with an empty name, and their row paths
    reached: list[set[tuple[str, str]]] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    #: why nothing could run
    reason: str = ""

    @classmethod
    def impossible(cls, oracle: str, what: str, reason: str) -> Run:
        """A run that a missing tool prevented: a finding."""
        return cls(oracle, findings=[f"{what}: {reason}"], reason=reason)


def cases_of(plan: FamilyPlan, full: bool, *, machine_code: bool = False) -> Iterator[Case]:
    """The family's cases; for machine code those that the family has for it, or the same."""
    module = importlib.import_module(f"dsv4gen.reference.{plan.reference}_cases")
    named = module.verification_cases
    cases: Iterator[Case] = (getattr(module, "machine_code_cases", named) if machine_code else named)(full=full)
    return cases


def run_triton_machine(plan: FamilyPlan, record: TargetRecord, full: bool, step: Step = lambda: None) -> Run:
    """A Triton family's cases as machine code; what must have run is what the module states it ships."""
    run = Run(TritonMachine.name)
    try:
        with TritonMachine(plan, record) as machine:
            run.names = tuple(machine.labels())
            for number, case in enumerate(cases_of(plan, full, machine_code=True)):
                _one_case(run, machine, case, ORDERS[number % len(ORDERS)])
                step()
    except ToolMissing as error:
        return Run.impossible(run.oracle, f"{plan.family} was not run as {record.name} machine code", str(error))
    return run


def _one_case(run: Run, machine: TritonMachine, case: Case, order: str) -> None:
    """One case in one order; keeps the counts of each shipped kernel's longest launch."""
    try:
        launches = machine.run(case, order)
    except DsvError as error:
        where = f"{machine.plan.family} as {machine.plan.target.name} machine code"
        run.findings.append(f"{where}: {case.name} ({order}): {error}")
        return
    for name, launch in machine.shipped_among(launches):
        run.cases[name] = run.cases.get(name, 0) + 1
        longest = run.counted.get(name)
        if longest is None or launch.instructions > longest.instructions:
            counts = dict(launch.counters)
            run.counted[name] = Counted(case.name, launch.grid, launch.block, launch.instructions, counts)
