"""Blocks of a cluster are resident together, and their accesses to each other's shared memory are checked."""

from __future__ import annotations

import numpy as np
import pytest

from dsv4gen.emulate.simt import SimtResult
from tests.simt.layers import LAYOUT, WAVES, arguments, build
from tests.simt.primitives import CLUSTERS

MISTAKES = """
struct Shared {
  u32 count;
  u32 other[3];
};

DSV4_KERNEL(32, 1) void early(DSV4_PARAMS(Params, params)) {
  DSV4_SHARED(Shared, shared);
  shared.count = 0;
  block_barrier();
  remote_add(shared.count, 1 - cluster_rank(), 1);
  cluster_barrier();
  params.out[cluster_rank()] = shared.count;
}

DSV4_KERNEL(32, 1) void late(DSV4_PARAMS(Params, params)) {
  DSV4_SHARED(Shared, shared);
  shared.count = 7;
  cluster_barrier();
  params.out[cluster_rank()] = remote_load(shared.count, 1 - cluster_rank());
}

DSV4_KERNEL(32, 1) void unmet(DSV4_PARAMS(Params, params)) {
  DSV4_SHARED(Shared, shared);
  shared.count = 0;
  cluster_barrier();
  block_barrier();
  remote_store(shared.count, 1 - cluster_rank(), 7);
  block_barrier();
  if (thread_id() == 0) params.out[block_x()] = shared.count;
  cluster_barrier();
}

DSV4_KERNEL(32, 1) void wrong_rank(DSV4_PARAMS(Params, params)) {
  DSV4_SHARED(Shared, shared);
  cluster_barrier();
  remote_store(shared.count, params.n, 1);
}

DSV4_KERNEL(32, 1) void not_shared(DSV4_PARAMS(Params, params)) {
  DSV4_SHARED(Shared, shared);
  u32 local = shared.count;
  cluster_barrier();
  remote_add(local, 0, 1);
}

DSV4_KERNEL(32, 1) void one_leaves(DSV4_PARAMS(Params, params)) {
  if (cluster_rank() == params.n) return;
  cluster_barrier();
}

DSV4_KERNEL(32, 1) void mixed_barriers(DSV4_PARAMS(Params, params)) {
  if (thread_id() < params.n) {
    cluster_barrier();
  } else {
    block_barrier();
  }
}
"""

orders = pytest.mark.parametrize("order", ["ascending", "descending", "random:11"])


@orders
@pytest.mark.parametrize("wave", WAVES)
def test_ring(wave: int, order: str) -> None:
    out = np.zeros(2 * 8 * 64 * 3, np.uint32)
    program = build(CLUSTERS, wave)
    result = program.launch("ring", LAYOUT, arguments(out), (2, 8), 64, cluster=(1, 4), order=order)
    result.raise_errors()
    rows = out.reshape(8, 2, 64, 3)
    thread = np.arange(64)
    for y in range(8):
        rank, before, following = y % 4, (y - 1) % 4, (y + 1) % 4
        for x in range(2):
            assert set(rows[y, x, :, 0]) == {64 * (before + 1)}
            assert rows[y, x, :, 1].tolist() == (following * 1000 + thread).tolist()
            assert rows[y, x, :, 2].tolist() == (rank * 1000 + thread + before).tolist()
    assert result.counters["blocks"] == 16 and result.counters["cluster_barriers"] == 3 * 4


def test_the_largest_cluster() -> None:
    out = np.zeros(16 * 64 * 3, np.uint32)
    program = build(CLUSTERS, 32)
    program.launch("ring", LAYOUT, arguments(out), (1, 16), 64, cluster=(1, 16)).raise_errors()
    assert out.reshape(16, 64, 3)[:, 0, 0].tolist() == [64 * (((rank - 1) % 16) + 1) for rank in range(16)]


def launch(kernel: str, *, n: int = 0, order: str = "ascending") -> SimtResult:
    values = arguments(np.zeros(64, np.uint32), n=n)
    return build(MISTAKES, 32).launch(kernel, LAYOUT, values, 4, 32, cluster=2, order=order)


@orders
@pytest.mark.parametrize(
    ("kernel", "n", "words"),
    [
        ("early", 0, "before any cluster barrier"),
        ("late", 0, "whose block has ended"),
        ("wrong_rank", 2, "rank 2 in a cluster of 2 blocks"),
        ("not_shared", 0, "of a shared struct of 16 bytes"),
        ("one_leaves", 0, "cluster barrier that the block of rank 0 misses"),
        ("one_leaves", 1, "cluster barrier that the block of rank 1 misses"),
        ("mixed_barriers", 20, "divergent barrier"),
    ],
)
def test_mistakes_are_reported(kernel: str, n: int, words: str, order: str) -> None:
    errors = launch(kernel, n=n, order=order).errors
    assert len(errors) == 1 and words in errors[0], errors


@pytest.mark.parametrize(("order", "seen"), [("ascending", [0, 7]), ("descending", [7, 0])])
def test_a_block_goes_ahead_of_its_peers(order: str, seen: list[int]) -> None:
    """Up to the next cluster barrier: what a peer has not written by then is not there."""
    out = np.zeros(64, np.uint32)
    build(MISTAKES, 32).launch("unmet", LAYOUT, arguments(out), 2, 32, cluster=2, order=order).raise_errors()
    assert out[:2].tolist() == seen


def test_uniform_barriers_pass() -> None:
    assert launch("mixed_barriers", n=0).errors == () == launch("mixed_barriers", n=32).errors
