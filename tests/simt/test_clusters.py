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
  u32 other;
  TransactionBarrier arrived;
};

// Ready for words of the peers.
#define START(shared)                                \\
  DSV4_SHARED(Shared, shared);                       \\
  shared.count = 5;                                  \\
  if (thread_id() == 0) init_barrier(shared.arrived); \\
  cluster_arrive();                                  \\
  cluster_wait()

// One word for the peer.
#define TELL(shared, bytes)                                                                       \\
  if (thread_id() == 0) {                                                                         \\
    expect_bytes(shared.arrived, bytes);                                                          \\
    push(shared.count, 1 - cluster_rank(), 7 + cluster_rank(), shared.arrived);                   \\
  }

DSV4_KERNEL(32, 1) void early(DSV4_PARAMS(Params, params)) {
  DSV4_SHARED(Shared, shared);
  init_barrier(shared.arrived);
  block_barrier();
  push(shared.count, 1 - cluster_rank(), 1, shared.arrived);
  cluster_barrier();
}

DSV4_KERNEL(32, 1) void late(DSV4_PARAMS(Params, params)) {
  START(shared);
  if (cluster_rank() == params.n) return;
  for (u32 i = 0; i < 3; ++i) block_barrier();
  push(shared.count, 1 - cluster_rank(), 1, shared.arrived);
}

DSV4_KERNEL(32, 1) void wrong_rank(DSV4_PARAMS(Params, params)) {
  START(shared);
  push(shared.count, params.n, 1, shared.arrived);
}

DSV4_KERNEL(32, 1) void not_shared(DSV4_PARAMS(Params, params)) {
  START(shared);
  u32 local = shared.count;
  push(local, 0, 1, shared.arrived);
}

DSV4_KERNEL(32, 1) void misaligned(DSV4_PARAMS(Params, params)) {
  START(shared);
  push(*reinterpret_cast<UInt2*>(&shared.other), 0, UInt2{1, 2}, shared.arrived);
}

DSV4_KERNEL(32, 1) void uninitialised(DSV4_PARAMS(Params, params)) {
  DSV4_SHARED(Shared, shared);
  if (thread_id() == 0 && cluster_rank() == params.n) init_barrier(shared.arrived);
  cluster_arrive();
  cluster_wait();
  if (cluster_rank() == params.n) push(shared.count, 1 - params.n, 1, shared.arrived);
  cluster_barrier();
}

DSV4_KERNEL(32, 1) void expected_twice(DSV4_PARAMS(Params, params)) {
  START(shared);
  if (thread_id() < 2 && cluster_rank() == params.n) expect_bytes(shared.arrived, 4);
  cluster_barrier();
}

DSV4_KERNEL(32, 1) void too_few(DSV4_PARAMS(Params, params)) {
  START(shared);
  TELL(shared, cluster_rank() == params.n ? 8 : 4);
  await_bytes(shared.arrived, 0);
  cluster_barrier();
}

DSV4_KERNEL(32, 1) void unexpected(DSV4_PARAMS(Params, params)) {
  START(shared);
  if (thread_id() == 0) push(shared.count, 1 - cluster_rank(), 1, shared.arrived);
  await_bytes(shared.arrived, 0);
}

DSV4_KERNEL(32, 1) void wrong_phase(DSV4_PARAMS(Params, params)) {
  START(shared);
  TELL(shared, 4);
  await_bytes(shared.arrived, 0);
  await_bytes(shared.arrived, 1);
}

DSV4_KERNEL(32, 1) void unread(DSV4_PARAMS(Params, params)) {
  START(shared);
  TELL(shared, 4);
  block_barrier();
  if (cluster_rank() != params.n) await_bytes(shared.arrived, 0);
}

