"""The whole path on a real kernel: a radix top-k, right on all targets, and its planted bugs reported."""

from __future__ import annotations

import numpy as np
import pytest

from dsv4gen.emulate.amdgcn import Result
from tests.amdgcn.compiled import TARGETS, WAVE32, WAVE64, hip_kernel

ORDERS = ("ascending", "descending", "random:1")
WAVE_BUGS = ("BUG_SHUFFLE_WIDTH", "BUG_BALLOT_POPCOUNT", "BUG_LANE_MASK")


def select(target: str, scores: np.ndarray, k: int, order: str, *macros: str) -> tuple[np.ndarray, Result]:
    """Run the kernel on one row; the indices and the emulator's result."""
    kernel = hip_kernel("topk", "topk", target, *macros)
    indices = np.full(k, -1, np.int32)
    result = kernel.run(1, 1024, [indices, scores, np.int32(scores.size), np.int32(k)], order=order)
    return indices, result


def is_selection(indices: np.ndarray, scores: np.ndarray) -> bool:
    """True when the indices are different and name the largest scores."""
    if indices.min() < 0 or indices.max() >= scores.size or np.unique(indices).size != indices.size:
        return False
    return np.array_equal(np.sort(scores[indices]), np.sort(scores)[-indices.size :])


def some_scores(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(n).astype(np.float32)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("order", ORDERS)
def test_right_in_every_order(target: str, order: str) -> None:
    for n, k, seed in ((8192, 512, 0), (16385, 1024, 1)):
        scores = some_scores(n, seed)
        indices, result = select(target, scores, k, order)
        assert result.problems == ()
        assert is_selection(indices, scores)


@pytest.mark.parametrize("target", TARGETS)
def test_waves_may_take_turns_anywhere(target: str) -> None:
    scores = some_scores(8192)
    kernel = hip_kernel("topk", "topk", target)
    indices = np.full(512, -1, np.int32)
    arguments = [indices, scores, np.int32(8192), np.int32(512)]
    result = kernel.run(1, 1024, arguments, order="random:5", turn=37)
    assert result.problems == ()
    assert is_selection(indices, scores)


@pytest.mark.parametrize("bug", WAVE_BUGS)
@pytest.mark.parametrize("target", WAVE64)
def test_wave_bugs_are_caught_on_wave64(target: str, bug: str) -> None:
    scores = some_scores(65536)
    for order in ORDERS:
        indices, result = select(target, scores, 2048, order, bug)
        assert result.problems or not is_selection(indices, scores), f"{bug} was accepted, {order}"


@pytest.mark.parametrize("bug", WAVE_BUGS)
@pytest.mark.parametrize("target", WAVE32)
def test_wave_bugs_are_harmless_on_wave32(target: str, bug: str) -> None:
    scores = some_scores(16384)
    indices, result = select(target, scores, 1024, "random:2", bug)
    assert result.problems == ()
    assert is_selection(indices, scores)


@pytest.mark.parametrize("target", TARGETS)
def test_missing_barrier_is_a_race(target: str) -> None:
    for order in ORDERS:
        _, result = select(target, some_scores(16384), 1024, order, "BUG_NO_BARRIER")
        assert result.races, f"no race reported, {order}"
        assert "topk.hip:" in str(result.races[0])


def test_counts_are_exact_and_repeatable() -> None:
    scores = some_scores(8192)
    first = select("gfx942", scores, 512, "ascending")[1]
    again = select("gfx942", scores, 512, "ascending")[1]
    assert first.instructions == again.instructions == sum(first.executed)
    assert first.counters == again.counters
    # 15 barriers, executed by 16 waves.
    assert first.counters["barriers"] == 15 * 16
    assert first.counters["loads"] == 2 * 8192 // 64
