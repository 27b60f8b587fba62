"""What `run_topk.py` measures on a card: start-up in fresh processes, and the host's cost of a call."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

import dsv4gen

ROOT = Path(__file__).resolve().parents[2]
#: calls between two synchronisations: fewer than a stream's queue holds
BURST = 400
ROUNDS = 25

#: runs in a fresh process: import, context, load, first call, second call
START = """
import json, os, sys, time
marks = {}
def mark(name, since):
    marks[name] = round((time.perf_counter() - since) * 1e3, 2)
t = time.perf_counter(); import torch; mark("import torch", t)
t = time.perf_counter()
scores = torch.zeros(1, 4000, device="cuda")
lens = torch.full((1,), 4000, dtype=torch.int32, device="cuda")
table = torch.zeros(1, 64, dtype=torch.int32, device="cuda")
out = torch.zeros(1, 512, dtype=torch.int32, device="cuda")
torch.cuda.synchronize(); mark("context", t)
start = time.perf_counter()
t = time.perf_counter(); import dsv4gen.runtime.driver_backend, dsv4gen.runtime.load; mark("import dsv4gen", t)
t = time.perf_counter(); kernel = dsv4gen.load("topk"); mark("load", t)
t = time.perf_counter(); kernel(scores, lens, table, out, page_bits=6); mark("first call", t)
torch.cuda.synchronize(); mark("start", start)
t = time.perf_counter(); kernel(scores, lens, table, out, page_bits=6); torch.cuda.synchronize(); mark("next call", t)
print(json.dumps(marks))
"""


def start(cold: bool, times: int) -> dict[str, float]:
    """Milliseconds per phase, each the best of some fresh processes; `cold` empties the cache before every one."""
    with tempfile.TemporaryDirectory() as folder:
        environment = _environment(folder)
        _run_start({**environment, "DSV4GEN_CACHE_DIR": f"{folder}/first"} if cold else environment)
        found = []
        for number in range(times):
            if cold:
                environment["DSV4GEN_CACHE_DIR"] = str(Path(folder) / str(number))
            found.append(_run_start(environment))
    return {name: min(marks[name] for marks in found) for name in found[0]}


def _environment(cache: str) -> dict[str, str]:
    """Variables of a fresh process. Byte code is kept, as it is for every installed package."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT), "DSV4GEN_CACHE_DIR": cache}


def _run_start(environment: dict[str, str]) -> dict[str, float]:
    done = subprocess.run([sys.executable, "-c", START], env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    marks: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return marks


def eight_cold_ranks() -> dict[str, float]:
    """Eight processes on an empty cache at once: the slowest one's start in ms."""
    with tempfile.TemporaryDirectory() as folder:
        environment = _environment(folder)
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", START]
        ranks = [subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) for _ in range(8)]
        marks = []
        for rank in ranks:
            out, error = rank.communicate()
            if rank.returncode != 0:
                raise RuntimeError(error)
            marks.append(json.loads(out.splitlines()[-1]))
    return {
        "slowest start": max(mark["start"] for mark in marks),
        "fastest start": min(mark["start"] for mark in marks),
    }


def host_costs() -> dict[str, float]:
    """Microseconds of host time per call on rows so short that the kernel is never the limit."""
    kernel = dsv4gen.load("topk")
    fast = dsv4gen.load("topk", checked=False)
    scores = torch.zeros(1, 1024, device="cuda")
    lens = torch.full((1,), 8, dtype=torch.int32, device="cuda")
    table = torch.zeros(1, 16, dtype=torch.int32, device="cuda")
    out = torch.zeros(1, 512, dtype=torch.int32, device="cuda")
    kernel(scores, lens, table, out, page_bits=6)
    raw, unchecked, op = kernel.raw, fast.raw, torch.ops.dsv4gen.topk_select.default
    prepared = next(iter(raw.__globals__["_decisions"].values()))
    config, function = prepared.launches[0]
    pack_plain, pack_extended = _bare_calls(config, function, (scores, lens, table, out))
    stream = torch._C._cuda_getCurrentRawStream
    ways: dict[str, Callable[[], Any]] = {
        "cuLaunchKernel by ctypes, arguments packed": pack_plain,
        "cuLaunchKernelEx by ctypes, arguments packed": pack_extended,
        "loaded, unchecked": lambda: unchecked(scores, lens, table, out, page_bits=6),
        "loaded, checked": lambda: raw(scores, lens, table, out, page_bits=6),
        "loaded, checked, by keyword": lambda: raw(
            scores=scores, seq_lens=lens, page_table=table, out=out, page_bits=6
        ),
        "loaded object": lambda: kernel(scores, lens, table, out, page_bits=6),
        "torch.ops": lambda: op(scores, lens, table, out, *[None] * 5, page_bits=6),
        "torch in-place add": lambda: out.add_(1),
        "torch.empty": lambda: torch.empty(8, device="cuda"),
        "data_ptr": scores.data_ptr,
        "raw stream": lambda: stream(0),
    }
    return {name: round(cost, 3) for name, cost in per_call(ways).items()}


def _bare_calls(
    config: int, function: int, tensors: tuple[torch.Tensor, ...]
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The same launch with as little Python around it as there can be."""
    library = ctypes.CDLL("libcuda.so.1")
    plain, extended = library.cuLaunchKernel, library.cuLaunchKernelEx
    plain.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
    extended.argtypes = [ctypes.c_void_p] * 4
    buffer = ctypes.create_string_buffer(128)
    pointers = (ctypes.c_void_p * 1)(ctypes.addressof(buffer))
    address = ctypes.addressof(pointers)
    pack = struct.Struct("<5Q5q4I").pack_into
    grid = struct.unpack("<6I", ctypes.string_at(config, 24))
    scores, lens, table, out = tensors
    stream = torch._C._cuda_getCurrentRawStream

    def pack_arguments() -> None:
        at = (scores.data_ptr(), lens.data_ptr(), table.data_ptr(), out.data_ptr(), 0)
        pack(buffer, 0, *at, 1024, 1, 16, 512, 0, 1024, 512, 16, 6)

    def call_plain() -> None:
        pack_arguments()
        if plain(function, *grid, 0, stream(0), address, None):
            raise RuntimeError("cuLaunchKernel failed")

    def call_extended() -> None:
        pack_arguments()
        if extended(config, function, address, None):
            raise RuntimeError("cuLaunchKernelEx failed")

    call_plain.keep = pointers  # type: ignore[attr-defined]
    return call_plain, call_extended


def per_call(ways: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Microseconds per call: the best of several bursts, without the synchronisation that ends each.

    The ways take turns, so that a host that is slow for a while is slow for all of them.
    """
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(BURST):
                way()
            best[name] = min(best[name], (time.perf_counter() - started) / BURST * 1e6)
    torch.cuda.synchronize()
    return best
