"""`dsv4gen verify`: lint, compile, resources, execution and comparison, in that order."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone

from dsv4gen.base import extensions
from dsv4gen.base.errors import DsvError, ToolMissing
from dsv4gen.emit.build import Request, make_plans, make_trees
from dsv4gen.plan.ir import FamilyPlan, Kernel, Spills
from dsv4gen.spec import Specs, load_specs
from dsv4gen.target import resolve_target
from dsv4gen.verify.builds import option_builds
from dsv4gen.verify.compiled import Compiled, Job, compile_all
from dsv4gen.verify.executed import execute_all
from dsv4gen.verify.outcome import KernelRow, Outcome
from dsv4gen.verify.progress import QUIET, Progress

EMULATED = "AMD results are emulated on this machine's CPU, not measured on AMD hardware"


def verify(
    targets: Sequence[str],
    families: Sequence[str],
    *,
    full: bool = False,
    builds: bool = False,
    progress: Progress = QUIET,
) -> Outcome:
    """Verify families on targets from the specs as they are now.

    Args:
        full: every case of the matrix on the host build, and every covering one as machine code.
        builds: compile what options make of the sources too, see `option_builds`.

    Raises:
        SpecError, TemplateError, LintError, Problems: what cannot even be rendered.
        UsageError: an unknown family.
    """
    seconds: dict[str, float] = {}
    with _timed(seconds, "render and lint"), progress.stage(f"rendering and linting for {', '.join(targets)}"):
        trees = make_trees(Request(tuple(targets), tuple(families)))
        names = next(tuple(tree.manifest.families) for tree in trees.values())
        specs = load_specs(*extensions.spec_folders())
        plans = {target: make_plans(specs, target, families or names) for target in targets}
    with _timed(seconds, "compile"):
        compiled, notes = _compile(specs, plans, builds, progress)
    with _timed(seconds, "run"):
        flat = [plan for target in targets for plan in plans[target]]
        records = {target: resolve_target(specs, target) for target in targets}
        executed = execute_all(flat, full=full, progress=progress, records=records)
    notes += _spill_notes(flat, compiled.rows)
    if any(plan.target.api == "hip" for plan in flat):
        notes.append(EMULATED)
    return Outcome(
        targets=tuple(targets),
        kernels=compiled.rows,
        executed=tuple(executed.rows),
        not_executed=tuple(executed.not_executed),
        findings=(*compiled.findings, *executed.findings),
        notes=tuple(notes),
        seconds=seconds,
        counters=tuple(executed.counters),
        digests={
            target: {plan.family: trees[target].manifest.family_digest(plan.family) for plan in plans[target]}
            for target in targets
        },
        finished=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


def _compile(
    specs: Specs, plans: dict[str, list[FamilyPlan]], builds: bool, progress: Progress
) -> tuple[Compiled, list[str]]:
    """Compile for each target and the other devices that run its source; no compiler is a note, not a finding."""
    jobs = []
    for target, made in plans.items():
        record = resolve_target(specs, target)
        for plan in made:
            jobs += [Job(plan, device) for device in (record, *record.also)]
            jobs += [Job(plan, record, options) for options in (option_builds(plan) if builds else ())]
    try:
        return compile_all(jobs, progress), []
    except ToolMissing as error:
        return Compiled((), ()), [f"nothing was compiled: {error}"]


def _spill_notes(plans: Sequence[FamilyPlan], rows: Sequence[KernelRow]) -> list[str]:
    """Of kernels that spill: how much the specs let them, and why; each once."""
    spilling = {(row.family, row.symbol.split()[0]) for row in rows if row.spills or row.scratch}
    found = {
        f"{plan.family} {kernel.name} may spill up to {_registers(kernel.spills)}: {kernel.spills.reason}"
        for plan in plans
        for kernel in plan.kernels
        if kernel.spills and spilling & {(plan.family, name) for name in _functions(kernel)}
    }
    return sorted(found)


def _functions(kernel: Kernel) -> list[str]:
    """What rows call the kernel: a function of a Triton module, or its symbols."""
    return [kernel.entry, *(instance.symbol for instance in kernel.instances)]


def _registers(spills: Spills) -> str:
    where = "" if spills.when.constant is True else f" where {spills.when}"
    return f"{spills.registers} registers{where}"


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    except DsvError:
        raise
    finally:
        seconds[name] = time.perf_counter() - start
