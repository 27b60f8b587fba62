"""Collectives and barriers in divergent flow are reported with kernel, block, thread and line; uniform ones are not."""

from __future__ import annotations

import numpy as np
import pytest

from dsv4gen.emulate.simt import SimtProgram, SimtResult
from dsv4gen.toolchain.host import host_compiler
from tests.simt.layers import LAYOUT, PARAMS, WAVES, arguments, build, render_layer
from tests.tools import need_module, need_tool

waves = pytest.mark.parametrize("wave", WAVES)

DIVERGENT = """
DSV4_KERNEL(128, 1) void vote_beside_exit(DSV4_PARAMS(Params, params)) {
  if (thread_id() < 10) params.out[thread_id()] = warp_ballot(true);
}

DSV4_KERNEL(128, 1) void vote_in_both_branches(DSV4_PARAMS(Params, params)) {
  u32 mask = 0;
  if (thread_id() % 32 < 10) {
    mask = warp_ballot(true);
    params.out[0] = mask;
  } else {
    mask = warp_ballot(thread_id() & 1);
    params.out[1] = mask;
  }
}

DSV4_DEVICE u32 votes_of(bool mine) { return popcount(warp_ballot(mine)); }

DSV4_KERNEL(128, 1) void vote_through_a_function(DSV4_PARAMS(Params, params)) {
  if (thread_id() % 32 < 10) {
    params.out[0] = votes_of(true) + 1;
  } else {
    params.out[1] = votes_of(false) + 2;
  }
}

DSV4_KERNEL(128, 1) void vote_in_ragged_loop(DSV4_PARAMS(Params, params)) {
  u32 total = 0;
  for (u32 step = 0; step < thread_id() + 1; ++step) total += popcount(warp_ballot(true));
  params.out[thread_id()] = total + shuffle(total, 0);
}

DSV4_KERNEL(128, 1) void vote_beside_barrier(DSV4_PARAMS(Params, params)) {
  if (thread_id() == 40) {
    block_barrier();
  } else {
    params.out[thread_id()] = warp_ballot(true);
    block_barrier();
  }
}

DSV4_KERNEL(128, 1) void two_barriers(DSV4_PARAMS(Params, params)) {
  if (thread_id() < 64) {
    block_barrier();
    params.out[thread_id()] = 1;
  } else {
    block_barrier();
    params.out[thread_id()] = 2;
  }
}

DSV4_KERNEL(128, 1) void missed_barrier(DSV4_PARAMS(Params, params)) {
  if (thread_id() >= 100) return;
  block_barrier();
  params.out[thread_id()] = 1;
}
"""

UNIFORM = """
DSV4_DEVICE u32 reduce(u32 value) {
  for (u32 mask = 16; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}

// Each logical warp in a branch of its own, with different numbers of votes and shuffles.
DSV4_KERNEL(128, 1) void warps_apart(DSV4_PARAMS(Params, params)) {
  const u32 thread = thread_id();
  u32 result = 0;
  if (warp_id() == 0) {
    result = popcount(warp_ballot(thread < 7));
  } else if (warp_id() == 1) {
    for (u32 step = 0; step < 5; ++step) result += reduce(step);
  } else if (warp_id() == 2) {
    result = shuffle(thread, 3) + shuffle_up(thread, 1);
  }
  block_barrier();
  params.out[thread] = result;
}

// The first warp takes a detour, then the wave votes together again.
DSV4_KERNEL(64, 1) void detour(DSV4_PARAMS(Params, params)) {
  u32 extra = 0;
  if (warp_id() == 0) extra = popcount(warp_ballot(true));
  params.out[thread_id()] = popcount(wave_ballot(true)) + extra;
}

// Flow that differs from thread to thread, but not around votes: nothing an optimiser may split.
DSV4_KERNEL(128, 1) void diamonds(DSV4_PARAMS(Params, params)) {
  const u32 thread = thread_id();
  u32 value = 0;
  if (thread % 3 == 0) {
    value = params.input != nullptr ? 1 : 2;
  } else if (thread % 3 == 1) {
    value = 5;
  }
  const u32 mask = warp_ballot(value == 5);
  for (u32 step = 0; step < 3; ++step) {
    if (value == 5 && step == 1) value = mask;
    value += shuffle_xor(value, 1 << step);
    if (thread < 64) value ^= step;
    block_barrier();
  }
  bool again = true;
  for (u32 round = 0; again; ++round) {
    if (thread % 5 == round) value += 3;
    again = warp_ballot(thread % 5 > round) != 0;
  }
  params.out[thread] = value + popcount(warp_ballot(thread % 3 == 1 && value > 4));
}

// Conditions known from thread to thread before and after each vote, which an optimiser likes to join.
DSV4_KERNEL(128, 1) void known_conditions(DSV4_PARAMS(Params, params)) {
  const u32 thread = thread_id();
  u32 kind = 0;
  if (thread % 3 == 0) {
    kind = 1;
  } else if (thread % 3 == 1) {
    kind = 2;
  }
  const u32 mask = warp_ballot(kind == 1);
  u32 value = 5;
  if (kind == 1) {
    value = mask;
  } else if (kind == 2) {
    value = ~mask;
  }
  bool done = false;
  for (u32 step = 0; step < 40; ++step) {
    const bool found = !done && step > thread % 7;
    if (found) done = true;
    const u32 votes = warp_ballot(found);
    if (done) value += votes;
    if (votes == 0 && step > 10) break;
  }
  params.out[thread] = value;
}
"""


