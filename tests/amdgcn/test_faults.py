"""Planted mistakes: each is reported by name, at the source line; the correct kernels run clean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dsv4gen.base.errors import EmulationError
from dsv4gen.emulate.amdgcn import Result
from tests.amdgcn.compiled import TARGETS, WAVE64, hip_kernel
from tests.amdgcn.snippets import launch, snippet_kernel
from tests.amdgcn.test_convert import table

ORDERS = ("ascending", "descending", "random:1")
Launch = Callable[[str, tuple[str, ...], str], Result]


def run(
    symbol: str, target: str, macros: tuple[str, ...], grid: int, block: int, args: list[Any], **how: Any
) -> Result:
    return hip_kernel("faults", symbol, target, *macros).run(grid, block, args, **how)


def page_table(target: str, macros: tuple[str, ...], order: str) -> Result:
    tokens = 1000
    pages = np.random.default_rng(0).permutation(250).astype(np.uint32)
    pool = np.arange(1000, dtype=np.uint32)
    out = np.zeros(1024, np.uint32)
    return run("page_table", target, macros, 4, 256, [out, pages, pool, np.uint32(tokens)], order=order)


def simple(symbol: str, block: int = 256, *more: Any) -> Launch:
    def launch_it(target: str, macros: tuple[str, ...], order: str) -> Result:
        return run(symbol, target, macros, 1, block, [np.zeros(block, np.uint32), *more], order=order)

    return launch_it


def spin(target: str, macros: tuple[str, ...], order: str) -> Result:
    out, flag = np.zeros(64, np.uint32), np.zeros(1, np.uint32)
    return run("spin", target, macros, 1, 64, [out, flag], order=order, budget=100_000)


#: kernel -> (launch, what the report says, name of the finding; none for a trap)
FAULTS: dict[str, tuple[Launch, str, str]] = {
    "page_table": (page_table, "global access out of bounds", ""),
    "unwritten": (simple("unwritten"), "which nothing has written", "uninitialised lds"),
    "divergent": (simple("divergent"), "divergent barrier", "divergent barrier"),
    "two_barriers": (simple("two_barriers"), "waits at another barrier", "divergent barrier"),
    "spin": (spin, "instruction budget exhausted", ""),
    "lds_bounds": (simple("lds_bounds", 64, np.uint32(1000)), "LDS access out of bounds", ""),
    "bytes": (simple("bytes"), "LDS race", "lds race"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("target", TARGETS)
def test_mistake_is_reported_by_name_and_line(fault: str, target: str) -> None:
    start, message, kind = FAULTS[fault]
    for order in ORDERS:
        result = start(target, ("FAULT",), order)
        texts = result.problems
        assert any(message in text and "faults.hip:" in text for text in texts), (order, texts)
        if kind:
            assert kind in {finding.kind for finding in result.findings}
            assert result.error is None
        with pytest.raises(EmulationError, match=message.split(" (")[0]):
            result.check()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("target", TARGETS)
def test_correct_kernels_are_clean(fault: str, target: str) -> None:
    start, _, _ = FAULTS[fault]
    for order in ORDERS:
        assert start(target, (), order).check().problems == ()


def test_out_of_bounds_names_the_buffer_and_the_distance() -> None:
    result = page_table("gfx942", ("FAULT",), "ascending")
    assert result.error is not None
    assert "argument 1 (1000 bytes)" in result.error
    assert "bytes past the end" in result.error
    assert "wave" in result.error
    assert "lane" in result.error
    assert "block (3, 0, 0)" in result.error


def test_neighbouring_arrays_do_not_hide_an_overrun() -> None:
    """Both arrays are slices of one allocation: the overrun lands in real memory that belongs to the other."""
    both = np.zeros(1250, np.uint32)
    pages, pool = both[:250], both[250:]
    out = np.zeros(1024, np.uint32)
    result = run("page_table", "gfx1100", ("FAULT",), 4, 256, [out, pages, pool, np.uint32(1000)])
    assert result.error is not None
    assert "global access out of bounds" in result.error


def test_writes_to_read_only_arrays_trap() -> None:
    kernel = snippet_kernel("gfx942", ["s_nop 0"])
    frozen = np.zeros((64, 4), np.uint32)
    frozen.flags.writeable = False
    result = kernel.run(1, 64, [np.zeros((64, 8), np.uint32), frozen])
    assert result.error is not None
    assert "write to read-only memory" in result.error


def test_race_names_both_instructions() -> None:
    result = simple("bytes")("gfx950", ("FAULT",), "ascending")
    race = result.races[0]
    assert race.other is not None
    assert "ds_write_b8" in race.instruction.text
    assert "ds_write_b8" in race.other.text
    assert race.count > 1


@pytest.mark.parametrize("target", ("gfx942", "gfx950", "gfx1201"))
def test_wrong_dialect_gives_other_values(target: str) -> None:
    codes = (np.arange(256) | np.arange(255, -1, -1) << 8).astype(np.uint32)
    found = np.zeros(512, np.float32)
    kernel = hip_kernel("faults", "dequantise", target, "HAS_FP8")
    assert kernel.run(1, 256, [found, codes]).problems == ()
    native, foreign = (table("fp8", fnuz=fnuz) for fnuz in (target == "gfx942", target != "gfx942"))
    assert np.array_equal(found[::2], native, equal_nan=True)
    wrong = ~np.isclose(found[::2], foreign, rtol=1e-3, equal_nan=True)
    assert wrong.sum() > 250


def test_registers_start_poisoned() -> None:
    found, _ = launch(snippet_kernel("gfx942", ["v_mov_b32_e32 v16, v7"]), np.zeros((64, 1), np.uint32))
    assert (found[:, 0] == 0xA5A5A5A5).all()


def test_other_rounding_modes_trap() -> None:
    kernel = snippet_kernel("gfx942", ["s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 3"])
    _, result = launch(kernel, np.zeros((64, 1), np.uint32))
    assert result.error is not None
    assert "rounding mode" in result.error


def test_budget_is_exact() -> None:
    kernel = snippet_kernel("gfx942", ["s_nop 0"])
    arrays = [np.zeros((128, 8), np.uint32), np.zeros((128, 4), np.uint32)]
    needed = kernel.run(1, 128, arrays).instructions
    assert kernel.run(1, 128, arrays, budget=needed + 1).error is None
    for budget in (needed // 2, needed - 1, 1):
        assert "budget" in str(kernel.run(1, 128, arrays, budget=budget).error)


def test_jumps_outside_the_code_trap() -> None:
    kernel = snippet_kernel("gfx942", ["s_mov_b64 s[8:9], 64", "s_setpc_b64 s[8:9]"])
    _, result = launch(kernel, np.zeros((64, 1), np.uint32))
    assert result.error is not None
    assert "jump to an address where no code starts" in result.error


@pytest.mark.parametrize("target", TARGETS)
def test_taking_turns_ends_a_spin_between_waves(target: str) -> None:
    """With turns, a wave that waits for another wave of its block goes on; without, the budget ends it."""
    write, read = ("ds_write_b32", "ds_read_b32") if target in WAVE64 else ("ds_store_b32", "ds_load_b32")
    wait = "s_wait_dscnt 0x0" if target == "gfx1201" else "s_waitcnt lgkmcnt(0)"
    lines = [
        *("v_mov_b32_e32 v2, 0", "v_mov_b32_e32 v3, 5", "v_readfirstlane_b32 s8, v0", "s_cmp_eq_u32 s8, 0"),
        *("s_cbranch_scc0 SETTER", "\nWAITER:", f"{read} v16, v2", wait, "v_readfirstlane_b32 s9, v16"),
        *("s_cmp_lg_u32 s9, 5", "s_cbranch_scc1 WAITER", "s_branch DONE", "\nSETTER:", f"{write} v2, v3", "\nDONE:"),
    ]
    kernel = snippet_kernel(target, lines, lds=16)
    arrays = [np.zeros((128, 8), np.uint32), np.zeros((128, 4), np.uint32)]
    stuck = kernel.run(1, 128, arrays, budget=10_000)
    assert stuck.error is not None
    assert kernel.run(1, 128, arrays, budget=10_000, turn=50).error is None
