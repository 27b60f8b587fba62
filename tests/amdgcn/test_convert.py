"""Small float formats: all fp8 and bf8 codes in both dialects, rounding, overflow; bf16, fp4, scaled conversions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.amdgcn.snippets import run_snippet

F32 = np.float32
ALL_CODES = np.arange(256, dtype=np.uint32)
NATIVE = {"gfx942": True, "gfx950": False, "gfx1201": False}  # target -> FNUZ?


def decode(code: int, exponent_bits: int, bias: int, *, fnuz: bool, ieee: bool) -> float:
    """The value of an 8-bit float code, from the format's definition."""
    mantissa_bits = 7 - exponent_bits
    sign = -1.0 if code & 0x80 else 1.0
    exponent, mantissa = (code & 0x7F) >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
    top = (1 << exponent_bits) - 1
    if fnuz and code == 0x80:
        return np.nan
    if not fnuz and exponent == top:
        if ieee:
            return sign * np.inf if mantissa == 0 else np.nan
        if mantissa == (1 << mantissa_bits) - 1:
            return np.nan
    if exponent == 0:
        return sign * mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return sign * (1 + mantissa / (1 << mantissa_bits)) * 2.0 ** (exponent - bias)


def table(kind: str, *, fnuz: bool) -> np.ndarray:
    bits, bias = (4, 7) if kind == "fp8" else (5, 15)
    return np.array([decode(code, bits, bias + fnuz, fnuz=fnuz, ieee=kind == "bf8") for code in range(256)], F32)


def same(found: np.ndarray, wanted: np.ndarray) -> bool:
    nan = np.isnan(found) & np.isnan(wanted)
    return bool((nan | (found.view(np.uint32) == wanted.view(np.uint32))).all())


@pytest.mark.parametrize("kind", ("fp8", "bf8"))
@pytest.mark.parametrize("target", NATIVE)
def test_every_code_decodes(kind: str, target: str) -> None:
    values = (ALL_CODES << 16 | (255 - ALL_CODES)).reshape(-1, 1)
    if target == "gfx1201":
        lines = [f"v_cvt_f32_{kind}_e64 v16, v8 byte_sel:2", f"v_cvt_pk_f32_{kind}_e32 v[18:19], v8.l"]
    else:
        lines = [f"v_cvt_f32_{kind}_sdwa v16, v8 src0_sel:BYTE_2", f"v_cvt_pk_f32_{kind}_e32 v[18:19], v8"]
    found = run_snippet(target, lines, values).view(F32)
    wanted = table(kind, fnuz=NATIVE[target])
    assert same(found[:, 0].copy(), wanted)
    assert same(found[:, 2].copy(), wanted[::-1].copy())


