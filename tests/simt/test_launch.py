"""Launches as a whole: hangs and crashes, orders, the worker's life, and launches that cannot be made."""

from __future__ import annotations

import os
import re
import resource
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dsv4gen.base.errors import ArgumentError, CompileError, EmulationError, UsageError
from dsv4gen.emulate import simt
from dsv4gen.emulate.simt import SimtProgram, SimtResult
from dsv4gen.emulate.simt.findings import Kind
from dsv4gen.emulate.simt.memory_file import Array
from dsv4gen.emulate.simt.worker import Worker
from tests.simt.layers import LAYOUT, PARAMS, WAVES, arguments, build, render_layer
from tests.simt.primitives import PRIMITIVES

LIVES = """
DSV4_KERNEL(64, 1) void double_it(DSV4_PARAMS(Params, params)) {
  const u32 index = block_x() * 64 + thread_id();
  params.out[index] = 2 * params.out[index];
}

DSV4_KERNEL(64, 1) void spin(DSV4_PARAMS(Params, params)) {
  params.out[0] = 1;
  block_barrier();
  if (thread_id() == 5) {
    while (*static_cast<volatile u32*>(params.out) == 1) {
    }
  }
}

DSV4_KERNEL(64, 1) void spin_on_barriers(DSV4_PARAMS(Params, params)) {
  while (*static_cast<volatile u32*>(params.out) == params.n) block_barrier();
}

DSV4_KERNEL(64, 1) void trap(DSV4_PARAMS(Params, params)) {
  if (thread_id() == params.n) __builtin_trap();
}

__attribute__((noinline)) u32 deep(volatile u32* words, u32 depth) {
  volatile u32 frame[256];
  frame[depth % 256] = words[0];
  return depth == 0 ? frame[0] : deep(frame, depth - 1) + frame[depth % 256];
}

DSV4_KERNEL(64, 1) void recurse(DSV4_PARAMS(Params, params)) { params.out[1] = deep(params.out, params.n); }

// Which thread of which block came when.
DSV4_KERNEL(64, 1) void log_order(DSV4_PARAMS(Params, params)) {
  const u32 ticket = global_add(params.out, 1);
  params.out[1 + ticket] = block_x() * 100 + thread_id();
}
"""


def launch(kernel: str, out: Array, *, grid: int = 1, n: int = 0, **options: Any) -> SimtResult:
    return build(LIVES, 64).launch(kernel, LAYOUT, arguments(out, n=n), grid, 64, **options)


def works() -> bool:
    """Whether the program still runs an innocent kernel."""
    out = np.arange(64, dtype=np.uint32)
    launch("double_it", out).raise_errors()
    return bool((out == np.arange(0, 128, 2)).all())


def test_a_hang_ends_at_the_time_limit_and_is_placed() -> None:
    out = np.zeros(64, np.uint32)
    started = time.monotonic()
    with pytest.raises(EmulationError, match=r"did not end within 0.3 s\n.*thread 5, after line \d+: still running"):
        launch("spin", out, timeout_s=0.3)
    assert time.monotonic() - started < 3
    assert out[0] == 1 and works()


def test_a_hang_in_the_scheduler_ends_too() -> None:
    with pytest.raises(EmulationError, match="did not end within"):
        launch("spin_on_barriers", np.zeros(1, np.uint32), timeout_s=0.3)
    assert works()


def test_a_crash_names_its_signal() -> None:
    with pytest.raises(EmulationError, match=r"killed by (SIGILL|SIGTRAP)\n.*block \(2, 0, 0\), thread 9: \1"):
        build(LIVES, 64).launch("trap", LAYOUT, arguments(0, n=9), 3, 64, order="descending")
    assert works()


def test_a_deep_recursion_is_a_stack_overflow() -> None:
    launch("recurse", np.zeros(2, np.uint32), n=20).raise_errors()
    with pytest.raises(EmulationError, match="stack overflow"):
        launch("recurse", np.zeros(2, np.uint32), n=200)
    assert works()


def arrivals(order: str, grid: int = 3) -> list[int]:
    out = np.zeros(1 + grid * 64, np.uint32)
    launch("log_order", out, grid=grid, order=order).raise_errors()
    return [int(word) for word in out[1:]]


