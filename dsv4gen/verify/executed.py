"""Run every family of every target on its oracle, each distinct text once, and say what was not run.

Targets that share a kernel body and a wave size share the run: the row of each names the same cases.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from dsv4gen.base.errors import DsvError, EmulationError, ToolMissing, VerifyError
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.reference.case import Case
from dsv4gen.render import render_source
from dsv4gen.render.render import render_triton
from dsv4gen.target import TargetRecord
from dsv4gen.toolchain.parallel import TRITON_BYTES, job_count
from dsv4gen.verify.amdgcn import AmdgcnFamily
from dsv4gen.verify.oracle import FamilyOracle
from dsv4gen.verify.outcome import Counted, CounterRow, ExecutedRow, Finding, Gap
from dsv4gen.verify.runs import ORDERS, Run, cases_of, run_triton_machine
from dsv4gen.verify.simt import SimtFamily

#: of the covering cases, one in so many is executed as machine code; a prime, because cases go through modes and
#: orders in turn, and a step that shares a factor with their number would take the same one each time
MACHINE_CODE_STEP = 19


@dataclass(frozen=True)
class Executed:
    """Rows per target and symbol, findings, and the symbols or branches that no case reached."""

    rows: tuple[ExecutedRow, ...]
    findings: tuple[Finding, ...]
    not_executed: tuple[Gap, ...]
    counters: tuple[CounterRow, ...] = ()


def execute_all(
    plans: Sequence[FamilyPlan],
    *,
    full: bool,
    progress: Callable[[str], None],
    emulated: Mapping[str, TargetRecord] = MappingProxyType({}),
) -> Executed:
    """Execute all plans; equal texts run once.

    Args:
        emulated: targets whose machine code is executed too, each with its record.
    """
    with ThreadPoolExecutor(job_count(bytes_per_job=TRITON_BYTES)) as pool:
        machines = {
            id(plan): pool.submit(run_triton_machine, plan, emulated[plan.target.name], full)
            for plan in plans
            if plan.language == "triton" and plan.target.name in emulated
        }
        return _execute(plans, machines, emulated, full, progress)


def _execute(
    plans: Sequence[FamilyPlan],
    machines: Mapping[int, Future[Run]],
    emulated: Mapping[str, TargetRecord],
    full: bool,
    progress: Callable[[str], None],
) -> Executed:
    """As `execute_all`, while `machines` runs Triton families as machine code."""
    runs: dict[str, Run] = {}
    rows: list[ExecutedRow] = []
    counters: list[CounterRow] = []
    missing: list[Gap] = []
    findings: list[Finding] = []
    for plan in plans:
        key = _text_key(plan)
        if key not in runs:
            progress(f"running {plan.family} as on {plan.target.name}")
            runs[key] = _run(plan, full)
        rows += _rows(plan, runs[key])
        missing += _not_executed(plan, runs[key])
        findings += _findings(plan, runs[key])
        record = emulated.get(plan.target.name)
        if record is not None and plan.language == "hip_cuda":
            progress(f"running {plan.family} as {plan.target.name} machine code")
            machine = _run_amdgcn(plan, record, full)
            rows += [row for row in _rows(plan, machine) if row.cases]
            counters += _counters(plan, machine)
            findings += _findings(plan, machine)
        if id(plan) in machines:
            progress(f"running {plan.family} as {plan.target.name} machine code")
            machine = machines[id(plan)].result()
            rows += _rows(plan, machine)
            missing += _not_executed(plan, machine)
            counters += _counters(plan, machine)
            findings += _findings(plan, machine)
    return Executed(tuple(rows), tuple(findings), tuple(missing), tuple(counters))


def _text_key(plan: FamilyPlan) -> str:
    """Equal for plans whose oracle would run the same text."""
    if plan.language == "triton":
        text = render_triton(plan).text.replace(plan.target.name, "")
    else:
        text = f"{plan.target['wave.launch']}\n{render_source(plan).body}"
    return hashlib.sha256(f"{plan.family}\n{text}".encode()).hexdigest()


def _run(plan: FamilyPlan, full: bool) -> Run:
    try:
        cases = cases_of(plan, full)
        return _run_triton(plan, cases) if plan.language == "triton" else _run_simt(plan, cases)
    except ToolMissing as error:
        return Run("none", findings=[f"{plan.family} on {plan.target.name} was not run: {error}"])


def _run_simt(plan: FamilyPlan, cases: Iterator[Case]) -> Run:
    wave = int(str(plan.target["wave.launch"]))
    family = SimtFamily(plan, wave)
    run = Run(family.name)
    for number, case in enumerate(cases):
        for variant in plan.variants.choices:
            _one(run, family, case.fresh(), variant, ORDERS[number % len(ORDERS)])
    return run


def _run_amdgcn(plan: FamilyPlan, record: TargetRecord, full: bool) -> Run:
    """What the target's compiler made of the text, executed; every 19th case, or all of them."""
    try:
        family = AmdgcnFamily(plan, record)
    except ToolMissing as error:
        return Run("none", findings=[f"{plan.family} was not run as {record.name} machine code: {error}"])
    run = Run(family.name)
    for number, case in enumerate(cases_of(plan, False)):
        if full or number % MACHINE_CODE_STEP == 0:
            for variant in plan.variants.choices:
                _one(run, family, case.fresh(), variant, ORDERS[number // MACHINE_CODE_STEP % len(ORDERS)])
                _count(run, family, case.name)
    return run


def _count(run: Run, family: AmdgcnFamily, case: str) -> None:
    """Keep the counts of each symbol's longest launch, and forget the launches."""
    for launch, result in family.results:
        longest = run.counted.get(launch.symbol)
        if longest is None or result.instructions > longest.instructions:
            counts = dict(result.counters)
            run.counted[launch.symbol] = Counted(case, launch.grid, launch.block, result.instructions, counts)
    family.results.clear()


def _one(run: Run, family: FamilyOracle, case: Case, variant: str, order: str) -> None:
    """One case in one order of lanes and waves."""
    try:
        call = family.run(case, variant=variant, order=order, every_tile=True)
    except (VerifyError, EmulationError) as error:
        run.findings.append(f"{family.plan.family} on {family.plan.target.name}: {case.name} ({order}): {error}")
        return
    for symbol in call.symbols:
        run.cases[symbol] = run.cases.get(symbol, 0) + 1
    for symbol, path in call.row_paths:
        run.row_paths.setdefault(symbol, set()).add(path)


def _run_triton(plan: FamilyPlan, cases: Iterator[Case]) -> Run:
    from dsv4gen.interpret import shared_worker

    run = Run("interpreter")
    worker = shared_worker()
    with tempfile.TemporaryDirectory(prefix="dsv4gen-verify-") as folder:
        module = Path(folder) / f"{plan.family}.py"
        module.write_text(render_triton(plan).text, encoding="utf-8")
        for case in cases:
            try:
                worker.call(module, case.op, **cast(dict[str, Any], dict(case.arguments)))
                case.check()
                run.cases[case.op] = run.cases.get(case.op, 0) + 1
            except DsvError as error:
                run.findings.append(f"{plan.family} on {plan.target.name}: {case.name}: {error}")
    return run


def _names(plan: FamilyPlan, run: Run) -> Sequence[str]:
    """What must have been run: symbols, or the launch functions of a Triton family."""
    if run.names:
        return run.names
    if plan.language == "triton":
        return [op.name for op in plan.ops]
    return [instance.symbol for kernel in plan.kernels for instance in kernel.instances]


def _rows(plan: FamilyPlan, run: Run) -> Iterator[ExecutedRow]:
    for name in _names(plan, run):
        paths = tuple(sorted(run.row_paths.get(name, ())))
        yield ExecutedRow(plan.target.name, plan.family, name, run.oracle, run.cases.get(name, 0), paths)


def _findings(plan: FamilyPlan, run: Run) -> Iterator[Finding]:
    for text in run.findings:
        yield Finding(plan.target.name, plan.family, "run", text)


def _counters(plan: FamilyPlan, run: Run) -> Iterator[CounterRow]:
    for symbol, counted in run.counted.items():
        yield CounterRow(plan.target.name, plan.family, symbol, counted)


def _not_executed(plan: FamilyPlan, run: Run) -> Iterator[Gap]:
    for name in _names(plan, run):
        if not run.cases.get(name):
            yield Gap(plan.target.name, plan.family, name)
    if plan.language == "triton":
        return
    for kernel in plan.kernels:
        for instance in kernel.instances:
            for path in kernel.row_paths:
                if path.name not in run.row_paths.get(instance.symbol, ()):
                    yield Gap(plan.target.name, plan.family, instance.symbol, path.name)
