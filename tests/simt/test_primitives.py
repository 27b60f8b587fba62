"""Every primitive of the host build against numpy, on both wave sizes and in several orders."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from dsv4gen.emulate.simt.protocol import Shape
from tests.simt.layers import LAYOUT, WAVES, arguments, build
from tests.simt.primitives import PRIMITIVES, VOTES, Words, reduced, reduction_words, voted

ORDERS = ("ascending", "descending", "random:1", "random:2")
Floats = npt.NDArray[np.float32]

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
    words = np.array([0, 1, 2, 0x80000000, 0xFFFFFFFF, 0x00F0_0100, *range(3, 250, 7)], np.uint32)
    count = words.size
    out = run("bits", wave, 5 * count, given=words.view(np.float32), n=count, block=count).reshape(count, 5)
    for word, row in zip(words.tolist(), out.tolist(), strict=True):
        both = (word << 32) | (~word & 0xFFFFFFFF)
        lowest = ((word | 1 << 31) & -(word | 1 << 31)).bit_length() - 1
        assert row == [bin(word).count("1"), bin(both).count("1"), lowest, 32 - word.bit_length(), word]


def half_boundaries() -> Floats:
    """Every fp16 value, every midpoint between neighbours, the fp32 values beside both, and the specials."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    ends = np.append(halves, np.float32(65536))
    middles = (ends[:-1] + ends[1:]) / 2
    at = np.concatenate([ends, middles])
    around = np.concatenate([at, np.nextafter(at, np.float32(np.inf)), np.nextafter(at, np.float32(-1))])
    tiny = np.array([1, 2, 0x7FFFFF, 0x800000, 0x33000000, 0x33000001, 0x32FFFFFF], np.uint32).view(np.float32)
    large = np.array([3.4e38, np.inf, 65519.996, 65520.0, 65535.0], np.float32)
    everything = np.concatenate([around, tiny, large]).astype(np.float32)
    return np.concatenate([everything, -everything])


@waves
def test_half_bits_at_every_boundary(wave: int) -> None:
    floats = half_boundaries()
    out = run("halves", wave, floats.size, given=floats, n=floats.size, grid=4, block=256)
    with np.errstate(over="ignore"):
        want = floats.astype(np.float16).view(np.uint16)
    assert np.array_equal(out, want)


@waves
def test_half_bits_keep_nan(wave: int) -> None:
    patterns = np.array([0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF], np.uint32)
    out = run("halves", wave, patterns.size, given=patterns.view(np.float32), n=patterns.size, block=256)
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
    rows = floats.reshape(64, 4)
    assert np.array_equal(out[:, 0].view(np.float32), rows[:, 0] + rows[:, 1] * np.float32(2))
    assert np.array_equal(out[:, 1].view(np.float32), rows[:, 2] + rows[:, 3] * np.float32(2))
    assert np.array_equal(out[:, 2], floats[:64].view(np.uint32))
    assert np.array_equal(out[:, 3], floats[:64].view(np.uint32))
