"""Scalar instructions: results and the scalar condition, widths over 32, branches, EXEC masks, calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from tests.amdgcn.compiled import TARGETS, WAVE64
from tests.amdgcn.snippets import run_snippet
from tests.amdgcn.test_vector_integer import EDGES, MASK32, leading_zeros, sign_length, signed, trailing_zeros


@dataclass(frozen=True)
class Case:
    """`name dst, a, b`: the expected dword and SCC (None: unchanged, which the test sees as the preset 1)."""

    name: str
    expected: Callable[[int, int], int]
    scc: Callable[[int, int, int], bool] | None
    gfx12: str = ""
    rdna: str = ""
    sources: int = 2

    def mnemonic(self, target: str) -> str:
        if target == "gfx1201" and self.gfx12:
            return self.gfx12
        return self.rdna if self.rdna and target not in WAVE64 else self.name


def not_zero(_a: int, _b: int, r: int) -> bool:
    return r != 0


def scalar_field(x: int, control: int) -> int:
    return x >> (control & 31) & ((1 << (control >> 16 & 127)) - 1) & MASK32


def scalar_signed_field(x: int, control: int) -> int:
    width = control >> 16 & 127
    return signed(signed(x) >> (control & 31), min(width, 32)) if width else 0


CASES = (
    Case("s_and_b32", lambda a, b: a & b, not_zero),
    Case("s_or_b32", lambda a, b: a | b, not_zero),
    Case("s_xor_b32", lambda a, b: a ^ b, not_zero),
    Case("s_andn2_b32", lambda a, b: a & ~b, not_zero, rdna="s_and_not1_b32"),
    Case("s_orn2_b32", lambda a, b: a | ~b, not_zero, rdna="s_or_not1_b32"),
    Case("s_nand_b32", lambda a, b: ~(a & b), not_zero),
    Case("s_xnor_b32", lambda a, b: ~(a ^ b), not_zero),
    Case("s_add_u32", lambda a, b: a + b, lambda a, b, _r: a + b > MASK32, "s_add_co_u32"),
    Case("s_sub_u32", lambda a, b: a - b, lambda a, b, _r: b > a, "s_sub_co_u32"),
    Case("s_add_i32", lambda a, b: a + b, lambda a, b, r: signed(a) + signed(b) != signed(r), "s_add_co_i32"),
    Case("s_sub_i32", lambda a, b: a - b, lambda a, b, r: signed(a) - signed(b) != signed(r), "s_sub_co_i32"),
    Case("s_addc_u32", lambda a, b: a + b + 1, lambda a, b, _r: a + b + 1 > MASK32, "s_add_co_ci_u32"),
    Case("s_subb_u32", lambda a, b: a - b - 1, lambda a, b, _r: b + 1 > a, "s_sub_co_ci_u32"),
    Case("s_mul_i32", lambda a, b: a * b, None),
    Case("s_mul_hi_u32", lambda a, b: a * b >> 32, None),
    Case("s_mul_hi_i32", lambda a, b: signed(a) * signed(b) >> 32, None),
    Case("s_min_u32", min, lambda a, b, _r: a < b),
    Case("s_max_u32", max, lambda a, b, _r: a >= b),
    Case("s_min_i32", lambda a, b: min(signed(a), signed(b)), lambda a, b, _r: signed(a) < signed(b)),
    Case("s_max_i32", lambda a, b: max(signed(a), signed(b)), lambda a, b, _r: signed(a) >= signed(b)),
    Case("s_lshl_b32", lambda a, b: a << (b & 31), not_zero),
    Case("s_lshr_b32", lambda a, b: a >> (b & 31), not_zero),
    Case("s_ashr_i32", lambda a, b: signed(a) >> (b & 31), not_zero),
    Case("s_lshl2_add_u32", lambda a, b: (a << 2) + b, lambda a, b, _r: (a << 2) + b > MASK32),
    Case("s_bfe_u32", scalar_field, not_zero),
    Case("s_bfe_i32", scalar_signed_field, not_zero),
    Case("s_bfm_b32", lambda a, b: ((1 << (a & 31)) - 1) << (b & 31), None),
    Case("s_cselect_b32", lambda a, _b: a, None),
    Case("s_pack_ll_b32_b16", lambda a, b: a & 0xFFFF | b << 16, None),
    Case("s_pack_hh_b32_b16", lambda a, b: a >> 16 | b & 0xFFFF0000, None),
    Case("s_absdiff_i32", lambda a, b: abs(signed(a) - signed(b)), not_zero),
    Case("s_not_b32", lambda a, _b: ~a, not_zero, sources=1),
    Case("s_bcnt1_i32_b32", lambda a, _b: a.bit_count(), not_zero, sources=1),
    Case("s_brev_b32", lambda a, _b: int(f"{a:032b}"[::-1], 2), None, sources=1),
    Case("s_ff1_i32_b32", lambda a, _b: trailing_zeros(a), None, rdna="s_ctz_i32_b32", sources=1),
    Case("s_flbit_i32_b32", lambda a, _b: leading_zeros(a), None, rdna="s_clz_i32_u32", sources=1),
    Case("s_flbit_i32", lambda a, _b: sign_length(a), None, rdna="s_cls_i32", sources=1),
    Case("s_sext_i32_i8", lambda a, _b: signed(a, 8), None, sources=1),
    Case("s_sext_i32_i16", lambda a, _b: signed(a, 16), None, sources=1),
    Case("s_abs_i32", lambda a, _b: abs(signed(a)), not_zero, sources=1),
)


def scalar_results(target: str, pairs: Sequence[tuple[int, int]], lines: Sequence[str]) -> list[tuple[int, int]]:
    """(s10, SCC) after the lines, for each pair in s8, s9; SCC is 1 before them. One pair per lane."""
    count = len(pairs)
    code = []
    for lane, (a, b) in enumerate(pairs):
        code += [f"s_mov_b32 s8, {a:#x}", f"s_mov_b32 s9, {b:#x}", "s_cmp_eq_u32 s8, s8", *lines]
        code += ["s_cselect_b32 s11, 1, 0", f"v_writelane_b32 v16, s10, {lane}", f"v_writelane_b32 v17, s11, {lane}"]
    found = run_snippet(target, code, np.zeros((64, 1), np.uint32))
    return [(int(found[lane, 0]), int(found[lane, 1])) for lane in range(count)]


def edge_pairs() -> list[tuple[int, int]]:
    rng = np.random.default_rng(12)
    chosen = [(int(a), int(b)) for a, b in rng.choice(EDGES, (28, 2))]
    return [*chosen, (0x80000000, 0x80000000), (5, 0x200003), (0xFFFFFFFF, 1), (0, 0)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_results_and_condition(case: Case) -> None:
    pairs = edge_pairs()
    wanted = []
    for a, b in pairs:
        result = case.expected(a, b) & MASK32
        wanted.append((result, int(case.scc(a, b, result)) if case.scc else 1))
    for target in TARGETS:
        operands = "s10, s8, s9" if case.sources == 2 else "s10, s8"
        assert scalar_results(target, pairs, [f"{case.mnemonic(target)} {operands}"]) == wanted, target


RELATIONS = {
    "eq": lambda a, b: a == b,
    "lg": lambda a, b: a != b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
}


@pytest.mark.parametrize("relation", RELATIONS)
def test_compares(relation: str) -> None:
    pairs = edge_pairs()
    function = RELATIONS[relation]
    for target in ("gfx90a", "gfx1201"):
        for kind, convert in (("u32", int), ("i32", signed)):
            found = scalar_results(target, pairs, ["s_mov_b32 s10, 0", f"s_cmp_{relation}_{kind} s8, s9"])
            assert [scc for _, scc in found] == [int(function(convert(a), convert(b))) for a, b in pairs]


def test_wide_operations() -> None:
    lines = [
        "s_mov_b32 s12, 0x89abcdef",
        "s_mov_b32 s13, 0x01234567",
        "s_lshl_b64 s[14:15], s[12:13], 36",
        "s_ashr_i64 s[16:17], s[12:13], 4",
        "s_andn2_b64 s[18:19], s[12:13], s[14:15]",
        "s_bcnt1_i32_b64 s20, s[12:13]",
        "s_bfe_u64 s[22:23], s[12:13], 0x280008",
        *(f"v_writelane_b32 v16, s{14 + index}, {index}" for index in range(10)),
    ]
    found = run_snippet("gfx942", lines, np.zeros((64, 1), np.uint32))[:10, 0].tolist()
    value = 0x0123456789ABCDEF
    shifted = value << 36 & (1 << 64) - 1
    wanted = [shifted, value >> 4, value & ~shifted]
    assert [found[i] | found[i + 1] << 32 for i in (0, 2, 4)] == wanted
    assert found[6] == value.bit_count()
    assert found[8] | found[9] << 32 == value >> 8 & (1 << 40) - 1


@pytest.mark.parametrize("target", TARGETS)
def test_loop_and_divergent_branch(target: str) -> None:
    """Each lane adds its lane number to itself as often as its input says, with the loop compilers emit."""
    values = np.zeros((256, 8), np.uint32)
    values[:, 0] = np.random.default_rng(1).integers(1, 20, 256)
    if target in WAVE64:
        exec_, save, vcc = "exec", "s[8:9]", "vcc"
        mov, andn2, or_, size = "s_mov_b64", "s_andn2_b64", "s_or_b64", "e32"
        add, sub = "v_add_u32_e32", "v_subrev_u32_e32"
    else:
        exec_, save, vcc = "exec_lo", "s8", "vcc_lo"
        mov, andn2, or_, size = "s_mov_b32", "s_and_not1_b32", "s_or_b32", "e32"
        add, sub = "v_add_nc_u32_e32", "v_subrev_nc_u32_e32"
    lines = [
        f"{mov} {save}, {exec_}",
        "v_mov_b32_e32 v16, 0",
        "v_mov_b32_e32 v2, v8",
        "\nLOOP:",
        f"{add} v16, v0, v16",
        f"{sub} v2, 1, v2",
        f"v_cmp_eq_u32_{size} {vcc}, 0, v2",
        f"{andn2} {exec_}, {exec_}, {vcc}",
        "s_cbranch_execnz LOOP",
        f"{or_} {exec_}, {exec_}, {save}",
    ]
    found = run_snippet(target, lines, values)
    assert found[:, 0].tolist() == (np.arange(256) * values[:, 0]).tolist()


@pytest.mark.parametrize("target", TARGETS)
def test_saveexec(target: str) -> None:
    if target in WAVE64:
        lines = ["s_mov_b32 s8, 0xff00", "s_mov_b32 s9, 0x3", "s_and_saveexec_b64 s[10:11], s[8:9]"]
        lines += ["v_mov_b32_e32 v16, 1", "s_xor_b64 exec, exec, s[10:11]", "v_mov_b32_e32 v16, 2"]
    else:
        lines = ["s_mov_b32 s8, 0xff00", "s_and_saveexec_b32 s10, s8"]
        lines += ["v_mov_b32_e32 v16, 1", "s_xor_b32 exec_lo, exec_lo, s10", "v_mov_b32_e32 v16, 2"]
    found = run_snippet(target, lines, np.zeros((64, 1), np.uint32))[:, 0]
    wave = 64 if target in WAVE64 else 32
    mask = 0x3_0000_FF00 if wave == 64 else 0xFF00
    assert found.tolist() == [1 if mask >> lane % wave & 1 else 2 for lane in range(64)]