DSV4_KERNEL(32, 1) void unawaited(DSV4_PARAMS(Params, params)) {
  START(shared);
  TELL(shared, 4);
  for (u32 i = 0; i < 8; ++i) block_barrier();
  if (thread_id() == 0) params.out[block_x()] = shared.count;
  await_bytes(shared.arrived, 0);
  if (thread_id() == 0) params.out[2 + block_x()] = shared.count;
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
        before, following = (y - 1) % 4, (y + 1) % 4
        four = 700_000_000 + thread % 16 * 1_000_000 + following * 100_000 + y % 4 * 1000 + thread % 16
        for x in range(2):
            assert rows[y, x, :, 0].tolist() == (before * 1000 + thread).tolist()
            assert rows[y, x, :, 1].tolist() == (before * 100 + thread).tolist()
            assert rows[y, x, :, 2].tolist() == four.tolist()
    assert result.counters["blocks"] == 16 and result.counters["cluster_barriers"] == 2 * 4


def test_the_largest_cluster() -> None:
    out = np.zeros(16 * 64 * 3, np.uint32)
    program = build(CLUSTERS, 32)
    program.launch("ring", LAYOUT, arguments(out), (1, 16), 64, cluster=(1, 16)).raise_errors()
    assert out.reshape(16, 64, 3)[:, 0, 0].tolist() == [(rank - 1) % 16 * 1000 for rank in range(16)]


def launch(kernel: str, *, n: int = 0, order: str = "ascending") -> SimtResult:
    values = arguments(np.zeros(64, np.uint32), n=n)
    return build(MISTAKES, 32).launch(kernel, LAYOUT, values, 4, 32, cluster=2, order=order)


@orders
@pytest.mark.parametrize(
    ("kernel", "n", "words"),
    [
        ("early", 0, "before any cluster barrier"),
        ("late", 0, "whose block has ended"),
        ("late", 1, "whose block has ended"),
        ("wrong_rank", 2, "rank 2 in a cluster of 2 blocks"),
        ("not_shared", 0, "of a shared struct of 16 bytes"),
        ("misaligned", 0, "address 0x4 is not a multiple of 8"),
        ("uninitialised", 0, "byte 8 of a shared struct of 16 bytes is no transaction barrier"),
        ("uninitialised", 1, "is no transaction barrier"),
        ("expected_twice", 1, "second expectation in a phase of a transaction barrier, 4 bytes of which"),
        ("too_few", 1, "waits for ever at a transaction barrier: 4 of the expected bytes do not come"),
        ("unexpected", 0, "waits for ever at a transaction barrier: no thread of its block expects bytes"),
        ("wrong_phase", 0, "waits for ever at a transaction barrier: no thread"),
        ("one_leaves", 0, "cluster barrier that the block of rank 0 misses"),
        ("one_leaves", 1, "cluster barrier that the block of rank 1 misses"),
        ("mixed_barriers", 20, "divergent barrier"),
    ],
)
def test_mistakes_are_reported(kernel: str, n: int, words: str, order: str) -> None:
    errors = launch(kernel, n=n, order=order).errors
    assert len(errors) == 1 and words in errors[0], errors


@pytest.mark.parametrize(("order", "seen"), [("ascending", [5, 5]), ("descending", [8, 7])])
def test_words_come_at_once_or_when_they_are_waited_for(order: str, seen: list[int]) -> None:
    """Whoever reads them without waiting reads in one order of the two what was there before."""
    out = np.zeros(64, np.uint32)
    build(MISTAKES, 32).launch("unawaited", LAYOUT, arguments(out), 2, 32, cluster=2, order=order).raise_errors()
    assert out[2:4].tolist() == [8, 7]
    assert out[:2].tolist() == seen


@pytest.mark.parametrize("n", [0, 1])
def test_words_on_their_way_to_a_block_that_has_ended(n: int) -> None:
    errors = launch("unread", n=n).errors
    assert errors and all(f"rank {n} has ended" in e or f"rank {n}, whose block has ended" in e for e in errors), errors


def test_uniform_barriers_pass() -> None:
    assert launch("mixed_barriers", n=0).errors == () == launch("mixed_barriers", n=32).errors
