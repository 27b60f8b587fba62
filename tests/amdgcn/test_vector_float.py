"""Vector float instructions against NumPy, with NaN, infinities, denormals, zeros of both signs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.amdgcn.compiled import TARGETS, WAVE64
from tests.amdgcn.snippets import run_snippet

ORDINARY = (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.14159, 65504.0, 0.49999997, 8388609.0)
EXTREME = (1e-40, -1e-40, 1e-45, 1.1754944e-38, 3.4e38, -3.4e38, 1e38, 2147483648.0, -2147483648.0, 4294967296.0)
EDGES = np.array((*ORDINARY, *EXTREME, np.inf, -np.inf, np.nan), np.float32)
F32, F64, F16 = np.float32, np.float64, np.float16


def inputs(threads: int = 256) -> np.ndarray:
    """float32 [threads, 8]: pairs of edge values, then random numbers of many sizes."""
    rng = np.random.default_rng(11)
    values = (rng.standard_normal((threads, 8)) * 10.0 ** rng.integers(-6, 7, (threads, 8))).astype(F32)
    pairs = rng.permutation(EDGES.size**2)[: threads * 3 // 4]
    values[: pairs.size, 0] = EDGES[pairs // EDGES.size]
    values[: pairs.size, 1] = EDGES[pairs % EDGES.size]
    values[: pairs.size, 2] = EDGES[rng.integers(0, EDGES.size, pairs.size)]
    return values


def same(found: np.ndarray, wanted: np.ndarray) -> bool:
    """Equal bits, except that any NaN equals any NaN."""
    both_nan = np.isnan(found) & np.isnan(wanted)
    bits = {4: np.uint32, 2: np.uint16, 8: np.uint64}[found.itemsize]
    return bool((both_nan | (found.view(bits) == wanted.view(bits))).all())


def check(line: str, wanted: Callable[..., np.ndarray], rdna: str = "", targets: tuple[str, ...] = TARGETS) -> None:
    """Run one instruction on v8, v9, v10 and compare v16 with the function of the three columns."""
    values = inputs()
    with np.errstate(all="ignore"):
        expected = np.asarray(wanted(*values[:, :3].T.copy()))
    for target in targets:
        text = rdna if rdna and target not in WAVE64 else line
        found = run_snippet(target, [text], values.view(np.uint32))[:, 0].copy()
        assert same(found.view(expected.dtype) if expected.itemsize == 4 else found, expected), (target, text)


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c rounded once. The fp64 sum is rounded to odd first, so that the second rounding is right."""
    product = a.astype(F64) * b.astype(F64)
    total = product + c.astype(F64)
    shadow = total - product
    lost = (product - (total - shadow)) + (c.astype(F64) - shadow)
    bits = total.view(np.int64).copy()
    adjust = (lost != 0) & np.isfinite(lost) & (bits & 1 == 0)
    bits[adjust] += np.where((lost > 0) == (total > 0), 1, -1)[adjust]
    return bits.view(F64).astype(F32)


def max_number(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, np.where(np.signbit(a), b, a), np.fmax(a, b)).astype(F32)


def min_number(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, np.where(np.signbit(a), a, b), np.fmin(a, b)).astype(F32)


def flush(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 2.0**-126, np.copysign(F32(0), x), x).astype(F32)


