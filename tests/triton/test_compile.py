"""Shipped gather_dequant kernels through Triton's real compiler, for every target (BL-17, BL-21, BL-30)."""

from __future__ import annotations

import re

import pytest

from dsv4gen.toolchain import check_budget
from tests.tools import need_module
from tests.triton import compiled
from tests.triton.compiled import TARGETS, Variant
from tests.triton.modules import module

pytestmark = pytest.mark.usefixtures("triton")


@pytest.fixture(scope="session")
def triton() -> None:
    need_module("triton")


def small(target: str, dialect: str, decode: str) -> Variant:
    return Variant(target, "gather_scope", dialect, decode, compiled.SMALL_ROWS)


@pytest.mark.parametrize("target", TARGETS)
def test_no_spills_no_shared_memory_and_wide_accesses(target: str) -> None:
    for variant, built in compiled.compile_all().items():
        if variant.target == target:
            (kernel,) = built.code.kernels
            record = compiled.record(target)
            # ptxas 13 reserves a stack frame of 8 bytes in the larger tiles that no instruction touches.
            frame = 8 if target.startswith("sm_") else 0
            budget = {"expected_shared": 0, "threads": built.threads, "allowed_scratch": frame}
            assert not check_budget(kernel, record, **budget), variant.name
            assert not re.search(r"\b(?:ld|st)\.local\b", built.code.assembly or ""), variant.name
            assert kernel.vector_registers <= 80, variant.name
            assert kernel.occupancy is not None and kernel.occupancy.blocks >= 16, variant.name
            assert compiled.access_widths(built.code.assembly or "") == {"load": 16, "store": 16}, variant.name


@pytest.mark.parametrize("target", TARGETS)
def test_subnormals_survive(target: str) -> None:
    """Subnormal codes and scales pass through float32 subnormals: no instruction may flush them."""
    for variant, built in compiled.compile_all().items():
        if variant.target == target:
            assembly = built.code.assembly or ""
            assert ".ftz" not in assembly
            modes = re.findall(r"\.amdhsa_float_denorm_mode_32 (\d)", assembly)
            assert modes == (["3"] if target.startswith("gfx") else []), variant.name


@pytest.mark.parametrize("target", TARGETS)
def test_native_conversion_saves_arithmetic(target: str) -> None:
    """Why a target's text converts natively: it takes fewer instructions than the integer twin."""
    built = compiled.compile_all()
    for dialect in compiled.native_dialects(target):
        native, integer = (
            compiled.vector_instructions(built[small(target, dialect, decode)].code.assembly or "")
            for decode in ("native", "integer")
        )
        assert native < 0.9 * integer, (target, dialect, native, integer)


def test_bl17_who_converts_natively() -> None:
    native = {target: compiled.native_dialects(target) for target in TARGETS}
    assert native == {
        "gfx90a": (),
        "gfx942": ("e4m3fnuz",),
        "gfx950": ("e4m3fn",),
        "gfx1100": (),
        "gfx1201": (),
        "gfx1250": ("e4m3fn",),
        "sm_80": (),
        "sm_89": ("e4m3fn",),
        "sm_90": ("e4m3fn",),
        "sm_100": ("e4m3fn",),
        "sm_120": ("e4m3fn",),
    }
    for target in TARGETS:
        if target.startswith("sm_"):
            assert "float8e4b8" not in module(target).read_text(encoding="utf-8")


@pytest.mark.parametrize("target", TARGETS)
def test_bl21_addresses_are_64_bit(target: str) -> None:
    """The page offset is a 64-bit product: a wide multiply-add feeds the loads."""
    built = compiled.compile_all()[small(target, "e4m3fn", "integer")]
    wide = r"v_mad_u?i?64_[iu]32|v_mad_nc_|v_mul_hi_|s_mul_u64|mul\.lo\.s64|mad\.lo\.s64|mul\.wide"
    assert re.search(wide, built.code.assembly or "")


def test_bl30_extents_are_powers_of_two() -> None:
    """448 codes are seven tiles of 64: no arange of another extent, no dot."""
    text = module("sm_90").read_text(encoding="utf-8")
    extents = re.findall(r"tl\.arange\(0, (\w+)\)", text)
    assert set(extents) == {"ROWS", "64", "4"}
    assert "tl.dot" not in text
