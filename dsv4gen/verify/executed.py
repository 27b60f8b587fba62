"""Run every family of every target on its oracle, each distinct text once, and say what was not run.

Targets that share a kernel body and a wave size share the run: the row of each names the same cases.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
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
from dsv4gen.verify.found import Found
from dsv4gen.verify.oracle import FamilyOracle
from dsv4gen.verify.outcome import MACHINE_CODE, Counted
from dsv4gen.verify.progress import QUIET, Progress, Step
from dsv4gen.verify.runs import ORDERS, Run, cases_of, run_triton_machine
from dsv4gen.verify.simt import SimtFamily

#: of the covering cases, one in so many is executed as machine code, besides those that reach something new; a prime,
#: because cases go through modes and orders in turn, and a step that shares a factor with their number would take the
#: same one each time
MACHINE_CODE_STEP = 19


@dataclass(frozen=True)
class _Ahead:
    """What threads build or run while another one runs cases.

    Attributes:
        hosts: host builds, by text.
        codes: HIP/CUDA families as compiled machine code, by their plan's id.
        machines: runs of Triton families as machine code, by their plan's id.
    """

    hosts: Mapping[str, Future[SimtFamily]]
    codes: Mapping[int, Future[AmdgcnFamily]]
    machines: Mapping[int, Future[Run]]

    @classmethod
    def begin(
        cls,
        pool: Executor,
        keys: Mapping[int, str],
        plans: Sequence[FamilyPlan],
        records: Mapping[str, TargetRecord],
        full: bool,
        progress: Progress,
    ) -> _Ahead:
        """Start everything, what takes longest first.

        Args:
            keys: text by the plan's id.
        """
        hosts: dict[str, Future[SimtFamily]] = {}
        for plan in plans:
            key = keys[id(plan)]
            if plan.language == "hip_cuda" and key not in hosts:
                hosts[key] = pool.submit(_build_host, plan, progress)
        emulated = [plan for plan in plans if _emulated(plan, records)]
        codes = {
            id(plan): pool.submit(_build_code, plan, records[plan.target.name], progress)
            for plan in emulated
            if plan.language == "hip_cuda"
        }
        machines = {
            id(plan): pool.submit(_run_triton_machine, plan, records[plan.target.name], full, progress)
            for plan in emulated
            if plan.language == "triton"
        }
        return cls(hosts, codes, machines)


def execute_all(
    plans: Sequence[FamilyPlan],
    *,
    full: bool,
    progress: Progress = QUIET,
    records: Mapping[str, TargetRecord] = MappingProxyType({}),
) -> Found:
    """Execute all plans; equal texts run once.

    Args:
        records: targets whose machine code is executed too where they are emulated, and said not to be elsewhere.
    """
    keys = {id(plan): _text_key(plan) for plan in plans}
    with ThreadPoolExecutor(job_count(bytes_per_job=TRITON_BYTES)) as pool:
        try:
            ahead = _Ahead.begin(pool, keys, plans, records, full, progress)
            return _execute(plans, keys, ahead, records, full, progress)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _execute(
    plans: Sequence[FamilyPlan],
    keys: Mapping[int, str],
    ahead: _Ahead,
    records: Mapping[str, TargetRecord],
    full: bool,
    progress: Progress,
) -> Found:
    """As `execute_all`, of what is built and run ahead."""
    runs: dict[str, Run] = {}
    for plan in plans:
        key = keys[id(plan)]
        if key not in runs:
            runs[key] = _run(plan, ahead.hosts.get(key), full, progress)
    machines = {
        id(plan): _run_amdgcn(plan, ahead.codes[id(plan)], full, runs[keys[id(plan)]].reached, progress)
        for plan in plans
        if id(plan) in ahead.codes
    }
    machines |= {number: running.result() for number, running in ahead.machines.items()}
    found = Found()
    for plan in plans:
        found.add(plan, runs[keys[id(plan)]])
        if id(plan) in machines:
            found.add(plan, machines[id(plan)])
        elif plan.target.name in records and plan.target.api == "hip":
            found.add_machine_code_gaps(plan, f"{plan.target.name} is compile-only: the emulator does not execute it")
    return found


def _emulated(plan: FamilyPlan, records: Mapping[str, TargetRecord]) -> bool:
    record = records.get(plan.target.name)
    return record is not None and record.evidence == "emulated"


def _text_key(plan: FamilyPlan) -> str:
    """Equal for plans whose oracle would run the same text."""
    if plan.language == "triton":
        text = render_triton(plan).text.replace(plan.target.name, "")
    else:
        text = f"{plan.target['wave.launch']}\n{render_source(plan).body}"
    return hashlib.sha256(f"{plan.family}\n{text}".encode()).hexdigest()


def _build_host(plan: FamilyPlan, progress: Progress) -> SimtFamily:
    with progress.stage(f"building {plan.family} for {plan.target.name} for the SIMT host"):
        return SimtFamily(plan, int(str(plan.target["wave.launch"])))


def _build_code(plan: FamilyPlan, record: TargetRecord, progress: Progress) -> AmdgcnFamily:
    with progress.stage(f"compiling {plan.family} for {plan.target.name} as the emulator reads it"):
        return AmdgcnFamily(plan, record, together=True)


def _run(plan: FamilyPlan, built: Future[SimtFamily] | None, full: bool, progress: Progress) -> Run:
    """Run the cases.

    Args:
        built: the host build; none for a Triton family, which the interpreter runs.
    """
    host = "SIMT host" if built else "interpreter"
    try:
        family = built.result() if built else None
        with progress.stage(f"running {plan.family} for {plan.target.name} on the {host}") as step:
            cases = cases_of(plan, full)
            return _run_simt(plan, family, cases, step) if family else _run_triton(plan, cases, step)
    except ToolMissing as error:
        return Run.impossible("none", f"{plan.family} on {plan.target.name} was not run", str(error))


def _run_simt(plan: FamilyPlan, family: SimtFamily, cases: Iterator[Case], step: Step) -> Run:
    run = Run(family.name)
    for number, case in enumerate(cases):
        run.reached.append(set())
        for variant in plan.variants.choices:
            run.reached[-1] |= _one(run, family, case.fresh(), variant, ORDERS[number % len(ORDERS)])
        step()
    return run


def _run_triton_machine(plan: FamilyPlan, record: TargetRecord, full: bool, progress: Progress) -> Run:
    with progress.stage(_as_machine_code(plan)) as step:
        return run_triton_machine(plan, record, full, step)


def _run_amdgcn(
    plan: FamilyPlan,
    built: Future[AmdgcnFamily],
    full: bool,
    reached: Sequence[set[tuple[str, str]]],
    progress: Progress,
) -> Run:
    """What the target's compiler made of the text: every 19th case and each that reaches something new, or all.

    Args:
        reached: what each case reached on the host build.
    """
    try:
        family = built.result()
    except ToolMissing as error:
        what = f"{plan.family} was not run as {plan.target.name} machine code"
        return Run.impossible(MACHINE_CODE, what, str(error))
    run = Run(family.name)
    chosen = None if full else _machine_code_cases(reached)
    with progress.stage(_as_machine_code(plan), None if chosen is None else len(chosen)) as step:
        for number, case in enumerate(cases_of(plan, False)):
            if chosen is None or number in chosen:
                for variant in plan.variants.choices:
                    _one(run, family, case.fresh(), variant, ORDERS[number // MACHINE_CODE_STEP % len(ORDERS)])
                    _count(run, family, case.name)
                step()
    return run


def _machine_code_cases(reached: Sequence[set[tuple[str, str]]]) -> set[int]:
    """Numbers of every 19th case, and of each that reaches something that none before it of these did."""
    chosen: set[int] = set()
    done: set[tuple[str, str]] = set()
    for number, found in enumerate(reached):
        if number % MACHINE_CODE_STEP == 0 or not found <= done:
            chosen.add(number)
            done |= found
    return chosen


def _as_machine_code(plan: FamilyPlan) -> str:
    return f"running {plan.family} as {plan.target.name} machine code"


def _count(run: Run, family: AmdgcnFamily, case: str) -> None:
    """Keep the counts of each symbol's longest launch, and forget the launches."""
    for launch, result in family.results:
        longest = run.counted.get(launch.symbol)
        if longest is None or result.instructions > longest.instructions:
            counts = dict(result.counters)
            run.counted[launch.symbol] = Counted(case, launch.grid, launch.block, result.instructions, counts)
    family.results.clear()


def _one(run: Run, family: FamilyOracle, case: Case, variant: str, order: str) -> set[tuple[str, str]]:
    """One case in one order of lanes and waves; what it reached, as `Run.reached` has it."""
    try:
        call = family.run(case, variant=variant, order=order, every_tile=True)
    except (VerifyError, EmulationError) as error:
        run.findings.append(f"{family.plan.family} on {family.plan.target.name}: {case.name} ({order}): {error}")
        return set()
    for symbol in call.symbols:
        run.cases[symbol] = run.cases.get(symbol, 0) + 1
    for symbol, path in call.row_paths:
        run.row_paths.setdefault(symbol, set()).add(path)
    return {*((symbol, "") for symbol in call.symbols), *call.row_paths}


def _run_triton(plan: FamilyPlan, cases: Iterator[Case], step: Step) -> Run:
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
            step()
    return run
