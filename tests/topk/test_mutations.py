"""Planted bugs: the suite rejects each where it matters, and the three wave64 bugs are harmless on wave32."""

from __future__ import annotations

import pytest

from dsv4gen.base.errors import EmulationError, VerifyError
from dsv4gen.reference.topk_cases import ORDERS, Case
from tests.simt.layers import WAVE_BUGS
from tests.topk.host import HostTopk, only, topk_plan
from tests.topk.windows import MODE as PACKED
from tests.topk.windows import run_windows

LABEL, MODE = "topk_t256", "indices"
MISSING_PIECES = ("missing_barrier", "missing_validity")
WINDOW_BUGS = ("window_past_row", "unchecked_table_row")
#: register and streaming rows with many winners, ranked ties, staged ties that are narrowed, and padding that would win
CASES = [
    Case(LABEL, scores, length, k, head=1, order=order)
    for order in ORDERS
    for scores, length, k in (
        ("normal", 1500, 512),
        ("normal_20_3", 6100, 2048),
        ("one_bin", 4098, 1024),
        ("ascending", 2049, 512),
        ("all_equal_negative", 3001, 2048),
    )
]


def failing(wave: int, *mutations: str) -> list[str]:
    plan = only(topk_plan(), [f"topk_{MODE}_t256"])
    return HostTopk(plan, wave, frozenset(mutations)).failures(CASES)


@pytest.mark.parametrize("wave", [32, 64])
def test_unchanged_kernels_pass(wave: int) -> None:
    assert failing(wave) == []


@pytest.mark.parametrize("mutation", WAVE_BUGS)
def test_wave_bug_shows_on_wave64(mutation: str) -> None:
    assert failing(64, mutation)


@pytest.mark.parametrize("mutation", WAVE_BUGS)
def test_wave_bug_is_harmless_on_wave32(mutation: str) -> None:
    assert failing(32, mutation) == []


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("mutation", MISSING_PIECES)
def test_missing_piece_shows_everywhere(mutation: str, wave: int) -> None:
    assert failing(wave, mutation)


def run_windows_with(wave: int, *mutations: str) -> None:
    plan = only(topk_plan(), [f"topk_{PACKED}_t256"])
    run_windows(HostTopk(plan, wave, frozenset(mutations)), LABEL)


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("mutation", WINDOW_BUGS)
def test_window_bug_shows_everywhere(mutation: str, wave: int) -> None:
    run_windows_with(wave)
    with pytest.raises((VerifyError, EmulationError)):
        run_windows_with(wave, mutation)