ARITHMETIC = {
    "v_add_f32_e32 v16, v8, v9": lambda a, b, _c: a + b,
    "v_sub_f32_e32 v16, v8, v9": lambda a, b, _c: a - b,
    "v_subrev_f32_e32 v16, v8, v9": lambda a, b, _c: b - a,
    "v_mul_f32_e32 v16, v8, v9": lambda a, b, _c: a * b,
    "v_fma_f32 v16, v8, v9, v10": fused,
    "v_fma_f32 v16, -v8, |v9|, -|v10|": lambda a, b, c: fused(-a, np.abs(b), -np.abs(c)),
    "v_add_f32_e64 v16, v8, v9 clamp": lambda a, b, _c: (
        np.nan_to_num(np.clip(a + b, 0, 1), nan=0.0).astype(F32) + F32(0)
    ),
    "v_mul_f32_e64 v16, v8, v9 mul:2": lambda a, b, _c: a * b * F32(2),
    "v_mul_f32_e64 v16, v8, v9 div:2": lambda a, b, _c: a * b * F32(0.5),
    "v_add_f32_e32 v16, 0x40490fdb, v9": lambda _a, b, _c: F32(math.pi) + b,
    "v_add_f32_e32 v16, -4.0, v9": lambda _a, b, _c: F32(-4) + b,
    "v_max3_f32 v16, v8, v9, v10": lambda a, b, c: max_number(max_number(a, b), c),
    "v_min3_f32 v16, v8, v9, v10": lambda a, b, c: min_number(min_number(a, b), c),
    "v_trunc_f32_e32 v16, v8": lambda a, _b, _c: np.trunc(a),
    "v_ceil_f32_e32 v16, v8": lambda a, _b, _c: np.ceil(a),
    "v_floor_f32_e32 v16, v8": lambda a, _b, _c: np.floor(a),
    "v_rndne_f32_e32 v16, v8": lambda a, _b, _c: np.rint(a),
    "v_cvt_f32_u32_e32 v16, v8": lambda a, _b, _c: a.view(np.uint32).astype(F32),
    "v_cvt_f32_i32_e32 v16, v8": lambda a, _b, _c: a.view(np.int32).astype(F32),
    "v_cvt_f32_ubyte0_e32 v16, v8": lambda a, _b, _c: (a.view(np.uint32) & 255).astype(F32),
    "v_cvt_f32_ubyte3_e32 v16, v8": lambda a, _b, _c: (a.view(np.uint32) >> 24).astype(F32),
    "v_rcp_f32_e32 v16, v8": lambda a, _b, _c: flush(F32(1) / flush(a)),
    "v_sqrt_f32_e32 v16, v8": lambda a, _b, _c: np.sqrt(flush(a)),
    "v_rsq_f32_e32 v16, v8": lambda a, _b, _c: (1.0 / np.sqrt(flush(a).astype(F64))).astype(F32),
    "v_ldexp_f32 v16, v8, 3": lambda a, _b, _c: np.ldexp(a, 3),
    "v_ldexp_f32 v16, v8, -140": lambda a, _b, _c: np.ldexp(a, -140),
}


@pytest.mark.parametrize("line", ARITHMETIC, ids=lambda line: line.replace(" v16, ", " "))
def test_arithmetic(line: str) -> None:
    gfx12 = line.replace("v_max3_f32", "v_max3_num_f32").replace("v_min3_f32", "v_min3_num_f32")
    check(line, ARITHMETIC[line], targets=tuple(t for t in TARGETS if t != "gfx1201"))
    check(gfx12, ARITHMETIC[line], targets=("gfx1201",))


def test_max_and_min_prefer_numbers_and_order_zeros() -> None:
    for name, wanted in (("max", max_number), ("min", min_number)):
        check(f"v_{name}_f32_e32 v16, v8, v9", lambda a, b, _c, f=wanted: f(a, b), targets=TARGETS[:4])
        check(f"v_{name}_num_f32_e32 v16, v8, v9", lambda a, b, _c, f=wanted: f(a, b), targets=("gfx1201",))


def test_maximum_and_minimum_propagate_nan() -> None:
    for name, wanted in (("maximum", np.maximum), ("minimum", np.minimum)):
        values = inputs()
        a, b = values[:, 0].copy(), values[:, 1].copy()
        with np.errstate(all="ignore"):
            expected = wanted(a, b)
        zeros = (a == 0) & (b == 0)
        sign = (np.signbit(a) & np.signbit(b)) if name == "maximum" else (np.signbit(a) | np.signbit(b))
        expected[zeros] = np.where(sign, F32(-0.0), F32(0.0))[zeros]
        found = run_snippet("gfx1201", [f"v_{name}_f32 v16, v8, v9"], values.view(np.uint32))[:, 0].copy()
        assert same(found.view(F32), expected)


def test_conversions_to_integers_saturate() -> None:
    values = inputs()
    a = values[:, 0].astype(F64)
    unsigned = np.clip(np.nan_to_num(np.trunc(a), nan=0.0, posinf=2.0**33, neginf=-1), 0, 2**32 - 1)
    integers = np.clip(np.nan_to_num(np.trunc(a), nan=0.0, posinf=2.0**33, neginf=-(2.0**33)), -(2**31), 2**31 - 1)
    for target in TARGETS:
        lines = ["v_cvt_u32_f32_e32 v16, v8", "v_cvt_i32_f32_e32 v17, v8"]
        found = run_snippet(target, lines, values.view(np.uint32))
        assert found[:, 0].tolist() == unsigned.astype(np.uint64).tolist(), target
        assert found[:, 1].view(np.int32).tolist() == integers.astype(np.int64).tolist(), target


def test_exponentials_are_close_and_flush_denormals() -> None:
    values = inputs()
    a = values[:, 0].copy()
    for name, function in (("exp", np.exp2), ("log", np.log2)):
        with np.errstate(all="ignore"):
            wanted = function(flush(a).astype(F64)).astype(F32)
        wanted = flush(wanted) if name == "exp" else wanted
        found = run_snippet("gfx942", [f"v_{name}_f32_e32 v16, v8"], values.view(np.uint32))[:, 0].copy().view(F32)
        finite = np.isfinite(wanted)
        assert np.allclose(found[finite], wanted[finite], rtol=2e-7, atol=1e-37)
        assert same(found[~finite], wanted[~finite])


