"""What runs found, row by row: what each symbol did on each oracle, and what no case reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.render.render import render_triton
from dsv4gen.verify.outcome import MACHINE_CODE, CounterRow, ExecutedRow, Finding, Gap
from dsv4gen.verify.runs import Run
from dsv4gen.verify.triton_requests import labels, triton_requests


@dataclass
class Found:
    """Rows per target and symbol, findings, and the symbols or branches that no case reached."""

    rows: list[ExecutedRow] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    not_executed: list[Gap] = field(default_factory=list)
    counters: list[CounterRow] = field(default_factory=list)

    def add(self, plan: FamilyPlan, run: Run) -> None:
        """What a run did for a plan whose text it executed."""
        target, family = plan.target.name, plan.family
        names = run.names or _names(plan)
        for name in names if not run.reason else ():
            paths = tuple(sorted(run.row_paths.get(name, ())))
            self.rows.append(ExecutedRow(target, family, name, run.oracle, run.cases.get(name, 0), paths))
        self.not_executed += _gaps(plan, run, names)
        self.counters += [CounterRow(target, family, symbol, counted) for symbol, counted in run.counted.items()]
        self.findings += [Finding(target, family, "run", text) for text in run.findings]

    def add_machine_code_gaps(self, plan: FamilyPlan, reason: str) -> None:
        """Every kernel of a plan whose target's machine code nothing here executes."""
        names = _shipped(plan) if plan.language == "triton" else _names(plan)
        target, family = plan.target.name, plan.family
        self.not_executed += [Gap(target, family, name, oracle=MACHINE_CODE, reason=reason) for name in names]


def _names(plan: FamilyPlan) -> Sequence[str]:
    """What must have been run: symbols, or the launch functions of a Triton family."""
    if plan.language == "triton":
        return [op.name for op in plan.ops]
    return [instance.symbol for kernel in plan.kernels for instance in kernel.instances]


def _shipped(plan: FamilyPlan) -> Sequence[str]:
    rendered = render_triton(plan)
    return labels(triton_requests(plan, rendered, Path(rendered.name)))


def _gaps(plan: FamilyPlan, run: Run, names: Sequence[str]) -> Iterator[Gap]:
    """Names without a case, and of the others the row paths without one."""
    where = (plan.target.name, plan.family)
    for name in names:
        if not run.cases.get(name):
            yield Gap(*where, name, oracle=run.oracle, reason=run.reason)
    if plan.language == "triton":
        return
    for kernel in plan.kernels:
        for instance in kernel.instances:
            for path in instance.row_paths if run.cases.get(instance.symbol) else ():
                if path not in run.row_paths.get(instance.symbol, ()):
                    yield Gap(*where, instance.symbol, path, run.oracle)
