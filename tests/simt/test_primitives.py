"""Every primitive of the host build against numpy, on both wave sizes and in several orders."""

from __future__ import annotations

import numpy as np
import pytest

from dsv4gen.emulate.simt.protocol import Shape
from tests.simt.layers import LAYOUT, WAVES, arguments, build
from tests.simt.primitives import (
    BITS,
    NANS,
    PRIMITIVES,
    VOTES,
    Floats,
    Words,
    counted,
    half_boundaries,
    halved,
    loaded,
    reduced,
    reduction_words,
    voted,
)

ORDERS = ("ascending", "descending", "random:1", "random:2")

waves = pytest.mark.parametrize("wave", WAVES)
orders = pytest.mark.parametrize("order", ORDERS)


def run(
    kernel: str,
    wave: int,
    size: int,
    *,
    given: Floats | int = 0,
    n: int = 0,
    grid: Shape = 1,
    block: int = 64,
    order: str = "ascending",
) -> Words:
    """The words a kernel of `PRIMITIVES` wrote."""
    out = np.full(size, 0xEEEEEEEE, np.uint32)
    program = build(PRIMITIVES, wave)
    program.launch(kernel, LAYOUT, arguments(out, given, n), grid, block, order=order).raise_errors()
    return out


def predicates(mask: int, count: int) -> Floats:
    """1.0 where a bit is set, else -1.0."""
    return np.array([1.0 if mask >> bit & 1 else -1.0 for bit in range(count)], np.float32)


@waves
@orders
def test_ballot_of_two_logical_warps(wave: int, order: str) -> None:
    """BL-07: 0x0000000300000FFF has 12 lanes in the first logical warp and 2 in the second."""
    mask = 0x0000000300000FFF
    out = run("ballots", wave, 256, given=predicates(mask, 64), order=order).reshape(64, 4)
    assert [set(out[:32, 0]), set(out[32:, 0])] == [{0xFFF}, {0x3}]
    below = [bin(mask >> (lane & 32) & ((1 << lane % 32) - 1)).count("1") for lane in range(64)]
    assert out[:, 1].tolist() == below
    assert [set(out[:32, 3]), set(out[32:, 3])] == ([{14}, {14}] if wave == 64 else [{12}, {2}])
    assert set(out[32:, 2]) == ({0xFFF} if wave == 64 else {0x3})


@waves
def test_ballot_of_a_block_that_ends_inside_a_warp(wave: int) -> None:
    out = run("ballots", wave, 4 * 80, given=predicates((1 << 80) - 1, 80), block=80).reshape(80, 4)
    assert set(out[:64, 0]) == {0xFFFFFFFF} and set(out[64:, 0]) == {0xFFFF}
    assert set(out[64:, 3]) == {16}


@waves
@orders
def test_scan_stays_inside_the_logical_warp(wave: int, order: str) -> None:
    """BL-07: a scan of 64 ones is 1..32 twice."""
    assert run("scan_ones", wave, 64, order=order).tolist() == [*range(1, 33), *range(1, 33)]


@waves
@orders
def test_votes_of_the_whole_wave(wave: int, order: str) -> None:
    out = run("wave_votes", wave, 3 * 256, given=VOTES, block=256, order=order).reshape(256, 3)
    np.testing.assert_array_equal(out, voted(VOTES, wave))


@waves
@orders
def test_reductions_stay_inside_the_logical_warp(wave: int, order: str) -> None:
    for words in reduction_words(96):
        out = run("reductions", wave, 7 * 96, given=words.view(np.float32), block=96, order=order).reshape(96, 7)
        np.testing.assert_array_equal(out, reduced(words))


@waves
@pytest.mark.parametrize("n", [0, 1, 5, 16, 31])
def test_shuffles(wave: int, n: int) -> None:
    out = run("shuffles", wave, 4 * 96, n=n, block=96).reshape(96, 4).astype(np.int64)
    thread = np.arange(96)
    lane, first = thread % 32, thread - thread % 32
    assert out[:, 0].tolist() == (first + n).tolist()
    assert out[:, 1].tolist() == np.where(lane < n, thread, thread - n).tolist()
    assert out[:, 2].tolist() == (thread ^ n).tolist()
    assert out[:, 3].tolist() == (first + (thread * 7 + n) % 32).tolist()


@waves
def test_positions(wave: int) -> None:
    block, grid = 96, (3, 2, 2)
    out = run("positions", wave, 12 * block * 8, n=block, grid=grid, block=block).reshape(2, 2, 3, block, 8)
    thread = np.arange(block)
    for z, y, x in np.ndindex(2, 2, 3):
        want = [thread, thread * 0 + x, thread * 0 + y, thread * 0 + z]
        want += [thread % wave, thread % 32, thread // 32, (1 << thread % 32) - 1]
        assert out[z, y, x].tolist() == np.stack(want, axis=1).tolist()


@waves
def test_bit_counts(wave: int) -> None:
    count = BITS.size
    out = run("bits", wave, 5 * count, given=BITS.view(np.float32), n=count, block=count).reshape(count, 5)
    np.testing.assert_array_equal(out, counted(BITS))


@waves
def test_half_bits_at_every_boundary(wave: int) -> None:
    floats = half_boundaries()
    out = run("halves", wave, floats.size, given=floats, n=floats.size, grid=4, block=256)
    np.testing.assert_array_equal(out, halved(floats))


@waves
def test_half_bits_keep_nan(wave: int) -> None:
    out = run("halves", wave, NANS.size, given=NANS.view(np.float32), n=NANS.size, block=256)
    assert np.isnan(out.astype(np.uint16).view(np.float16)).all()


@waves
@orders
def test_atomics_and_barriers(wave: int, order: str) -> None:
    out = np.zeros(1 + 256, np.uint32)
    program = build(PRIMITIVES, wave)
    program.launch("counters", LAYOUT, arguments(out), 2, 128, order=order).raise_errors()
    assert out[0] == 256
    assert sorted(out[1:].tolist()) == sorted(2 * [slot * 2 + 256 for slot in range(128)])


@waves
def test_loads(wave: int) -> None:
    floats = np.random.default_rng(0).standard_normal(256).astype(np.float32)
    out = run("loads", wave, 256, given=floats).reshape(64, 4)
    np.testing.assert_array_equal(out, loaded(floats))