def nearest(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Codes nearest to the values; a tie goes to the even code. `codes` are the finite values by code."""
    finite = np.array([i for i in range(128) if np.isfinite(codes[i])])
    sizes = codes[finite].astype(np.float64)
    result = []
    for value in np.abs(values.astype(np.float64)):
        distance = np.abs(sizes - value)
        best = finite[distance == distance.min()]
        result.append(int(best[0] if len(best) == 1 or best[0] % 2 == 0 else best[1]))
    return np.array(result)


@pytest.mark.parametrize("kind", ("fp8", "bf8"))
@pytest.mark.parametrize("target", NATIVE)
def test_encoding_rounds_to_nearest_even(kind: str, target: str) -> None:
    rng = np.random.default_rng(9)
    codes = table(kind, fnuz=NATIVE[target])
    largest = float(np.nanmax(np.where(np.isfinite(codes), codes, np.nan)))
    finite = codes[:128][np.isfinite(codes[:128])].astype(np.float64)
    ties = ((finite[1:] + finite[:-1]) / 2).astype(F32)
    values = np.concatenate([ties, -ties, rng.uniform(-largest, largest, 200).astype(F32), finite.astype(F32)])
    values = values[np.abs(values) <= largest].astype(F32)
    lines = [f"v_cvt_pk_{kind}_f32 v16, v8, v9" if target != "gfx1201" else f"v_cvt_pk_{kind}_f32 v16.l, v8, v9"]
    pairs = np.stack([values, -values], axis=1).view(np.uint32)
    found = run_snippet(target, lines, pairs)[:, 0]
    size = nearest(values, codes)
    for column, sign in ((0, np.signbit(values)), (8, ~np.signbit(values))):
        wanted = size | np.where(sign, 0x80, 0)
        if NATIVE[target]:
            wanted = np.where(size == 0, 0, wanted)
        assert (found >> column & 255).tolist() == wanted.tolist()
    # The other half of the result register is kept.
    assert (found >> 16 == 0).all()


def test_overflow_gives_nan_or_saturates_by_mode() -> None:
    values = np.array([[1e6], [-1e6], [np.inf], [np.nan]], F32).view(np.uint32)
    convert = "v_cvt_pk_fp8_f32 v16, v8, v8"
    plain = run_snippet("gfx950", [convert], values)[:, 0] & 255
    assert plain.tolist() == [0x7F, 0xFF, 0x7F, 0x7F]
    clamped = run_snippet("gfx950", ["s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1", convert], values)[:, 0] & 255
    assert clamped.tolist() == [0x7E, 0xFE, 0x7E, 0x7F]
    fnuz = run_snippet("gfx942", [convert], values)[:, 0] & 255
    assert fnuz.tolist() == [0x80, 0x80, 0x80, 0x80]


def test_dialects_differ() -> None:
    """The same code is half as large in FNUZ: the mistake that a wrong dialect makes is visible."""
    values = np.full((64, 1), 0x38, np.uint32)
    fnuz = run_snippet("gfx942", ["v_cvt_f32_fp8_e32 v16, v8"], values).view(F32)[0, 0]
    ocp = run_snippet("gfx950", ["v_cvt_f32_fp8_e32 v16, v8"], values).view(F32)[0, 0]
    assert (fnuz, ocp) == (0.5, 1.0)


def test_scaled_conversions_of_gfx950() -> None:
    values = np.zeros((256, 3), np.uint32)
    values[:, 0] = ALL_CODES | (255 - ALL_CODES) << 8
    scales = np.ldexp(F32(1.5), np.random.default_rng(0).integers(-20, 20, 256)).astype(F32)
    values[:, 1] = scales.view(np.uint32)
    power = np.exp2(np.floor(np.log2(scales))).astype(F32)
    codes = table("fp8", fnuz=False)
    found = run_snippet("gfx950", ["v_cvt_scalef32_pk_f32_fp8 v[16:17], v8, v9"], values).view(F32)
    assert same(found[:, 0].copy(), codes * power)
    assert same(found[:, 1].copy(), codes[::-1] * power)
    bf16 = run_snippet("gfx950", ["v_cvt_scalef32_pk_bf16_fp8 v16, v8, 1.0"], values)[:, 0]
    assert same((bf16 << 16).astype(np.uint32).view(F32), codes)


def test_fp4_of_gfx950() -> None:
    magnitudes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    values = np.zeros((16, 2), np.uint32)
    values[:, 0] = np.arange(16, dtype=np.uint32) << 8
    values[:, 1] = F32(4.0).view(np.uint32)
    found = run_snippet("gfx950", ["v_cvt_scalef32_pk_f32_fp4 v[16:17], v8, v9 op_sel:[1,0,0]"], values).view(F32)
    assert found[:, 0].tolist() == [4 * size for size in magnitudes] + [-4 * size for size in magnitudes]
    assert (found[:, 1] == 0).all()


def test_bf16_rounds_to_nearest_even() -> None:
    rng = np.random.default_rng(6)
    bits = rng.integers(0, 1 << 32, (256, 2), np.uint64).astype(np.uint32)
    bits[:4, 0] = [0x3F808000, 0x3F818000, 0x7F800000, 0x7FC00000]
    found = run_snippet("gfx950", ["v_cvt_pk_bf16_f32 v16, v8, v9"], bits)[:, 0]
    for row, result in zip(bits, found, strict=True):
        for shift, raw in ((0, int(row[0])), (16, int(row[1]))):
            half = int(result) >> shift & 0xFFFF
            if (raw & 0x7FFFFFFF) > 0x7F800000:
                assert (half & 0x7FFF) > 0x7F80
            else:
                assert half == raw + 0x7FFF + (raw >> 16 & 1) >> 16


def test_half_conversions() -> None:
    rng = np.random.default_rng(8)
    numbers = (rng.standard_normal(256) * 10.0 ** rng.integers(-9, 6, 256)).astype(F32)
    numbers[:6] = [65519.0, 65520.0, np.inf, np.nan, 2.0**-25, 2.0**-24 * 1.5]
    values = np.stack([numbers, -numbers], axis=1).view(np.uint32)
    lines = ["v_cvt_f16_f32_e32 v16, v8", "v_cvt_pkrtz_f16_f32 v17, v8, v9"]
    found = run_snippet("gfx942", lines, values)
    with np.errstate(all="ignore"):
        nearest_half = numbers.astype(np.float16)
    plain = found[:, 0].astype(np.uint16).view(np.float16)
    nan = np.isnan(numbers)
    assert np.array_equal(plain[~nan], nearest_half[~nan])
    assert np.isnan(plain[nan]).all()
    cut = (found[:, 1] & 0xFFFF).astype(np.uint16).view(np.float16).astype(np.float64)
    finite = np.isfinite(numbers)
    assert (np.abs(cut[finite]) <= np.abs(numbers[finite])).all()
    step = np.maximum(np.abs(numbers[finite]) * 2.0**-10, 2.0**-24)
    inside = np.abs(numbers[finite]) < 65504
    assert (np.abs(np.abs(cut[finite]) - np.abs(numbers[finite])) < step)[inside].all()
