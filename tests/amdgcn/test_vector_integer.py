"""Vector integer instructions against plain Python arithmetic, the same inputs on every target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from tests.amdgcn.compiled import TARGETS, WAVE64
from tests.amdgcn.snippets import run_snippet

MASK32, MASK64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
EDGES = (0, 1, 2, 5, 31, 32, 33, 63, 64, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0xFFFFFF, 0x800000, 0x7FFFFFFF, 0x80000000)
EDGES += (0x80000001, 0xFFFFFFFE, 0xFFFFFFFF, 0x12345678, 0xDEADBEEF)


def signed(x: int, bits: int = 32) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def inputs(threads: int = 256) -> np.ndarray:
    """Every pair of edge values somewhere, the rest random."""
    rng = np.random.default_rng(7)
    values = rng.integers(0, 1 << 32, (threads, 8), np.uint64).astype(np.uint32)
    pairs = [(a, b) for a in EDGES for b in EDGES]
    chosen = rng.permutation(len(pairs))[: threads // 2]
    values[: chosen.size, 0] = [pairs[i][0] for i in chosen]
    values[: chosen.size, 1] = [pairs[i][1] for i in chosen]
    values[: chosen.size, 2] = [EDGES[i % len(EDGES)] for i in range(chosen.size)]
    return values


@dataclass(frozen=True)
class Case:
    """An instruction: its CDNA text, the RDNA mnemonic when it differs, and the expected dword."""

    text: str
    expected: Callable[[int, int, int], int]
    rdna: str = ""
    targets: tuple[str, ...] = TARGETS

    def line(self, target: str) -> str:
        mnemonic, _, operands = self.text.partition(" ")
        return f"{self.rdna or mnemonic} {operands}" if target not in WAVE64 else self.text


def two(mnemonic: str, expected: Callable[[int, int], int], rdna: str = "") -> Case:
    return Case(f"{mnemonic} v16, v8, v9", lambda a, b, _: expected(a, b), rdna)


def three(mnemonic: str, expected: Callable[[int, int, int], int]) -> Case:
    return Case(f"{mnemonic} v16, v8, v9, v10", expected)


def one(mnemonic: str, expected: Callable[[int], int], rdna: str = "") -> Case:
    return Case(f"{mnemonic} v16, v8", lambda a, _b, _c: expected(a), rdna)


def permuted(a: int, b: int, control: int) -> int:
    source = (a << 32 | b).to_bytes(8, "little")
    result = bytearray()
    for pick in control.to_bytes(4, "little"):
        if pick < 8:
            result.append(source[pick])
        elif pick < 12:
            result.append(255 if source[2 * (pick - 8) + 1] & 128 else 0)
        else:
            result.append(0 if pick == 12 else 255)
    return int.from_bytes(result, "little")


def field(x: int, first: int, width: int) -> int:
    return x >> (first & 31) & ((1 << (width & 31)) - 1)


def signed_field(x: int, first: int, width: int) -> int:
    width &= 31
    return signed(signed(x) >> (first & 31), width) & MASK32 if width else 0


def leading_zeros(x: int) -> int:
    return 32 - x.bit_length() if x else MASK32


def trailing_zeros(x: int) -> int:
    return (x & -x).bit_length() - 1 if x else MASK32


def sign_length(x: int) -> int:
    return leading_zeros(x if signed(x) >= 0 else x ^ MASK32)


def low24(x: int) -> int:
    return x & 0xFFFFFF


def middle(a: int, b: int, c: int) -> int:
    return sorted((a, b, c))[1]


CASES = (
    one("v_mov_b32_e32", lambda a: a),
    one("v_not_b32_e32", lambda a: ~a),
    two("v_and_b32_e32", lambda a, b: a & b),
    two("v_or_b32_e32", lambda a, b: a | b),
    two("v_xor_b32_e32", lambda a, b: a ^ b),
    two("v_xnor_b32_e32", lambda a, b: ~(a ^ b)),
    three("v_or3_b32", lambda a, b, c: a | b | c),
    three("v_and_or_b32", lambda a, b, c: a & b | c),
    three("v_bfi_b32", lambda a, b, c: a & b | ~a & c),
    two("v_lshlrev_b32_e32", lambda a, b: b << (a & 31)),
    two("v_lshrrev_b32_e32", lambda a, b: b >> (a & 31)),
    two("v_ashrrev_i32_e32", lambda a, b: signed(b) >> (a & 31)),
    three("v_lshl_or_b32", lambda a, b, c: a << (b & 31) | c),
    three("v_lshl_add_u32", lambda a, b, c: (a << (b & 31)) + c),
    three("v_add_lshl_u32", lambda a, b, c: (a + b & MASK32) << (c & 31)),
    three("v_alignbit_b32", lambda a, b, c: (a << 32 | b) >> (c & 31)),
    three("v_alignbyte_b32", lambda a, b, c: (a << 32 | b) >> 8 * (c & 3)),
    three("v_perm_b32", permuted),
    two("v_add_u32_e32", lambda a, b: a + b, "v_add_nc_u32_e32"),
    two("v_sub_u32_e32", lambda a, b: a - b, "v_sub_nc_u32_e32"),
    two("v_subrev_u32_e32", lambda a, b: b - a, "v_subrev_nc_u32_e32"),
    three("v_add3_u32", lambda a, b, c: a + b + c),
    three("v_xad_u32", lambda a, b, c: (a ^ b) + c),
    two("v_mul_lo_u32", lambda a, b: a * b),
    two("v_mul_hi_u32", lambda a, b: a * b >> 32),
    two("v_mul_hi_i32", lambda a, b: signed(a) * signed(b) >> 32),
    two("v_mul_u32_u24_e32", lambda a, b: low24(a) * low24(b)),
    two("v_mul_hi_u32_u24_e32", lambda a, b: low24(a) * low24(b) >> 32),
    two("v_mul_i32_i24_e32", lambda a, b: signed(a, 24) * signed(b, 24)),
    two("v_mul_hi_i32_i24_e32", lambda a, b: signed(a, 24) * signed(b, 24) >> 32),
    three("v_mad_u32_u24", lambda a, b, c: low24(a) * low24(b) + c),
    three("v_mad_i32_i24", lambda a, b, c: signed(a, 24) * signed(b, 24) + c),
    two("v_min_u32_e32", min),
    two("v_max_u32_e32", max),
    two("v_min_i32_e32", lambda a, b: min(signed(a), signed(b))),
    two("v_max_i32_e32", lambda a, b: max(signed(a), signed(b))),
    three("v_min3_u32", min),
    three("v_max3_u32", max),
    three("v_min3_i32", lambda *x: min(map(signed, x))),
    three("v_max3_i32", lambda *x: max(map(signed, x))),
    three("v_med3_u32", middle),
    three("v_med3_i32", lambda *x: middle(*map(signed, x))),
    three("v_bfe_u32", field),
    three("v_bfe_i32", signed_field),
    two("v_bfm_b32", lambda a, b: ((1 << (a & 31)) - 1) << (b & 31)),
    two("v_bcnt_u32_b32", lambda a, b: a.bit_count() + b),
    one("v_bfrev_b32_e32", lambda a: int(f"{a:032b}"[::-1], 2)),
    one("v_ffbh_u32_e32", leading_zeros, "v_clz_i32_u32_e32"),
    one("v_ffbh_i32_e32", sign_length, "v_cls_i32_e32"),
    one("v_ffbl_b32_e32", trailing_zeros, "v_ctz_i32_b32_e32"),
    three("v_sad_u32", lambda a, b, c: abs(a - b) + c),
    three("v_sad_u16", lambda a, b, c: abs((a & 0xFFFF) - (b & 0xFFFF)) + abs((a >> 16) - (b >> 16)) + c),
    three("v_sad_u8", lambda a, b, c: sum(abs((a >> s & 255) - (b >> s & 255)) for s in (0, 8, 16, 24)) + c),
    three("v_mad_u32_u16", lambda a, b, c: (a & 0xFFFF) * (b & 0xFFFF) + c),
    three("v_mad_i32_i16", lambda a, b, c: signed(a, 16) * signed(b, 16) + c),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.text.split()[0])
def test_integer(case: Case) -> None:
    values = inputs()
    expected = [case.expected(*map(int, row[:3])) & MASK32 for row in values]
    for target in case.targets:
        results = run_snippet(target, [case.line(target)], values)
        assert results[:, 0].tolist() == expected, target


WIDE = (
    ("v_lshlrev_b64", lambda a, b: b << (a & 63), "v_lshlrev_b64_e64"),
    ("v_lshrrev_b64", lambda a, b: b >> (a & 63), ""),
    ("v_ashrrev_i64", lambda a, b: signed(b, 64) >> (a & 63), ""),
)


@pytest.mark.parametrize("case", WIDE, ids=lambda case: case[0])
def test_wide_shifts(case: tuple[str, Callable[[int, int], int], str]) -> None:
    mnemonic, expected, gfx12 = case
    values = inputs()
    wanted = [expected(int(row[0]), int(row[3]) << 32 | int(row[2])) & MASK64 for row in values]
    for target in TARGETS:
        name = gfx12 if gfx12 and target == "gfx1201" else mnemonic
        results = run_snippet(target, [f"{name} v[16:17], v8, v[10:11]"], values)
        assert results[:, :2].copy().view(np.uint64)[:, 0].tolist() == wanted, target


@pytest.mark.parametrize("target", TARGETS)
def test_carries_make_wide_arithmetic(target: str) -> None:
    values = inputs()
    vcc = "vcc" if target in WAVE64 else "vcc_lo"
    add, addc = ("v_add_co_u32_e32", "v_addc_co_u32_e32")
    sub, subb = ("v_sub_co_u32_e32", "v_subb_co_u32_e32")
    if target not in WAVE64:
        add, addc, sub, subb = ("v_add_co_u32", "v_add_co_ci_u32_e32", "v_sub_co_u32", "v_sub_co_ci_u32_e32")
    lines = [
        f"{add} v16, {vcc}, v8, v10",
        f"{addc} v17, {vcc}, v9, v11, {vcc}",
        f"{sub} v18, {vcc}, v8, v10",
        f"{subb} v19, {vcc}, v9, v11, {vcc}",
    ]
    results = run_snippet(target, lines, values).view(np.uint64)
    first, second = (int_pairs(values, column) for column in (0, 2))
    assert results[:, 0].tolist() == [a + b & MASK64 for a, b in zip(first, second, strict=True)]
    assert results[:, 1].tolist() == [a - b & MASK64 for a, b in zip(first, second, strict=True)]


@pytest.mark.parametrize("target", TARGETS)
def test_wide_multiply_add(target: str) -> None:
    values = inputs()
    sink = "s[8:9]" if target in WAVE64 else "null"
    name = "v_mad_co_u64_u32" if target == "gfx1201" else "v_mad_u64_u32"
    lines = [f"{name} v[16:17], {sink}, v8, v9, v[10:11]"]
    results = run_snippet(target, lines, values)[:, :2].copy().view(np.uint64)[:, 0]
    added = int_pairs(values, 2)
    wanted = [int(row[0]) * int(row[1]) + more & MASK64 for row, more in zip(values, added, strict=True)]
    assert results.tolist() == wanted


def int_pairs(values: np.ndarray, column: int) -> list[int]:
    return [int(row[column]) | int(row[column + 1]) << 32 for row in values]


@pytest.mark.parametrize("target", TARGETS)
def test_inactive_lanes_keep_their_registers(target: str) -> None:
    values = inputs()
    holes = 0x0F0F_3C5A_8001_FFFE
    wave = 64 if target in WAVE64 else 32
    if wave == 64:
        lines = [f"s_mov_b32 exec_lo, {holes & MASK32:#x}", f"s_mov_b32 exec_hi, {holes >> 32:#x}"]
        lines += ["v_add_u32_e32 v16, v8, v9", "v_cmp_lt_u32_e32 vcc, v8, v9", "v_mov_b32_e32 v17, vcc_lo"]
    else:
        lines = [f"s_mov_b32 exec_lo, {holes & MASK32:#x}"]
        lines += ["v_add_nc_u32_e32 v16, v8, v9", "v_cmp_lt_u32_e32 vcc_lo, v8, v9", "v_mov_b32_e32 v17, vcc_lo"]
    results = run_snippet(target, lines, values)
    for thread, row in enumerate(values):
        active = holes >> thread % wave & 1
        wanted = int(row[0]) + int(row[1]) & MASK32 if active else int(row[4])
        assert int(results[thread, 0]) == wanted
    # Inactive lanes give 0 in a comparison's mask.
    first_wave = sum(1 << lane for lane in range(32) if holes >> lane & 1 and values[lane, 0] < values[lane, 1])
    assert int(results[1, 1]) == first_wave
