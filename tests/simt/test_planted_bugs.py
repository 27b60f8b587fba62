"""The oracle proven: each layer defect shows on wave 64, is harmless on wave 32, and a missing barrier shows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simt.layers import LAYOUT, WAVE_BUGS, WAVES, arguments, build
from tests.simt.primitives import PRIMITIVES

ORDERS = ("ascending", "descending", "random:3")
KERNELS = {"ballots": 4, "scan_ones": 1, "warp_totals": 1, "shuffles": 4}


def outputs(wave: int, mutations: frozenset[str], order: str) -> dict[str, list[int]]:
    """What the kernels that use lanes write, for four logical warps."""
    floats = np.where(np.arange(128) % 3 == 0, 1, -1).astype(np.float32)
    results = {}
    for kernel, words in KERNELS.items():
        out = np.zeros(words * 128, np.uint32)
        program = build(PRIMITIVES, wave, mutations)
        program.launch(kernel, LAYOUT, arguments(out, floats, 9), 1, 128, order=order).raise_errors()
        results[kernel] = out.tolist()
    return results


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("mutation", WAVE_BUGS)
def test_layer_defects_show_on_wave_64_only(mutation: str, order: str) -> None:
    planted = frozenset({mutation})
    assert outputs(32, planted, order) == outputs(32, frozenset(), order)
    assert outputs(64, planted, order) != outputs(64, frozenset(), order)


def test_each_defect_shows_in_its_own_kernel() -> None:
    right = outputs(64, frozenset(), "ascending")
    for mutation, kernels in (
        ("ballot_low_half", {"ballots"}),
        ("shuffle_without_width", {"warp_totals", "shuffles"}),
        ("lane_mask_32bit", {"ballots"}),
    ):
        wrong = outputs(64, frozenset({mutation}), "ascending")
        assert {name for name in KERNELS if wrong[name] != right[name]} == kernels


def test_total_without_width_is_that_of_the_first_half() -> None:
    out = np.zeros(64, np.uint32)
    for mutations, second in ((frozenset[str](), 64), (frozenset({"shuffle_without_width"}), 32)):
        program = build(PRIMITIVES, 64, mutations)
        program.launch("warp_totals", LAYOUT, arguments(out), 1, 64).raise_errors()
        assert out.tolist() == [32] * 32 + [second] * 32


def test_shuffle_without_width_reads_lanes_that_do_not_exist() -> None:
    """A block of three logical warps ends in a half-filled wave."""
    program = build(PRIMITIVES, 64, frozenset({"shuffle_without_width"}))
    values = arguments(np.zeros(4 * 96, np.uint32), n=9)
    errors = program.launch("shuffles", LAYOUT, values, 1, 96).errors
    assert any("thread 68" in error and "shuffle from lane 37 of the wave" in error for error in errors)


EXCHANGE = """
struct Shared {
  u32 values[256];
};

template <bool kBarrier>
DSV4_DEVICE void exchange(const Params& params, Shared& shared) {
  const u32 thread = thread_id();
  shared.values[thread] = thread;
  if (kBarrier) block_barrier();
  params.out[thread] = shared.values[params.n - 1 - thread];
}

DSV4_KERNEL(128, 1) void with_barrier(DSV4_PARAMS(Params, params)) {
  DSV4_SHARED(Shared, shared);
  exchange<true>(params, shared);
}

DSV4_KERNEL(128, 1) void without_barrier(DSV4_PARAMS(Params, params)) {
  DSV4_SHARED(Shared, shared);
  exchange<false>(params, shared);
}
"""


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("order", ORDERS)
def test_a_missing_barrier_shows_in_every_order(wave: int, order: str) -> None:
    """Each thread reads its mirror image, so any order leaves somebody with poison."""
    results = {}
    for kernel in ("with_barrier", "without_barrier"):
        out = np.zeros(128, np.uint32)
        program = build(EXCHANGE, wave)
        program.launch(kernel, LAYOUT, arguments(out, n=128), 1, 128, order=order).raise_errors()
        results[kernel] = out.tolist()
    assert results["with_barrier"] == list(reversed(range(128)))
    assert 0xCDCDCDCD in results["without_barrier"]
