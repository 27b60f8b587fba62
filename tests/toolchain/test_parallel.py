"""How many compiles run at once, and that one failure leaves the others alone."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from dsv4gen.base.errors import CompileError
from dsv4gen.toolchain import parallel
from dsv4gen.toolchain.parallel import Finished, Task, run_tasks

GIB = 1 << 30


def machine(root: Path, *, free: int, limit: str = "max", used: int = 0, cpu: str = "max 100000") -> None:
    """The kernel's files of a machine with that much memory in bytes."""
    (root / "proc").mkdir()
    (root / "proc" / "meminfo").write_text(f"MemTotal: 1 kB\nMemAvailable:   {free >> 10} kB\n")
    group = root / "sys" / "fs" / "cgroup"
    group.mkdir(parents=True)
    (group / "memory.max").write_text(f"{limit}\n")
    (group / "memory.current").write_text(f"{used}\n")
    (group / "cpu.max").write_text(f"{cpu}\n")


@pytest.mark.parametrize(
    ("free", "limit", "used", "jobs"),
    [
        (64 * GIB, "max", 0, 16),
        (4 * GIB, "max", 0, 4),
        (64 * GIB, str(8 * GIB), 5 * GIB, 3),
        (100 << 20, "max", 0, 1),
        (64 * GIB, str(GIB), 2 * GIB, 1),
    ],
)
def test_memory_limits_the_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, limit: str, used: int, jobs: int
) -> None:
    machine(tmp_path, free=free, limit=limit, used=used)
    monkeypatch.setattr(parallel, "_SYSTEM", tmp_path)
    assert parallel.job_count(16, bytes_per_job=GIB) == jobs


def test_cores_are_cut_to_the_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(tmp_path, free=GIB, cpu="150000 100000")
    monkeypatch.setattr(parallel, "_SYSTEM", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)))
    assert parallel.core_count() == 1


def test_a_machine_that_tells_nothing_uses_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_SYSTEM", tmp_path)
    assert parallel.free_bytes() is None
    assert parallel.job_count(5) == 5


def test_results_keep_the_order_and_errors_their_place() -> None:
    def work(index: int) -> int:
        time.sleep(0.02 * (3 - index))
        if index == 1:
            raise CompileError("killed by signal 9")
        return index * 10

    seen: list[str] = []
    tasks = [Task(str(index), lambda index=index: work(index)) for index in range(3)]  # type: ignore[misc]
    finished = run_tasks(tasks, jobs=3, on_finish=lambda one: seen.append(one.name))
    assert [one.value for one in finished] == [0, None, 20]
    assert "signal 9" in str(finished[1].error)
    assert sorted(seen) == ["0", "1", "2"]


def test_no_more_than_the_wanted_number_runs_at_once() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.01)
        with lock:
            running -= 1

    run_tasks([Task(str(index), work) for index in range(8)], jobs=2)
    assert most == 2


def test_a_mistake_of_ours_is_not_swallowed() -> None:
    def work() -> Finished[int]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_tasks([Task("broken", work)])
