"""Shipped compress kernels through Triton's real compiler: spills, shared memory, access widths, 64-bit addresses."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from dsv4gen.reference.compress_store import FP4_FLOOR
from dsv4gen.render.render import render_triton
from dsv4gen.toolchain import check_budget, compile_triton_many
from dsv4gen.verify.triton_requests import triton_requests
from tests.compress import compiled
from tests.compress.compiled import TARGETS
from tests.compress.modules import module, plan
from tests.tools import need_module
from tests.triton.compiled import access_widths

pytestmark = pytest.mark.usefixtures("triton")


@pytest.fixture(scope="session")
def triton() -> None:
    need_module("triton")


@pytest.mark.parametrize("target", TARGETS)
def test_no_spills_little_shared_memory_and_wide_loads(target: str) -> None:
    record = compiled.record(target)
    for variant, built in compiled.compile_target(target).items():
        (kernel,) = built.code.kernels
        # Partials of a whole row, three float32 a dimension, where rows are joined across warps.
        assert built.shared_bytes <= (24576 if variant.ratio == 128 else 1024), variant.name
        budget = check_budget(kernel, record, expected_shared=built.shared_bytes, threads=built.threads)
        assert not budget, (variant.name, budget)
        full = 4 * built.threads <= variant.head_dim or variant.ratio == 128
        assert access_widths(built.code.assembly or "")["load"] >= (16 if full else 8), variant.name


@pytest.mark.parametrize("target", TARGETS)
def test_every_kernel_is_stated_once(target: str) -> None:
    """What `verify` compiles: each kernel of the spec, no combination twice."""
    chosen = plan(target)
    stated = triton_requests(chosen, render_triton(chosen), module(target))
    assert {kernel.function for kernel in stated} == {kernel.entry for kernel in chosen.kernels}
    combinations = {(kernel.function, *sorted({**kernel.constexprs, **kernel.options}.items())) for kernel in stated}
    assert len(combinations) == len(stated)


@pytest.mark.parametrize("target", TARGETS)
def test_bl21_addresses_are_64_bit(target: str) -> None:
    """A state row's offset is a 64-bit product."""
    wide = r"v_mad_u?i?64_[iu]32|v_mad_nc_|v_mul_hi_|s_mul_u64|s_mul_hi|mul\.lo\.s64|mad\.lo\.s64|mul\.wide"
    for variant, built in compiled.compile_target(target).items():
        assert re.search(wide, built.code.assembly or ""), variant.name


def test_rotation_stays_in_registers() -> None:
    """B18: no kernel stores to memory what it loads again: each output is stored once, the state aside."""
    text = module("sm_90").read_text(encoding="utf-8")
    body = text[text.index("def rotate(") : text.index("def encode(")]
    assert "tl.store" not in body and "tl.load" not in body
    assert "autotune" not in text and "enable_fp_fusion" in text


@pytest.mark.parametrize("target", ["gfx942", "sm_90"])
def test_a_ratio_four_row_fills_its_lanes(target: str) -> None:
    """A row's dimensions are shared among all lanes, two or four to a lane: accesses of 8 or 16 bytes."""
    wave = compiled.record(target).wave.launch
    for head_dim in (128, 512):
        buckets = plan(target).kernel("decode_four").buckets
        tile = next(bucket.tile for bucket in buckets if bucket.when.evaluate({"head_dim": head_dim}))
        assert tile["num_warps"] == max(1, head_dim // (tile["lane_elements"] * wave))
        assert tile["lane_elements"] in (2, 4)


@pytest.mark.parametrize("target", ["gfx942", "gfx1201", "sm_90"])
def test_subnormal_numbers_are_kept_where_the_floor_is_among_them(target: str) -> None:
    """The floor of FP4 keys divides and multiplies numbers below 2^-126; nothing flushes but RMSNorm's root."""
    chosen = plan(target)
    stated = triton_requests(chosen, render_triton(chosen), module(target))
    finish = next(kernel for kernel in stated if kernel.function == "finish_row")
    constants = {"D": 128, "RATIO": 4, "RECORD": "idx_fp4_68", "FLOOR": FP4_FLOOR}
    (built,) = compile_triton_many(
        [(replace(finish, constexprs={**finish.constexprs, **constants}), compiled.record(target))], jobs=1
    )
    assert built.value is not None, built.error
    assembly = built.value.code.assembly or ""
    assert set(re.findall(r"\S+\.ftz\S*", assembly)) <= {"rsqrt.approx.ftz.f32"}
    assert target.startswith("sm_") or ".amdhsa_float_denorm_mode_32 3" in assembly
