"""Processes around a sweep: kernels compiled ahead, several at once, and shapes spread over several cards."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from dsv4gen.base.errors import DsvError
from dsv4gen.bench.cells import Cell, changed_options, least_sizes
from dsv4gen.reference.workload import Request
from dsv4gen.tune.journal import Entry, Head, Journal
from dsv4gen.tune.pack import Pack, Variant, read_pack

#: processes that compile at once, at most; each holds a context on the card
MOST_COMPILERS = 24


@dataclass(frozen=True)
class Job:
    """What a process needs to take part: files, not objects, so that it can be spawned."""

    pack: Path
    journal: Path
    head: Head
    root: Path
    device: int
    deadline: float


def loader(pack: Pack, root: Path) -> Callable[[Variant, Mapping[str, str]], Any]:
    """Loads variants from folders below `root`; the same object for the same variant and options."""
    from dsv4gen.base.manifest import read_manifest
    from dsv4gen.runtime import platform
    from dsv4gen.runtime.load import load_from
    from dsv4gen.runtime.loaded import Use
    from dsv4gen.runtime.selection import Accepted

    kept: dict[tuple[object, ...], Any] = {}

    def load(variant: Variant, options: Mapping[str, str]) -> Any:
        key = (variant.name, tuple(sorted(options.items())))
        if key not in kept:
            folder = pack.unpack(variant, root)
            manifest = read_manifest(folder)
            accepted = Accepted(pack.target, folder, manifest, manifest.target["arch"])
            kept[key] = load_from(pack.family, accepted, options, Use(pack.target), platform.current())
        return kept[key]

    return load


def compile_ahead(job: Job, cells: Sequence[Cell], processes: int, progress: Callable[[str], None]) -> None:
    """Call every candidate once per class of shapes, in processes, so that Triton's cache holds what will be timed."""
    pack = read_pack(job.pack)
    work = list(_to_compile(pack, cells, job))
    count = min(processes, MOST_COMPILERS, len(work))
    if count < 2:
        return
    progress(f"compiling {len(work)} candidates in {count} processes")
    shares = [(job, work[number::count]) for number in range(count)]
    context = get_context("spawn")
    pool = [context.Process(target=_compile, args=share) for share in shares]
    for process in pool:
        process.start()
    for process in pool:
        process.join(max(1.0, job.deadline - time.monotonic()))
        if process.is_alive():
            process.terminate()


def _to_compile(pack: Pack, cells: Sequence[Cell], job: Job) -> Iterator[tuple[int, Cell]]:
    """Variant numbers with one shape of each class that may compile differently."""
    from dsv4gen.runtime import platform
    from dsv4gen.runtime.dispatch import decide, with_facts

    entry, seen = pack.base.entry, set()
    for cell in cells:
        sizes = {**least_sizes(entry), **cell.shape}
        known = with_facts(entry, cell.op, sizes, platform.facts(platform.current(), job.device))
        try:
            decision = decide(pack.family, entry, pack.target, cell.op, known, cell.options)
        except DsvError:
            continue
        launched = {launch.kernel for launch in decision.launches}
        classes = _classes(entry["ops"][cell.op], cell.shape)
        for number, variant in enumerate(pack.variants):
            key = (number, cell.op, tuple(sorted(cell.options.items())), classes)
            if variant.kernel in launched and key not in seen:
                seen.add(key)
                yield number, cell


def _classes(op: Mapping[str, Any], shape: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """What Triton tells shapes apart by: 1 and multiples of 16 where a size is an argument; the value of one that is
    compiled in, because it is neither an argument nor a tensor's size; nothing of the others.
    """
    arguments = {str(name) for name, *_ in op["params"]["fields"]}
    shown = {size["tree"] for tensor in op["tensors"] for size in tensor["shape"] if isinstance(size["tree"], str)}
    found = []
    for name, value in shape.items():
        if name in arguments:
            found.append((name, 1 if value == 1 else 16 if value % 16 == 0 else 0))
        elif name not in shown:
            found.append((name, value))
    return tuple(found)


def _compile(job: Job, work: Sequence[tuple[int, Cell]]) -> None:
    """In a process of its own; whatever fails here fails again, and is noted, when it is timed."""
    import torch

    from dsv4gen.bench.prepare import prepare, request_for, scratch

    torch.cuda.set_device(job.device)
    pack = read_pack(job.pack)
    load = loader(pack, job.root)
    prepared: dict[tuple[object, ...], Any] = {}
    for number, cell in work:
        if time.monotonic() > job.deadline:
            return
        try:
            if cell.key not in prepared:
                prepared.clear()
                request: Request = request_for(cell, pack.base.entry, f"cuda:{job.device}")
                prepared[cell.key] = prepare(request, pack.base.entry["reference"], 0)
            call = prepared[cell.key].sets[0][0]
            options = changed_options(cell.options, pack.base.entry)
            op = load(pack.variants[number], options).op(call.op)
            op.unchecked(**{**scratch(op, prepared[cell.key].request), **call.arguments})
            torch.cuda.synchronize()
        except Exception:
            continue


def sweep_on(job: Job, cells: Sequence[Cell], progress: Callable[[Entry], None] = lambda _: None) -> bool:
    """Measure some cells on one card; whether all were done before the deadline."""
    import torch

    from dsv4gen.bench.stopwatch import CudaStopwatch
    from dsv4gen.tune.measure import Sweep

    torch.cuda.set_device(job.device)
    pack = read_pack(job.pack)
    sweep = Sweep(
        pack, loader(pack, job.root), CudaStopwatch(job.device), CudaStopwatch(job.device, replays=5, replay_us=500.0),
        Journal.open(job.journal, job.head), f"cuda:{job.device}", job.deadline, progress,
    )  # fmt: skip
    return sweep.run(cells)


def sweep_on_all(
    jobs: Sequence[Job], cells: Sequence[Cell], progress: Callable[[Entry], None] = lambda _: None
) -> bool:
    """Measure on one card here, or on several in a process each; whether all was done."""
    if len(jobs) == 1:
        return sweep_on(jobs[0], cells, progress)
    context = get_context("spawn")
    shares = [cells[number :: len(jobs)] for number in range(len(jobs))]
    pool = [context.Process(target=_sweep_process, args=pair) for pair in zip(jobs, shares, strict=True)]
    for process in pool:
        process.start()
    for process in pool:
        process.join()
    return all(process.exitcode == 0 for process in pool)


def _sweep_process(job: Job, cells: Sequence[Cell]) -> None:
    raise SystemExit(0 if sweep_on(job, cells) else 1)


def scratch() -> Path:
    """A folder for unpacked candidates."""
    return Path(tempfile.mkdtemp(prefix="dsv4gen-tune-"))


def compilers_here() -> int:
    """Processes that are worth starting."""
    return max(1, (os.cpu_count() or 1) - 1)
