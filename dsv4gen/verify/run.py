"""`dsv4gen verify`: lint, compile, resources, execution and comparison, in that order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone

from dsv4gen.base import extensions
from dsv4gen.base.errors import DsvError, ToolMissing
from dsv4gen.emit.build import Request, make_plans, make_trees
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.spec import Specs, load_specs
from dsv4gen.target import resolve_target
from dsv4gen.verify.compiled import Compiled, Job, compile_all
from dsv4gen.verify.executed import execute_all
from dsv4gen.verify.outcome import Outcome

EMULATED = "AMD results are emulated on this machine's CPU, not measured on AMD hardware"


def verify(
    targets: Sequence[str],
    families: Sequence[str],
    *,
    full: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Verify families on targets from the specs as they are now.

    Raises:
        SpecError, TemplateError, LintError, Problems: what cannot even be rendered.
        UsageError: an unknown family.
    """
    seconds: dict[str, float] = {}
    with _timed(seconds, "render and lint"):
        trees = make_trees(Request(tuple(targets), tuple(families)))
        names = next(tuple(tree.manifest.families) for tree in trees.values())
        specs = load_specs(*extensions.spec_folders())
        plans = {target: make_plans(specs, target, families or names) for target in targets}
    progress(f"compiling for {', '.join(targets)}")
    with _timed(seconds, "compile"):
        compiled, notes = _compile(specs, plans)
    with _timed(seconds, "run"):
        flat = [plan for target in targets for plan in plans[target]]
        records = {target: resolve_target(specs, target) for target in targets}
        emulated = {name: record for name, record in records.items() if record.evidence == "emulated"}
        executed = execute_all(flat, full=full, progress=progress, emulated=emulated)
    notes += _spill_notes(flat)
    if any(plan.target.api == "hip" for plan in flat):
        notes.append(EMULATED)
    return Outcome(
        targets=tuple(targets),
        kernels=compiled.rows,
        executed=executed.rows,
        not_executed=executed.not_executed,
        findings=(*compiled.findings, *executed.findings),
        notes=tuple(notes),
        seconds=seconds,
        counters=executed.counters,
        digests={
            target: {plan.family: trees[target].manifest.family_digest(plan.family) for plan in plans[target]}
            for target in targets
        },
        finished=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )


def _compile(specs: Specs, plans: dict[str, list[FamilyPlan]]) -> tuple[Compiled, list[str]]:
    """Compile for each target and the other devices that run its source; no compiler is a note, not a finding."""
    jobs = []
    for target, made in plans.items():
        record = resolve_target(specs, target)
        for plan in made:
            jobs += [Job(plan, device) for device in (record, *record.also)]
    try:
        return compile_all(jobs), []
    except ToolMissing as error:
        return Compiled((), ()), [f"nothing was compiled: {error}"]


def _spill_notes(plans: Sequence[FamilyPlan]) -> list[str]:
    """What the specs let kernels spill, and why; each once."""
    found = {
        f"{plan.family} {kernel.name} may spill up to {kernel.allowed_spills} registers: {kernel.spill_reason}"
        for plan in plans
        for kernel in plan.kernels
        if kernel.allowed_spills
    }
    return sorted(found)


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    except DsvError:
        raise
    finally:
        seconds[name] = time.perf_counter() - start
