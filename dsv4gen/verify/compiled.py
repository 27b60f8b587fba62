"""Every generated source through its target's compiler: resources, budgets, and the proof's figures confirmed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dsv4gen.base.errors import DsvError
from dsv4gen.plan.ir import FamilyPlan, Instance
from dsv4gen.render import RenderedFile, render_source
from dsv4gen.target import TargetRecord
from dsv4gen.target.occupancy import occupancy
from dsv4gen.toolchain import CodeObject, KernelResources, Task, check_budget, compile_source, run_tasks
from dsv4gen.verify.outcome import KernelRow


@dataclass(frozen=True)
class Compiled:
    """Rows and findings of one compile step."""

    rows: tuple[KernelRow, ...]
    findings: tuple[str, ...]


@dataclass(frozen=True)
class Job:
    """One family on one device that runs its source: the target itself or one of its `also` devices."""

    plan: FamilyPlan
    record: TargetRecord


def compile_all(jobs: Sequence[Job]) -> Compiled:
    """Compile all jobs in parallel; a failure of one does not stop the others."""
    tasks = [Task(f"{job.plan.family} for {job.record.device}", lambda job=job: _compile(job)) for job in jobs]  # type: ignore[misc]
    rows: list[KernelRow] = []
    findings: list[str] = []
    for job, done in zip(jobs, run_tasks(tasks), strict=True):
        if done.error is not None:
            findings += [str(error) for error in getattr(done.error, "errors", (done.error,))]
        elif done.value is not None:
            found = list(_read(job, done.value))
            rows += [row for row, _ in found]
            findings += [str(error) for _, errors in found for error in errors]
    return Compiled(tuple(rows), tuple(findings))


def _compile(job: Job) -> CodeObject:
    file: RenderedFile = render_source(job.plan)
    symbols = [instance.symbol for kernel in job.plan.kernels for instance in kernel.instances]
    return compile_source(file.text, job.record, symbols=symbols, name=job.plan.family, source_map=file.source_map)


def _read(job: Job, code: CodeObject) -> Iterator[tuple[KernelRow, list[DsvError]]]:
    for kernel in job.plan.kernels:
        for instance in kernel.instances:
            used = code.kernel(instance.symbol)
            errors: list[DsvError] = list(
                check_budget(
                    used,
                    job.record,
                    expected_shared=instance.shared_bytes,
                    threads=instance.threads,
                    min_blocks=instance.min_blocks,
                )
            )
            yield _row(job.record, instance, used, code.compiler), errors


def _row(record: TargetRecord, instance: Instance, used: KernelResources, compiler: str) -> KernelRow:
    return KernelRow(
        target=record.device,
        symbol=instance.symbol,
        compiler=compiler,
        registers=used.vector_registers,
        accumulators=used.accumulator_registers,
        scalars=used.scalar_registers,
        spills=used.spilled_registers,
        scratch=used.scratch_bytes,
        shared=used.shared_bytes,
        shared_limit=record.shared.static,
        blocks_per_unit=occupancy(
            record,
            instance.threads,
            vector=used.vector_registers,
            accumulator=used.accumulator_registers,
            scalar=used.scalar_registers,
            shared_bytes=used.shared_bytes,
        ).blocks,
    )