BLOCKS = {"warps_apart": 128, "detour": 64, "diamonds": 128, "known_conditions": 128}


def launch(body: str, kernel: str, wave: int, *, block: int = 128, order: str = "ascending") -> SimtResult:
    values = arguments(np.zeros(128, np.uint32))
    return build(body, wave).launch(kernel, LAYOUT, values, 1, block, order=order)


def line_of(text: str, occurrence: int = 1) -> int:
    """The line of DIVERGENT's nth occurrence of a text, as numbered in the whole program."""
    lines = (render_layer("simt", 32) + PARAMS + DIVERGENT).splitlines()
    return [number for number, line in enumerate(lines, start=1) if text in line][occurrence - 1]


@waves
@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("vote_beside_exit", ("divergent vote", "has ended", "thread 10")),
        ("vote_in_both_branches", ("divergent vote", "thread 10 is at a vote at line")),
        ("vote_through_a_function", ("divergent vote", "thread 10 is at a vote at line", "in another call")),
        ("vote_in_ragged_loop", ("divergent vote or shuffle", "thread 1 is at a vote at line")),
        ("vote_beside_barrier", ("divergent vote", "thread 40 is at a block barrier")),
        ("two_barriers", ("divergent barrier", "thread 64 is at a block barrier")),
        ("missed_barrier", ("barrier that thread 100 misses", "has ended")),
    ],
)
def test_divergence_is_reported(kernel: str, expected: tuple[str, ...], wave: int) -> None:
    result = launch(DIVERGENT, kernel, wave)
    assert len(result.errors) == 1
    assert result.errors[0].startswith(f"kernel {kernel}, block (0, 0, 0), thread ")
    assert all(words in result.errors[0] for words in expected), result.errors[0]


def test_reports_name_the_lines_of_the_text() -> None:
    at, other = line_of("mask = warp_ballot(true)"), line_of("mask = warp_ballot(thread_id() & 1)")
    error = launch(DIVERGENT, "vote_in_both_branches", 32).errors[0]
    assert f"thread 0, line {at}:" in error and error.endswith(f"at line {other}")


@waves
@pytest.mark.parametrize("order", ["ascending", "descending", "random:5"])
def test_uniform_flow_is_not(wave: int, order: str) -> None:
    for kernel, block in BLOCKS.items():
        assert launch(UNIFORM, kernel, wave, block=block, order=order).errors == ()


@waves
@pytest.mark.parametrize("kind", ["clang++", "zig"])
def test_other_compilers_keep_uniform_flow_uniform(kind: str, wave: int) -> None:
    need_compiler(kind)
    text = render_layer("simt", wave) + PARAMS + UNIFORM
    program = SimtProgram.build(text, wave=wave, compiler=host_compiler(kind))
    for kernel, block in BLOCKS.items():
        outs = [np.zeros(128, np.uint32), np.zeros(128, np.uint32)]
        for chosen, out in zip((program, build(UNIFORM, wave)), outs, strict=True):
            chosen.launch(kernel, LAYOUT, arguments(out), 1, block).raise_errors()
        assert outs[0].tolist() == outs[1].tolist()


@waves
def test_a_wave_votes_together_again_after_a_detour(wave: int) -> None:
    out = np.zeros(64, np.uint32)
    build(UNIFORM, wave).launch("detour", LAYOUT, arguments(out), 1, 64).raise_errors()
    assert out.tolist() == [wave + 32] * 32 + [wave] * 32


def need_compiler(kind: str) -> None:
    """Fail or skip without that host compiler."""
    if kind == "zig":
        need_module("ziglang")
    else:
        need_tool("clang++-22")