@pytest.mark.parametrize("target", TARGETS)
def test_division_steps_give_the_rounded_quotient(target: str) -> None:
    """The sequence compilers emit for a / b, on values whose quotient needs scaling."""
    rng = np.random.default_rng(3)
    sizes = 10.0 ** rng.integers(-37, 38, (256, 2))
    values = (rng.uniform(1, 10, (256, 2)) * sizes * rng.choice([-1, 1], (256, 2))).astype(F32)
    values[:8, 0] = [0, 1, np.inf, 5, np.nan, 0, 1e-40, 3]
    values[:8, 1] = [3, 0, 2, np.inf, 1, 0, 2, 1e-40]
    vcc = "vcc" if target in WAVE64 else "vcc_lo"
    sink = "s[8:9]" if target in WAVE64 else "s8"
    lines = [
        f"v_div_scale_f32 v2, {sink}, v9, v9, v8",
        "v_rcp_f32_e32 v3, v2",
        "v_fma_f32 v4, -v2, v3, 1.0",
        "v_fmac_f32_e32 v3, v4, v3",
        f"v_div_scale_f32 v4, {vcc}, v8, v9, v8",
        "v_mul_f32_e32 v5, v4, v3",
        "v_fma_f32 v6, -v2, v5, v4",
        "v_fmac_f32_e32 v5, v6, v3",
        "v_fma_f32 v2, -v2, v5, v4",
        "v_div_fmas_f32 v2, v2, v3, v5",
        "v_div_fixup_f32 v16, v2, v9, v8",
    ]
    found = run_snippet(target, lines, values.view(np.uint32))[:, 0].copy().view(F32)
    with np.errstate(all="ignore"):
        wanted = values[:, 0] / values[:, 1]
    normal = ~(np.abs(wanted) < 2.0**-126) | (wanted == 0)
    assert same(found[normal], wanted[normal])
    assert np.allclose(found[~normal], wanted[~normal], rtol=0, atol=2.0**-148)


def test_fp64() -> None:
    rng = np.random.default_rng(5)
    values = np.zeros((128, 8), np.uint32)
    numbers = rng.standard_normal((128, 3)) * 10.0 ** rng.integers(-300, 300, (128, 3))
    numbers[:4, 0] = [np.nan, np.inf, -0.0, 5e-324]
    values[:, :6] = numbers.view(np.uint32)
    a, b, _ = numbers.T
    with np.errstate(all="ignore"):
        cases = {
            "v_add_f64 v[16:17], v[8:9], v[10:11]": a + b,
            "v_mul_f64 v[16:17], v[8:9], -v[10:11]": a * -b,
            "v_max_f64 v[16:17], v[8:9], v[10:11]": np.fmax(a, b),
            "v_floor_f64_e32 v[16:17], v[8:9]": np.floor(a),
            "v_cvt_f32_f64_e32 v16, v[8:9]": a.astype(F32),
        }
    for line, wanted in cases.items():
        for target in ("gfx90a", "gfx942", "gfx1100"):
            found = run_snippet(target, [line], values)
            column = found[:, 0].copy().view(F32) if wanted.itemsize == 4 else found[:, :2].copy().view(F64)[:, 0]
            assert same(column, wanted), (target, line)


def test_class_tells_every_kind_of_number() -> None:
    kinds = np.array([np.nan, -np.inf, -2.0, -1e-40, -0.0, 0.0, 1e-40, 2.0, np.inf], F32)
    for bit, kind in enumerate(kinds, start=1):
        values = np.zeros((64, 2), np.uint32)
        values[: kinds.size, 0] = kinds.view(np.uint32)
        values[:, 1] = 1 << bit
        lines = ["v_cmp_class_f32_e32 vcc, v8, v9", "v_mov_b32_e32 v16, vcc_lo"]
        found = run_snippet("gfx942", lines, values)[0, 0]
        wanted = sum(1 << index for index, other in enumerate(kinds) if index == bit - 1)
        assert int(found) & ((1 << kinds.size) - 1) == wanted, kind


def test_multiply_add_of_the_first_cdna_rounds_twice() -> None:
    """gfx90a alone still has v_mad_f32 and its forms with a literal as factor or as addend."""
    only = ("gfx90a",)
    check("v_mad_f32 v16, v8, v9, v10", lambda a, b, c: a * b + c, targets=only)
    check("v_madmk_f32 v16, v8, 0x40490fdb, v9", lambda a, b, c: a * F32(np.pi) + b, targets=only)  # noqa: ARG005
    check("v_madak_f32 v16, v8, v9, 0x40490fdb", lambda a, b, c: a * b + F32(np.pi), targets=only)  # noqa: ARG005
