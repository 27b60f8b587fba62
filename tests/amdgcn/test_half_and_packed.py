"""16-bit and packed instructions: values, the half that is written, and what becomes of the other half."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.amdgcn.compiled import TARGETS, WAVE64
from tests.amdgcn.snippets import run_snippet
from tests.amdgcn.test_vector_integer import signed

F16, F32, F64 = np.float16, np.float32, np.float64
EDGES = np.array([0.0, -0.0, 1.0, -1.5, 65504.0, -65504.0, 6e-8, 6e-5, np.inf, -np.inf, np.nan, 0.1, 3.0, 1000.0], F16)


def inputs(threads: int = 256) -> np.ndarray:
    """uint32 [threads, 8] of packed fp16 pairs; edge values in both halves."""
    rng = np.random.default_rng(17)
    halves = (rng.standard_normal((threads, 16)) * 10.0 ** rng.integers(-4, 4, (threads, 16))).astype(F16)
    count = threads * 3 // 4
    halves[:count] = np.where(rng.random((count, 16)) < 0.6, rng.choice(EDGES, (count, 16)), halves[:count])
    return halves.view(np.uint32)


def halves_of(values: np.ndarray, column: int) -> tuple[np.ndarray, np.ndarray]:
    """Low and high halves of an input dword as fp16."""
    pair = values[:, column].copy().view(F16).reshape(-1, 2)
    return pair[:, 0].copy(), pair[:, 1].copy()


def same(found: np.ndarray, wanted: np.ndarray) -> bool:
    nan = np.isnan(found) & np.isnan(wanted)
    return bool((nan | (found.view(np.uint16) == wanted.view(np.uint16))).all())


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    # fp16 products are exact in fp64, and so are nearly all of these sums; the rest is rounded to odd first.
    product, addend = a.astype(F64) * b.astype(F64), c.astype(F64)
    total = product + addend
    return total.astype(F16)


HALF = {
    "v_add_f16": lambda a, b, _c: (a.astype(F32) + b.astype(F32)).astype(F16),
    "v_sub_f16": lambda a, b, _c: (a.astype(F32) - b.astype(F32)).astype(F16),
    "v_mul_f16": lambda a, b, _c: (a.astype(F32) * b.astype(F32)).astype(F16),
}


@pytest.mark.parametrize("name", HALF)
def test_half_arithmetic_and_the_upper_half(name: str) -> None:
    values = inputs()
    (a, _), (b, _) = halves_of(values, 0), halves_of(values, 1)
    with np.errstate(all="ignore"):
        wanted = HALF[name](a, b, a)
    for target in TARGETS:
        cdna = target in WAVE64
        line = f"{name}_e32 v16, v8, v9" if cdna else f"{name}_e32 v16.l, v8.l, v9.l"
        found = run_snippet(target, [line], values)
        low, high = halves_of(found, 0)
        assert same(low, wanted), target
        kept = (values[:, 4] >> 16).tolist()
        upper = high.view(np.uint16).tolist()
        assert upper == ([0] * len(kept) if cdna else kept), target


@pytest.mark.parametrize("target", ("gfx90a", "gfx942", "gfx950"))
def test_op_sel_picks_halves(target: str) -> None:
    values = inputs()
    (_, a), (b, _), (_, c) = (halves_of(values, column) for column in range(3))
    found = run_snippet(target, ["v_fma_f16 v16, v8, -v9, |v10| op_sel:[1,0,1,1]"], values)
    with np.errstate(all="ignore"):
        wanted = fused(a, -b, np.abs(c))
    low, high = halves_of(found, 0)
    assert same(high, wanted)
    assert same(low, halves_of(values, 4)[0])


@pytest.mark.parametrize("target", ("gfx1100", "gfx1201"))
def test_named_halves(target: str) -> None:
    values = inputs()
    (_, a), (b, _) = halves_of(values, 0), halves_of(values, 1)
    lines = ["v_add_f16_e32 v16.h, v8.h, v9.l", "v_mov_b16_e32 v17.l, v8.h", "v_mov_b16_e32 v17.h, 0x1234"]
    found = run_snippet(target, lines, values)
    with np.errstate(all="ignore"):
        wanted = (a.astype(F32) + b.astype(F32)).astype(F16)
    low, high = halves_of(found, 0)
    assert same(high, wanted)
    assert same(low, halves_of(values, 4)[0])
    assert found[:, 1].tolist() == ((values[:, 0] >> 16) | 0x12340000).tolist()


PACKED_FLOAT: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "v_pk_add_f16": lambda a, b: (a.astype(F32) + b.astype(F32)).astype(F16),
    "v_pk_mul_f16": lambda a, b: (a.astype(F32) * b.astype(F32)).astype(F16),
}


@pytest.mark.parametrize("name", PACKED_FLOAT)
@pytest.mark.parametrize("target", TARGETS)
def test_packed_half(name: str, target: str) -> None:
    values = inputs()
    (a_low, a_high), (b_low, b_high) = halves_of(values, 0), halves_of(values, 1)
    lines = [
        f"{name} v16, v8, v9",
        f"{name} v17, v8, v9 op_sel:[1,0] op_sel_hi:[0,1]",
        f"{name} v18, v8, v9 neg_lo:[1,0] neg_hi:[0,1]",
    ]
    found = run_snippet(target, lines, values)
    with np.errstate(all="ignore"):
        wanted = (
            (PACKED_FLOAT[name](a_low, b_low), PACKED_FLOAT[name](a_high, b_high)),
            (PACKED_FLOAT[name](a_high, b_low), PACKED_FLOAT[name](a_low, b_high)),
            (PACKED_FLOAT[name](-a_low, b_low), PACKED_FLOAT[name](a_high, -b_high)),
        )
    for column, (low, high) in enumerate(wanted):
        found_low, found_high = halves_of(found, column)
        assert same(found_low, low)
        assert same(found_high, high)


PACKED_INTEGER: dict[str, Callable[[int, int], int]] = {
    "v_pk_add_u16": lambda a, b: a + b,
    "v_pk_sub_i16": lambda a, b: a - b,
    "v_pk_mul_lo_u16": lambda a, b: a * b,
    "v_pk_min_i16": lambda a, b: min(signed(a, 16), signed(b, 16)),
    "v_pk_max_u16": max,
    "v_pk_lshlrev_b16": lambda a, b: b << (a & 15),
    "v_pk_ashrrev_i16": lambda a, b: signed(b, 16) >> (a & 15),
}


@pytest.mark.parametrize("name", PACKED_INTEGER)
def test_packed_integers(name: str) -> None:
    values = np.random.default_rng(2).integers(0, 1 << 32, (256, 8), np.uint64).astype(np.uint32)
    function = PACKED_INTEGER[name]
    wanted = [
        sum((function(int(a) >> s & 0xFFFF, int(b) >> s & 0xFFFF) & 0xFFFF) << s for s in (0, 16))
        for a, b in values[:, :2]
    ]
    for target in TARGETS:
        found = run_snippet(target, [f"{name} v16, v8, v9"], values)
        assert found[:, 0].tolist() == wanted, target


def test_packed_add_saturates_with_clamp() -> None:
    values = np.array([[0xFFFF7FFF, 0x00010001], [0x00000005, 0x00000003]], np.uint32)
    lines = ["v_pk_add_u16 v16, v8, v9 clamp", "v_pk_add_i16 v17, v8, v9 clamp", "v_pk_sub_u16 v18, v9, v8 clamp"]
    found = run_snippet("gfx942", lines, values)
    assert found[0, :3].tolist() == [0xFFFF8000, 0x00007FFF, 0x00000000]


@pytest.mark.parametrize("target", WAVE64)
def test_packed_fp32(target: str) -> None:
    rng = np.random.default_rng(23)
    numbers = rng.standard_normal((128, 8)).astype(F32)
    values = numbers.view(np.uint32)
    a, b = numbers[:, 0:2], numbers[:, 2:4]
    lines = [
        "v_pk_add_f32 v[16:17], v[8:9], v[10:11] op_sel:[1,0] op_sel_hi:[0,1] neg_lo:[0,1]",
        "v_pk_mul_f32 v[18:19], v[8:9], 2.0 op_sel_hi:[1,0]",
    ]
    found = run_snippet(target, lines, values).view(F32)
    assert np.array_equal(found[:, 0], a[:, 1] - b[:, 0])
    assert np.array_equal(found[:, 1], a[:, 0] + b[:, 1])
    assert np.array_equal(found[:, 2:], a * F32(2))


@pytest.mark.parametrize("target", ("gfx90a", "gfx942"))
def test_packed_move_takes_each_half_by_op_sel(target: str) -> None:
    values = np.arange(64 * 8, dtype=np.uint32).reshape(64, 8)
    found = run_snippet(target, ["v_pk_mov_b32 v[16:17], v[8:9], v[10:11] op_sel:[1,0]"], values)
    assert found[:, 0].tolist() == values[:, 1].tolist()
    assert found[:, 1].tolist() == values[:, 2].tolist()


@pytest.mark.parametrize("target", TARGETS)
def test_mixed_precision_fma(target: str) -> None:
    values = inputs()
    values[:, 1] = np.random.default_rng(1).standard_normal(256).astype(F32).view(np.uint32)
    (_, high), (low, _) = halves_of(values, 0), halves_of(values, 2)
    middle = values[:, 1].copy().view(F32)
    found = run_snippet(target, ["v_fma_mix_f32 v16, -v8, v9, v10 op_sel:[1,0,0] op_sel_hi:[1,0,1]"], values)
    with np.errstate(all="ignore"):
        wanted = (-high.astype(F64) * middle.astype(F64) + low.astype(F64)).astype(F32)
    result = found[:, 0].copy().view(F32)
    close = np.isclose(result, wanted, rtol=1e-6, equal_nan=True) | (result == wanted)
    assert close.all()


def test_dot_products() -> None:
    values = np.random.default_rng(4).integers(0, 1 << 32, (64, 8), np.uint64).astype(np.uint32)
    found = run_snippet("gfx942", ["v_dot4_i32_i8 v16, v8, v9, v10", "v_dot4_u32_u8 v17, v8, v9, v10"], values)
    for row, result in zip(values, found, strict=True):
        a, b = row[0].tobytes(), row[1].tobytes()
        plain = sum(x * y for x, y in zip(a, b, strict=True)) + int(row[2])
        with_sign = sum(signed(x, 8) * signed(y, 8) for x, y in zip(a, b, strict=True)) + int(row[2])
        assert [int(result[0]), int(result[1])] == [with_sign & 0xFFFFFFFF, plain & 0xFFFFFFFF]
    mixed = run_snippet("gfx1201", ["v_dot4_i32_iu8 v16, v8, v9, v10 neg_lo:[1,0,0]"], values)
    for row, result in zip(values, mixed, strict=True):
        a, b = row[0].tobytes(), row[1].tobytes()
        wanted = sum(signed(x, 8) * y for x, y in zip(a, b, strict=True)) + int(row[2])
        assert int(result[0]) == wanted & 0xFFFFFFFF
