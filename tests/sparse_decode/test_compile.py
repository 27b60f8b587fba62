"""Shipped tiles of sparse_decode through Triton's real compiler, for every target (BL-12, BL-17, BL-21, BL-30)."""

from __future__ import annotations

import re

import pytest

from tests.sparse_decode import compiled
from tests.sparse_decode.compiled import TARGETS
from tests.sparse_decode.modules import module, plan
from tests.tools import need_module

pytestmark = pytest.mark.usefixtures("triton")

#: registers spilled per thread where there is no tile without: 64 heads times 512 columns are 128 accumulators of a
#: thread, and 64 addresses of matrix operands (wgmma descriptors) do not fit beside them
SPILLS = {
    ("sm_90", "attend_fused_h64_n64_w8_s5"): 140,
    ("sm_100", "attend_fused_h64_n64_w8_s3"): 100,
}
MATRIX = {
    "gfx9": "v_mfma_f32_",
    "gfx1": "v_wmma_f32_16x16x16_bf16",
    "sm_90": "wgmma.mma_async",
    "sm_100": "tcgen05.mma",
}


@pytest.fixture(scope="session")
def triton() -> None:
    need_module("triton")


@pytest.mark.parametrize("target", TARGETS)
def test_tiles_fit_as_proven_and_do_not_spill(target: str) -> None:
    """The proof's shared memory bounds the compiler's; Triton itself enforces no limit."""
    limit = compiled.record(target).shared.block
    for variant, (instance, built) in compiled.compile_all().items():
        if variant.target == target:
            (kernel,) = built.code.kernels
            assert built.shared_bytes <= instance.shared_bytes <= limit, variant
            assert kernel.spilled_registers <= SPILLS.get((target, variant.instance), 0), variant


@pytest.mark.parametrize("target", TARGETS)
def test_products_use_the_matrix_unit(target: str) -> None:
    wide = next(name for name in MATRIX if target.startswith(name)) if target not in ("sm_80", "sm_120") else ""
    for variant, (instance, built) in compiled.compile_all().items():
        if variant.target == target:
            few = target in ("sm_90", "sm_100") and instance.tile["block_h"] < 64
            assert ("mma.sync" if few or not wide else MATRIX[wide]) in (built.code.assembly or ""), variant


@pytest.mark.parametrize("target", TARGETS)
def test_loads_are_wide(target: str) -> None:
    """16 bytes of codes per lane; the scales of a token in one load of 8, which LLVM takes apart on gfx11 and gfx12."""
    widths = r"(?:global|buffer)_load_(?:dwordx4|b128)|(?:ld\.global|cp\.async)[^;\n]*(?:v4\.b32|0x10|, 16)"
    scales = r"(?:global|buffer)_load_(?:dwordx2|b64)|(?:ld\.global|cp\.async)[^;\n]*(?:b64|0x8|, 8)"
    for variant, (_, built) in compiled.compile_all().items():
        if variant.target == target:
            assert re.search(widths, built.code.assembly or ""), variant
            if not target.startswith("gfx1"):
                assert re.search(scales, built.code.assembly or ""), variant


@pytest.mark.parametrize("target", TARGETS)
def test_codes_are_not_converted_by_the_slow_chain(target: str) -> None:
    """sm_89 and later convert e4m3 through f16 and f32, at a quarter of the speed of the packed multiplications."""
    for variant, (_, built) in compiled.compile_all().items():
        if variant.target == target and target.startswith("sm_"):
            assembly = built.code.assembly or ""
            assert "e4m3x2" not in assembly
            assert re.search(r"(?:mul|fma)\.(?:rn\.)?bf16", assembly), variant


def test_bl17_no_foreign_dialect_is_named() -> None:
    for target in TARGETS:
        text = module(target).read_text(encoding="utf-8")
        assert ("float8e4b8" in text) == (target == "gfx942")
        assert ("float8e4nv" in text) == (target == "gfx950")
        assert "autotune" not in text


def test_bl30_extents_are_powers_of_two() -> None:
    for target in TARGETS:
        extents = set(re.findall(r"tl\.arange\(0, (\w+)\)", module(target).read_text(encoding="utf-8")))
        numbers = {int(extent) for extent in extents if extent.isdigit()}
        assert numbers <= {8, 16, 64, 512}
        assert extents - {str(number) for number in numbers} <= {"BLOCK_H", "BLOCK_N", "SPLITS", "COLUMNS"}


@pytest.mark.parametrize("target", TARGETS)
def test_no_tile_reaches_past_the_target(target: str) -> None:
    limit = compiled.record(target).shared.block
    for kernel in plan(target).kernels:
        assert all(instance.shared_bytes <= limit for instance in kernel.instances)
