"""Shipped tiles of indexer_logits through Triton's real compiler, for every target (BL-12, BL-17, BL-21, BL-30)."""

from __future__ import annotations

import re

import pytest

from tests.indexer_logits import compiled
from tests.indexer_logits.compiled import TARGETS
from tests.indexer_logits.modules import module, plan
from tests.tools import need_module

pytestmark = pytest.mark.usefixtures("triton")

#: target -> instruction for float16 products, and for FP8 products where the unit reads codes
MATRIX = {
    "gfx90a": (r"v_mfma_f32_\w+f16", None),
    "gfx942": (r"v_mfma_f32_\w+f16", r"v_mfma_f32_\w+fp8_fp8"),
    "gfx950": (r"v_mfma_f32_\w+f16", r"v_mfma_f32_\w+(?:fp8_fp8|f8f6f4)"),
    "gfx1100": (r"v_wmma_f32_16x16x16_f16", None),
    "gfx1201": (r"v_wmma_f32_16x16x16_f16", r"v_wmma_f32_16x16x16_fp8_fp8"),
    "gfx1250": (r"v_wmma_f32_16x16x32_f16", r"v_wmma_f32_16x16x\d+_fp8_fp8"),
    "sm_80": (r"mma\.sync\S+\.f32\.f16\.f16\.f32", None),
    "sm_89": (r"mma\.sync\S+\.f32\.f16\.f16\.f32", r"mma\.sync\S+e4m3\.e4m3"),
    "sm_90": (r"(?:wgmma|mma\.sync)\S+f16\.f16", r"(?:wgmma|mma\.sync)\S+e4m3\.e4m3"),
    "sm_100": (
        r"(?:tcgen05\.mma\S+kind::f16|mma\.sync\S+f16\.f16)",
        r"(?:tcgen05\.mma\S+kind::f8f6f4|mma\.sync\S+e4m3)",
    ),
    "sm_120": (r"mma\.sync\S+\.f32\.f16\.f16\.f32", r"mma\.sync\S+e4m3\.e4m3"),
}


@pytest.fixture(scope="session")
def triton() -> None:
    need_module("triton")


@pytest.mark.parametrize("target", TARGETS)
def test_tiles_fit_as_proven_and_do_not_spill(target: str) -> None:
    """The proof's shared memory bounds the compiler's; Triton itself enforces no limit."""
    limit = compiled.record(target).shared.block
    for variant, (instance, built) in compiled.compile_all(target).items():
        (kernel,) = built.code.kernels
        assert built.shared_bytes <= instance.shared_bytes <= limit, variant
        few = target == "sm_100" and instance.tile["block_n"] < 64
        shared_keys = target == "sm_90" and instance.tile["block_r"] == 4
        assert kernel.spilled_registers <= (226 if shared_keys else 2 if few else 0), variant


@pytest.mark.parametrize("target", TARGETS)
def test_products_use_the_matrix_unit(target: str) -> None:
    half, codes = MATRIX[target]
    found = compiled.compile_all(target)
    assert {variant.fp8 for variant in found} == ({False, True} if codes else {False})
    for variant, (instance, built) in found.items():
        wanted = codes if variant.fp8 else half
        if target in ("sm_90", "sm_100") and instance.tile["block_n"] < 64:
            # Too few keys for these; the older instructions read float16 there.
            wanted = r"mma\.sync\S+f16\.f16"
        assert wanted is not None
        assert re.search(wanted, built.code.assembly or ""), variant


@pytest.mark.parametrize("target", TARGETS)
def test_codes_are_loaded_16_bytes_at_a_time(target: str) -> None:
    widths = r"(?:global|buffer)_load_(?:dwordx4|b128)|(?:ld\.global|cp\.async)[^;\n]*(?:v4\.b32|0x10|, 16)"
    for variant, (_, built) in compiled.compile_all(target).items():
        assert re.search(widths, built.code.assembly or ""), variant


def test_bl17_no_foreign_dialect_is_named() -> None:
    for target in TARGETS:
        text = module(target).read_text(encoding="utf-8")
        assert ("float8e4b8" in text) == (target == "gfx942")
        assert ("float8e4nv" in text) == (target not in ("gfx942", "gfx90a", "gfx1100", "sm_80"))
        assert "autotune" not in text


def test_bl30_extents_are_powers_of_two() -> None:
    for target in TARGETS:
        extents = set(re.findall(r"tl\.arange\(0, ([\w* ]+)\)", module(target).read_text(encoding="utf-8")))
        assert extents == {"128", "ROWS", "BLOCK_N", "ROWS * BLOCK_H"}


@pytest.mark.parametrize("target", TARGETS)
def test_no_tile_reaches_past_the_target(target: str) -> None:
    limit = compiled.record(target).shared.block
    for kernel in plan(target).kernels:
        assert all(instance.shared_bytes <= limit for instance in kernel.instances)
