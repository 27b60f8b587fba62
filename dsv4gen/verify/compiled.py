"""Every generated source through its target's compiler: resources, budgets, and the proof's figures confirmed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from dsv4gen.base.choices import with_choices
from dsv4gen.base.errors import DsvError
from dsv4gen.plan.ir import FamilyPlan, Instance
from dsv4gen.render import RenderedFile, render_source
from dsv4gen.render.render import render_triton
from dsv4gen.target import TargetRecord
from dsv4gen.target.occupancy import occupancy
from dsv4gen.toolchain import (
    LINE_TABLES,
    CodeObject,
    KernelResources,
    Task,
    TritonKernel,
    check_budget,
    compile_source,
    compile_triton_many,
    run_tasks,
)
from dsv4gen.verify.builds import build_words
from dsv4gen.verify.outcome import Finding, KernelRow
from dsv4gen.verify.progress import QUIET, Progress
from dsv4gen.verify.triton_requests import labels, triton_requests


@dataclass(frozen=True)
class Compiled:
    """Rows and findings of one compile step."""

    rows: tuple[KernelRow, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Job:
    """One family on one device that runs its source: the target itself or one of its `also` devices.

    Attributes:
        options: choices that take the place of those in the source's lines.
    """

    plan: FamilyPlan
    record: TargetRecord
    options: Mapping[str, str] = field(default_factory=dict)


def compile_all(jobs: Sequence[Job], progress: Progress = QUIET) -> Compiled:
    """Compile all jobs in parallel; a failure of one does not stop the others."""
    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(_compile_sources, [job for job in jobs if job.plan.language == "hip_cuda"], progress)
        modules = _compile_modules([job for job in jobs if job.plan.language == "triton"], progress)
        sources = begun.result()
    return Compiled((*sources.rows, *modules.rows), (*sources.findings, *modules.findings))


def _compile_sources(jobs: Sequence[Job], progress: Progress) -> Compiled:
    if not jobs:
        return Compiled((), ())
    tasks = [Task(_title(job), lambda job=job: _compile(job)) for job in jobs]  # type: ignore[misc]
    rows: list[KernelRow] = []
    findings: list[Finding] = []
    with progress.stage("compiling HIP/CUDA sources", len(tasks)) as step:
        finished = run_tasks(tasks, on_finish=lambda _: step())
    for job, done in zip(jobs, finished, strict=True):
        if done.error is not None:
            findings += _findings(job.plan, getattr(done.error, "errors", (done.error,)), job.options)
        elif done.value is not None:
            found = list(_read(job, done.value))
            rows += [row for row, _ in found]
            findings += _findings(job.plan, [error for _, errors in found for error in errors], job.options)
    return Compiled(tuple(rows), tuple(findings))


def _compile_modules(jobs: Sequence[Job], progress: Progress) -> Compiled:
    """Triton modules: the combinations that each states it compiles ahead of time."""
    if not jobs:
        return Compiled((), ())
    rows: list[KernelRow] = []
    findings: list[Finding] = []
    with tempfile.TemporaryDirectory(prefix="dsv4gen-verify-") as folder:
        asked = [(job, kernel, label) for job in jobs for kernel, label in _requests(job, Path(folder))]
        with progress.stage("compiling Triton kernels", len(asked)):
            made = compile_triton_many([(kernel, job.record) for job, kernel, _ in asked])
        for (job, kernel, label), done in zip(asked, made, strict=True):
            plan, record = job.plan, job.record
            if done.value is None:
                findings += _findings(plan, getattr(done.error, "errors", (done.error,)))
                continue
            used = done.value.code.kernels[0].for_launch(
                record, threads=done.value.threads, dynamic_shared_bytes=done.value.shared_bytes
            )
            rows.append(_row(plan, record, label, used, "triton", done.value.threads, record.shared.block))
            findings += _findings(plan, _budget(plan, kernel, record, used, done.value.threads))
    return Compiled(tuple(rows), tuple(findings))


def _findings(
    plan: FamilyPlan, errors: Iterable[object], options: Mapping[str, str] = MappingProxyType({})
) -> list[Finding]:
    where = f" (with{build_words(options)})" if options else ""
    return [Finding(plan.target.name, plan.family, "compile", f"{error}{where}") for error in errors]


def _budget(
    plan: FamilyPlan, kernel: TritonKernel, record: TargetRecord, used: KernelResources, threads: int
) -> Sequence[DsvError]:
    """The check of one combination, with what the spec lets the kernel spill."""
    spills = (k.spills for k in plan.kernels if k.entry == kernel.function)
    allowed = max((one.allowed(_usual(plan)) for one in spills if one is not None), default=0)
    return check_budget(used, record, threads=threads, **_allowances(allowed))


def _usual(plan: FamilyPlan) -> dict[str, str]:
    return {option.name: option.default for option in plan.options}


def _allowances(registers: int) -> dict[str, int]:
    """What a kernel that may spill so many registers may use: 8 bytes of scratch each."""
    return {
        "allowed_spills": registers,
        "allowed_scalar_spills": registers,
        "allowed_scratch": 8 * registers,
    }


def _requests(job: Job, folder: Path) -> list[tuple[TritonKernel, str]]:
    """What the module states, each with its label."""
    rendered = render_triton(job.plan)
    path = folder / job.record.device / rendered.name
    path.parent.mkdir(exist_ok=True)
    path.write_text(rendered.text, encoding="utf-8")
    kernels = triton_requests(job.plan, rendered, path)
    return list(zip(kernels, labels(kernels), strict=True))


def _title(job: Job) -> str:
    return f"{job.plan.family} for {job.record.device}{build_words(job.options)}"


def _compile(job: Job) -> CodeObject:
    file: RenderedFile = render_source(job.plan)
    text = with_choices(file.text, job.options)
    symbols = [instance.symbol for kernel in job.plan.kernels for instance in kernel.instances]
    origins = file.source_map
    # As the emulator wants it, which then finds it in the cache: half a minute of a core for the largest source.
    flags = (LINE_TABLES,) if job.record.evidence == "emulated" else ()
    return compile_source(text, job.record, symbols=symbols, name=job.plan.family, source_map=origins, flags=flags)


def _read(job: Job, code: CodeObject) -> Iterator[tuple[KernelRow, list[DsvError]]]:
    for kernel in job.plan.kernels:
        for instance in kernel.instances:
            options = {**_usual(job.plan), **job.options, **instance.options}
            used = code.kernel(instance.symbol)
            errors: list[DsvError] = list(
                check_budget(
                    used,
                    job.record,
                    expected_shared=instance.shared_bytes,
                    threads=instance.threads,
                    min_blocks=_resident(instance, job.record),
                    **_allowances(kernel.spills.allowed(options) if kernel.spills else 0),
                )
            )
            limit = job.record.shared.static
            symbol = instance.symbol + build_words(job.options)
            yield _row(job.plan, job.record, symbol, used, code.compiler, instance.threads, limit), errors


def _resident(instance: Instance, record: TargetRecord) -> int:
    """Blocks that a unit must hold.

    Launch bounds are of the target. They cap registers, and hold for a device that runs its source too; but that one
    may have less shared memory, and then holds fewer blocks.
    """
    if record.device == record.name:
        return instance.min_blocks
    by_shared = occupancy(record, instance.threads, vector=1, shared_bytes=instance.shared_bytes).blocks
    return min(instance.min_blocks, by_shared)


def _row(
    plan: FamilyPlan,
    record: TargetRecord,
    symbol: str,
    used: KernelResources,
    compiler: str,
    threads: int,
    shared_limit: int,
) -> KernelRow:
    return KernelRow(
        target=plan.target.name,
        family=plan.family,
        device=record.device,
        symbol=symbol,
        compiler=compiler,
        registers=used.vector_registers,
        accumulators=used.accumulator_registers,
        scalars=used.scalar_registers,
        spills=used.spilled_registers,
        scratch=used.scratch_bytes,
        shared=used.shared_bytes,
        shared_limit=shared_limit,
        blocks_per_unit=occupancy(
            record,
            threads,
            vector=used.vector_registers,
            accumulator=used.accumulator_registers,
            scalar=used.scalar_registers,
            shared_bytes=used.shared_bytes,
        ).blocks,
    )