def test_orders() -> None:
    ascending = [block * 100 + thread for block in range(3) for thread in range(64)]
    assert arrivals("ascending") == ascending
    assert arrivals("descending") == ascending[::-1]
    first, again, other = arrivals("random:7"), arrivals("random:7"), arrivals("random:8")
    assert first == again != other
    assert sorted(first) == ascending
    assert sorted({word // 100 for word in first[:64]}) != [0, 1, 2]


def test_random_order_also_permutes_blocks() -> None:
    blocks = {tuple(dict.fromkeys(word // 100 for word in arrivals(f"random:{seed}"))) for seed in range(12)}
    assert len(blocks) > 3


def test_a_worker_starts_behind_a_thousand_open_files() -> None:
    """Sessions with hundreds of programs have descriptors above 1023, which select() refuses."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        out = np.arange(64, dtype=np.uint32)
        program = build(f"{LIVES}// one that no other test has started\n", 64)
        program.launch("double_it", LAYOUT, arguments(out), 1, 64).raise_errors()
        assert (out == np.arange(0, 128, 2)).all()
    finally:
        for number in held:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_counters_are_exact() -> None:
    counters = launch("double_it", np.zeros(128, np.uint32), grid=2).counters
    assert counters["blocks"] == 2 and counters["switches"] == 128 and counters["collectives"] == 0


def test_launches_that_cannot_be_made() -> None:
    out = np.zeros(64, np.uint32)
    assert launch("nobody", out).errors == ("kernel nobody: no kernel of this name in the program",)
    for options, words in (
        ({"order": "sideways"}, "sideways"),
        ({"order": "random"}, "random"),
        ({"grid": 0}, "number of blocks"),
        ({"cluster": 2}, "do not divide"),
        ({"grid": 32, "cluster": 32}, "at most 16"),
        ({"shared_limit": 1 << 21}, "shared_limit"),
    ):
        with pytest.raises(UsageError, match=words):
            launch("double_it", out, **options)
    with pytest.raises(UsageError, match="1 to 1024"):
        build(LIVES, 64).launch("double_it", LAYOUT, arguments(out), 1, 2048)
    with pytest.raises(ArgumentError, match="no value for parameter n"):
        build(LIVES, 64).launch("double_it", LAYOUT, {"input": 0, "out": out}, 1, 64)


def test_both_sides_number_findings_alike() -> None:
    header = Path(simt.__file__).with_name("protocol.h").read_text()
    names = re.findall(r"^  k(\w+)(?: = 1)?,", header[header.index("enum FindingKind") :].split("};")[0], re.M)
    snake = [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper() for name in names]
    assert snake == [kind.name for kind in Kind] and [*Kind] == [*range(1, len(names) + 1)]


def test_text_that_does_not_compile_is_placed() -> None:
    text = render_layer("simt", 32) + PARAMS + "DSV4_KERNEL(1, 1) void k(DSV4_PARAMS(Params, params)) { oops(); }\n"
    with pytest.raises(CompileError, match=rf"program.cpp:{len(text.splitlines())}:.*oops"):
        SimtProgram.build(text, wave=32)


def test_text_that_calls_an_unknown_function_is_refused() -> None:
    body = 'extern "C" void nowhere();\nDSV4_KERNEL(1, 1) void k(DSV4_PARAMS(Params, params)) { nowhere(); }\n'
    with pytest.raises(EmulationError, match="undefined symbol: nowhere"):
        SimtProgram.build(render_layer("simt", 32) + PARAMS + body, wave=32)


def test_a_cache_without_execution_is_explained(tmp_path: Path) -> None:
    (tmp_path / "worker").write_text("no program")
    (tmp_path / "worker").chmod(0o755)
    with pytest.raises(EmulationError, match=r"cannot be started: .*\n.*remedy: set DSV4GEN_CACHE_DIR"):
        Worker(tmp_path / "worker", tmp_path / "program.so")


def test_text_for_another_wave_is_refused() -> None:
    with pytest.raises(UsageError, match="rendered for a wave of 64 lanes, not 32"):
        SimtProgram.build(render_layer("simt", 64), wave=32)


def test_threads_take_turns() -> None:
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(works())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 4


def test_a_forked_child_gets_a_worker_of_its_own() -> None:
    assert works()
    child = os.fork()
    if child == 0:
        os._exit(0 if works() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert works()


def test_closed_programs_start_again() -> None:
    build(LIVES, 64).close()
    assert works()


@pytest.mark.parametrize("wave", WAVES)
def test_portable_fibers_do_the_same(wave: int) -> None:
    text = render_layer("simt", wave) + PARAMS + PRIMITIVES
    portable = SimtProgram.build(text, wave=wave, worker_flags=("-DSIMT_UCONTEXT",))
    outs = [np.zeros(257, np.uint32), np.zeros(257, np.uint32)]
    for program, out in zip((portable, build(PRIMITIVES, wave)), outs, strict=True):
        for kernel in ("scan_ones", "counters"):
            program.launch(kernel, LAYOUT, arguments(out), 1, 64, order="random:4").raise_errors()
    assert outs[0].tolist() == outs[1].tolist() and outs[0].any()
