"""What `run_topk.py` measures on a card: start-up in fresh processes, and the host's cost of a call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

import dsv4gen
from dsv4gen.runtime import native

ROOT = Path(__file__).resolve().parents[2]
Way = Callable[[], Any]
PAGE_BITS = 6
BARE, PEER = "cuLaunchKernelEx by ctypes, arguments packed", "peer through tvm-ffi"
#: calls between two synchronisations: fewer than a stream's queue holds
BURST = 400
ROUNDS = 25

#: runs in a fresh process: import, context, load, first call, second call; `compile` is 0 where nothing was compiled
START = """
import json, logging, os, re, sys, time
marks = {"compile": 0.0}
class Compiled(logging.Handler):
    def emit(self, record):
        found = re.search(r"[(]compiled, .* in ([0-9.]+) ms", record.getMessage())
        marks["compile"] += float(found[1]) if found else 0.0
logging.getLogger("dsv4gen").addHandler(Compiled())
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
    """Milliseconds per phase, each the best of some fresh processes; `cold` empties the cache before every one.

    Raises:
        RuntimeError: a cold start that compiled nothing, or a warm one that did.
    """
    with tempfile.TemporaryDirectory() as folder:
        environment = _environment(folder)
        _run_start({**environment, "DSV4GEN_CACHE_DIR": f"{folder}/first"} if cold else environment)
        found = []
        for number in range(times):
            if cold:
                environment["DSV4GEN_CACHE_DIR"] = str(Path(folder) / str(number))
            found.append(_run_start(environment))
            if (found[-1]["compile"] > 0) != cold:
                raise RuntimeError(f"compiled for {found[-1]['compile']} ms; code objects beside the sources?")
    return {name: min(marks[name] for marks in found) for name in found[0]}


def _environment(cache: str) -> dict[str, str]:
    """Variables of a fresh process. Byte code is kept and nobody looks whether specs are newer, as is so for every
    installed package."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    ours = {"CACHE_DIR": cache, "LOG": "info", "REGENERATE": "0"}
    return {**kept, "PYTHONPATH": str(ROOT), **{f"DSV4GEN_{name}": value for name, value in ours.items()}}


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
    """Microseconds of host time per call on rows so short that the kernel is never the limit; where $TOPK_PEER names a
    compiled module of sglang's top-k v2, that in turn with ours, and ratios to it. The first line says whether the
    extension is used."""
    found = {"extension used": float(native.find().module is not None)}
    for batch, width in ((1, 1024), (64, 4096)):
        tensors = short_rows(batch, width)
        costs = per_call({**ways_to_call(*tensors), **torch_costs(tensors[-1])})
        found |= {f"{batch} x {width} {name}": round(cost, 3) for name, cost in costs.items()}
        if PEER in costs:
            ratios = {name: cost / costs[PEER] for name, cost in costs.items() if name != PEER}
            found |= {f"{batch} x {width} {name}, ratio": round(ratio, 3) for name, ratio in ratios.items()}
    return found


def short_rows(batch: int, width: int, device: str = "cuda") -> tuple[torch.Tensor, ...]:
    """Scores, lengths of 8, page table and output of 512 entries."""
    return (
        torch.zeros(batch, width, device=device),
        torch.full((batch,), 8, dtype=torch.int32, device=device),
        torch.zeros(batch, width >> PAGE_BITS, dtype=torch.int32, device=device),
        torch.zeros(batch, 512, dtype=torch.int32, device=device),
    )


def ways_to_call(scores: torch.Tensor, lens: torch.Tensor, table: torch.Tensor, out: torch.Tensor) -> dict[str, Way]:
    """The same call in several ways."""
    kernel, fast = dsv4gen.load("topk"), dsv4gen.load("topk", checked=False)
    raw, unchecked, op = kernel.raw, fast.raw, torch.ops.dsv4gen.topk_select.default
    given = {"scores": scores, "seq_lens": lens, "page_table": table, "out": out}
    ways: dict[str, Way] = {
        BARE: bare_call(kernel, given),
        "loaded, unchecked": lambda: unchecked(scores, lens, table, out, page_bits=PAGE_BITS),
        "loaded, checked": lambda: raw(scores, lens, table, out, page_bits=PAGE_BITS),
        "loaded, checked, by keyword": lambda: raw(**given, page_bits=PAGE_BITS),
        "loaded object": lambda: kernel(scores, lens, table, out, page_bits=PAGE_BITS),
        "torch.ops": lambda: op(scores, lens, table, out, *[None] * 5, page_bits=PAGE_BITS),
    }
    if os.environ.get("TOPK_PEER"):
        ways[PEER] = peer_call(os.environ["TOPK_PEER"], scores, lens, table, out)
    return ways


def torch_costs(out: torch.Tensor) -> dict[str, Way]:
    """What torch itself takes for something of the kind."""
    stream = torch._C._cuda_getCurrentRawStream
    return {
        "torch in-place add": lambda: out.add_(1),
        "torch.empty": lambda: torch.empty(8, device="cuda"),
        "data_ptr": out.data_ptr,
        "raw stream": lambda: stream(0),
    }


def peer_call(module: str, scores: torch.Tensor, lens: torch.Tensor, table: torch.Tensor, out: torch.Tensor) -> Way:
    """sglang's top-k v2, compiled into `module`, called through tvm-ffi with a plan made before."""
    import tvm_ffi

    peer = tvm_ffi.load_module(module)
    plan = torch.zeros(scores.shape[0] + 1, 2, dtype=torch.int32, device=scores.device)
    peer.topk_plan(lens, plan, -1)
    transform = peer.topk_transform_paged
    return lambda: transform(scores, lens, table, out, 1 << PAGE_BITS, plan, None)


def bare_call(kernel: Any, given: Mapping[str, torch.Tensor]) -> Way:
    """The launch of a call with as little Python around it as there can be: `Params` packed whole, then the driver."""
    kernel.raw(**given, page_bits=PAGE_BITS)
    known, table = _globals(kernel.raw), kernel.op().table
    numbers, device = {**_numbers(table, given), "page_bits": PAGE_BITS}, given["out"].get_device()
    key = (known["_stream"](device), device, *(numbers[axis] for axis in table.key_axes))
    ((config, function),) = known["_decisions"][key].launches
    buffer, params = known["_new_slot"]()
    words = [f"{name}.data_ptr()" if name in given else str(numbers.get(name, 0)) for name in table.fields]
    text = "lambda: (stream(device), pack(buffer, 0, WORDS), launch(config, function, params, None))[2]"
    text = text.replace("WORDS", ", ".join(words))
    names = {"stream": known["_stream"], "pack": known["_pack"], "launch": known["_launch"], "buffer": buffer}
    names["device"] = device
    call: Way = eval(text, {**given, **names, "config": config, "function": function, "params": params})
    if call():
        raise RuntimeError("the bare launch failed")
    return call


def _globals(function: Any) -> dict[str, Any]:
    """Those of the launch function, below what keeps torch.compile out of it."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    found: dict[str, Any] = function.__globals__
    return found


def _numbers(table: Any, given: Mapping[str, torch.Tensor]) -> dict[str, int]:
    """Sizes and run-time strides of tensors by their names in `Params`."""
    found: dict[str, int] = {}
    for rule in table.tensors:
        if rule.name in given:
            tensor = given[rule.name]
            pairs = (*zip(rule.shape, tensor.shape, strict=True), *zip(rule.strides, tensor.stride(), strict=True))
            found |= {name: value for name, value in pairs if isinstance(name, str)}
    return found


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
