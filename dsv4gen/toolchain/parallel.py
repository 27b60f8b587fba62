"""Many compiles at once, within this machine's cores and memory; one failure does not stop the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from dsv4gen.base.errors import DsvError

T = TypeVar("T")

# A compiler of this project's kernels peaks below 300 MB; a Triton worker below 900 MB.
COMPILE_BYTES = 512 << 20
TRITON_BYTES = 1 << 30
# Where the kernel shows memory and quotas; tests put a folder of their own in its place.
_SYSTEM = Path("/")


@dataclass(frozen=True)
class Task(Generic[T]):
    """One piece of work; it should spend its time in other processes, since tasks are threads of this one."""

    name: str
    work: Callable[[], T]


@dataclass(frozen=True)
class Finished(Generic[T]):
    """A task's result, or the error that ended it."""

    name: str
    value: T | None
    error: DsvError | None


def run_tasks(
    tasks: Sequence[Task[T]],
    *,
    jobs: int | None = None,
    bytes_per_job: int = COMPILE_BYTES,
    on_finish: Callable[[Finished[T]], None] | None = None,
) -> list[Finished[T]]:
    """Run all tasks and return what became of each, in the order given.

    Errors of the catalogue are kept in the results; anything else is a mistake of ours and is raised.

    Args:
        jobs: how many at once; default: as many as cores and memory allow.
        on_finish: called in the task's thread as it ends, e.g. to move a progress bar.
    """

    def finish(task: Task[T]) -> Finished[T]:
        try:
            finished: Finished[T] = Finished(task.name, task.work(), None)
        except DsvError as error:
            finished = Finished(task.name, None, error)
        if on_finish:
            on_finish(finished)
        return finished

    with ThreadPoolExecutor(job_count(jobs, bytes_per_job=bytes_per_job)) as pool:
        return list(pool.map(finish, tasks))


def job_count(wanted: int | None = None, *, bytes_per_job: int = COMPILE_BYTES) -> int:
    """How many compilers may run at once: `wanted` or the cores, never more than free memory allows."""
    cores = wanted if wanted is not None else core_count()
    free = free_bytes()
    by_memory = cores if free is None else free // bytes_per_job
    return max(1, min(cores, by_memory))


def core_count() -> int:
    """Cores this process may use: its affinity, cut to the container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = _cgroup("cpu.max").partition(" ")
    if quota.isdigit() and period.isdigit() and int(period) > 0:
        cores = min(cores, max(1, int(quota) // int(period)))
    return cores


def free_bytes() -> int | None:
    """Memory that can still be used: the machine's, cut to the container's limit; None when unknown."""
    known = [size for size in (_machine_free_bytes(), _container_free_bytes()) if size is not None]
    return min(known) if known else None


def _machine_free_bytes() -> int | None:
    for line in _text(_SYSTEM / "proc" / "meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) << 10
    return None


def _container_free_bytes() -> int | None:
    limit, used = _cgroup("memory.max"), _cgroup("memory.current")
    return max(0, int(limit) - int(used)) if limit.isdigit() and used.isdigit() else None


def _cgroup(name: str) -> str:
    return _text(_SYSTEM / "sys" / "fs" / "cgroup" / name).strip()


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
