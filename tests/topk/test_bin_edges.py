"""The closed-form ends of every coarse bin, as the kernel computes them, against fp16 rounding done by numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dsv4gen.base.params import ParamsLayout
from dsv4gen.emulate.simt import SimtProgram
from dsv4gen.render import render_source
from tests.topk.host import only, topk_plan

Array = npt.NDArray[Any]

PROBE = """
struct Probe { u32* low; u32* span; u32* word; const float* scores; u32 count; };
template <u32 coarse_bits> DSV4_DEVICE void probe(const Probe& params) {
  using Tile = SelectTile<256, 2, coarse_bits, 512>;
  for (u32 bin = thread_id(); bin < Tile::kBins; bin += 256) {
    const Cut cut = coarse_cut<Tile>(bin, 0, 0);
    params.low[bin] = cut.low;
    params.span[bin] = cut.span;
  }
  using Shared = SharedSelect<Tile>;
  DSV4_SHARED(Shared, shared);
  const CountCoarse<Tile> pass{shared, 0};
  for (u32 i = thread_id(); i < params.count; i += 256) params.word[i] = word_of(pass, params.scores[i], true);
}
DSV4_KERNEL(256, 1) void probe_10(DSV4_PARAMS(Probe, params)) { probe<10>(params); }
DSV4_KERNEL(256, 1) void probe_12(DSV4_PARAMS(Probe, params)) { probe<12>(params); }
"""
LAYOUT = ParamsLayout.of([(name, "pointer", "") for name in ("low", "span", "word", "scores")] + [("count", "u32", "")])
ZERO_KEY = 1 << 31
LOWEST_KEY, HIGHEST_KEY = 0x007FFFFF, 0xFF800000


@pytest.fixture(scope="module")
def program() -> SimtProgram:
    text = render_source(only(topk_plan(), []), "simt", wave=32).text
    return SimtProgram.build(text + PROBE, wave=32)


def run(program: SimtProgram, bits: int, scores: Array) -> tuple[Array, ...]:
    """low and span of every bin, and the histogram word of every score."""
    low, span = (np.zeros(1 << bits, dtype=np.uint32) for _ in range(2))
    word = np.zeros(len(scores), dtype=np.uint32)
    values: dict[str, Array | int] = {"low": low, "span": span, "word": word, "scores": scores, "count": len(scores)}
    program.launch(f"probe_{bits}", LAYOUT, values, 1, 256).raise_errors()
    return low, span, word


def scores_of(keys: Array) -> Array:
    """The fp32 number with an exact key."""
    keys = keys.astype(np.uint32)
    return np.where(keys >= ZERO_KEY, keys ^ ZERO_KEY, ~keys).astype(np.uint32).view(np.float32)


def bins_of(scores: Array, bits: int) -> Array:
    """Bins by numpy's rounding: 0 for zeros, else one more than the leading bits of the fp16 number."""
    with np.errstate(over="ignore"):
        half = scores.astype(np.float16).view(np.uint16).astype(np.int64)
    return np.where(scores == 0, 0, (half >> (16 - bits)) + 1)


def occupied(bits: int) -> Array:
    """Bins that a non-zero number can fall into."""
    magnitudes = np.arange((0x7C00 >> (16 - bits)) + 1)
    return np.concatenate([magnitudes + 1, magnitudes + 1 + (1 << (bits - 1))])


@pytest.mark.parametrize("bits", [10, 12])
def test_bins_begin_and_end_where_rounding_changes(program: SimtProgram, bits: int) -> None:
    """Rounding is monotone, so the four numbers at the two ends of a bin decide for all of its numbers."""
    low, span, _ = run(program, bits, np.zeros(1, dtype=np.float32))
    bins = occupied(bits)
    first, last = low[bins].astype(np.int64), low[bins].astype(np.int64) + span[bins] - 1
    assert (bins_of(scores_of(first), bits) == bins).all()
    assert (bins_of(scores_of(last), bits) == bins).all()
    before, after = first > LOWEST_KEY, last < HIGHEST_KEY
    assert (bins_of(scores_of(first - 1), bits) != bins)[before].all()
    assert (bins_of(scores_of(last + 1), bits) != bins)[after].all()
    assert (~before).sum() == (~after).sum() == 1


@pytest.mark.parametrize("bits", [10, 12])
def test_bins_leave_no_key_out(program: SimtProgram, bits: int) -> None:
    low, span, _ = run(program, bits, np.zeros(1, dtype=np.float32))
    bins = np.concatenate([[0], occupied(bits)])
    order = np.argsort(low[bins])
    starts, ends = low[bins][order].astype(np.int64), (low[bins].astype(np.int64) + span[bins])[order]
    gaps = starts[1:] != ends[:-1]
    assert ends[:-1][gaps].tolist() == [ZERO_KEY - 1], "only the pattern of -0, whose key is zero's, is in no bin"
    assert (starts[0], ends[-1]) == (LOWEST_KEY, HIGHEST_KEY + 1)


@pytest.mark.parametrize("bits", [10, 12])
def test_scores_are_counted_in_their_bin(program: SimtProgram, bits: int) -> None:
    rng = np.random.default_rng(0)
    patterns = rng.integers(0, 1 << 32, 200_000, dtype=np.uint64).astype(np.uint32)
    ends = np.concatenate([low := run(program, bits, np.zeros(1, dtype=np.float32))[0], low - 1, low + 1])
    scores = np.concatenate([patterns.view(np.float32), scores_of(ends)])
    scores = scores[~np.isnan(scores) & (scores != 0)]
    assert (run(program, bits, scores)[2] == bins_of(scores, bits)).all()


def test_zeros_and_nan_are_not_counted(program: SimtProgram) -> None:
    patterns = np.array([0, 0x80000000, 0x7FC00000, 0x7F800001, 0xFFFFFFFF, 0xFF800001], dtype=np.uint32)
    assert (run(program, 12, patterns.view(np.float32))[2] >= 1 << 12).all()
