"""Values that move between lanes: DPP, SDWA, swizzles, permutes, lane reads and writes, ballots."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.amdgcn.compiled import TARGETS, WAVE32, WAVE64
from tests.amdgcn.snippets import run_snippet

VALUES = np.zeros((64, 8), np.uint32)
VALUES[:, 0] = np.arange(64) + 100
VALUES[:, 4] = 7  # what v16 holds before
Source = Callable[[int], int | None]


def row(lane: int) -> int:
    return lane & ~15


DPP: dict[str, tuple[Source, tuple[str, ...]]] = {
    "quad_perm:[2,0,3,1]": (lambda lane: (lane & ~3) + (2, 0, 3, 1)[lane & 3], TARGETS),
    "row_shl:3": (lambda lane: lane + 3 if lane % 16 < 13 else None, TARGETS),
    "row_shr:5": (lambda lane: lane - 5 if lane % 16 >= 5 else None, TARGETS),
    "row_ror:4": (lambda lane: row(lane) + (lane - 4) % 16, TARGETS),
    "row_mirror": (lambda lane: row(lane) + 15 - lane % 16, TARGETS),
    "row_half_mirror": (lambda lane: (lane & ~7) + 7 - lane % 8, TARGETS),
    "row_bcast:15": (lambda lane: row(lane) - 1 if lane >= 16 else None, WAVE64),
    "row_bcast:31": (lambda lane: 31 if lane >= 32 else None, WAVE64),
    "wave_shr:1": (lambda lane: lane - 1 if lane else None, WAVE64),
    "row_newbcast:6": (lambda lane: row(lane) + 6, WAVE64),
    "row_share:6": (lambda lane: row(lane) + 6, WAVE32),
    "row_xmask:5": (lambda lane: lane ^ 5, WAVE32),
}


@pytest.mark.parametrize("control", DPP)
def test_dpp(control: str) -> None:
    source, targets = DPP[control]
    for target in targets:
        wave = 64 if target in WAVE64 else 32
        for bound in (0, 1):
            line = f"v_mov_b32_dpp v16, v8 {control} row_mask:0xf bank_mask:0xf"
            found = run_snippet(target, [line + (" bound_ctrl:1" if bound else "")], VALUES)[:, 0]
            for lane in range(64):
                start, place = lane // wave * wave, source(lane % wave)
                missing = 0 if bound else 7
                wanted = missing if place is None else int(VALUES[start + place, 0])
                assert int(found[lane]) == wanted, (target, lane)


@pytest.mark.parametrize("target", TARGETS)
def test_dpp_masks_and_arithmetic(target: str) -> None:
    add = "v_add_u32_dpp" if target in WAVE64 else "v_add_nc_u32_dpp"
    line = f"{add} v16, v8, v8 row_shr:1 row_mask:0xa bank_mask:0x6 bound_ctrl:1"
    found = run_snippet(target, [line], VALUES)[:, 0]
    wave = 64 if target in WAVE64 else 32
    for lane in range(64):
        inside = lane % wave
        enabled = 0xA >> inside // 16 & 1 and 0x6 >> inside % 16 // 4 & 1
        moved = int(VALUES[lane - 1, 0]) if inside % 16 else 0
        assert int(found[lane]) == (moved + int(VALUES[lane, 0]) if enabled else 7)


@pytest.mark.parametrize("target", WAVE32)
def test_dpp8(target: str) -> None:
    found = run_snippet(target, ["v_mov_b32_dpp v16, v8 dpp8:[7,0,6,1,5,2,4,3]"], VALUES)[:, 0]
    order = (7, 0, 6, 1, 5, 2, 4, 3)
    assert found.tolist() == [int(VALUES[(lane & ~7) + order[lane & 7], 0]) for lane in range(64)]


def test_dpp_reads_inactive_lanes_as_missing() -> None:
    lines = ["s_mov_b32 exec_lo, 0xfffffffe", "v_mov_b32_dpp v16, v8 row_shr:1 row_mask:0xf bank_mask:0xf"]
    found = run_snippet("gfx942", lines, VALUES)[:, 0]
    assert found[1] == 7  # lane 0 is inactive
    assert found[2] == VALUES[1, 0]


@pytest.mark.parametrize("target", WAVE64)
def test_sdwa_selects_and_inserts(target: str) -> None:
    values = np.random.default_rng(0).integers(0, 1 << 32, (64, 8), np.uint64).astype(np.uint32)
    lines = [
        "v_add_u32_sdwa v16, v8, sext(v9) dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:BYTE_2",
        "v_or_b32_sdwa v17, v8, v9 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_3 src1_sel:BYTE_0",
        "v_and_b32_sdwa v18, v8, v9 dst_sel:WORD_0 dst_unused:UNUSED_SEXT src0_sel:DWORD src1_sel:DWORD",
        "v_mov_b32_sdwa v19, v8 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:BYTE_1",
    ]
    found = run_snippet(target, lines, values)
    for given, result in zip(values.tolist(), found.tolist(), strict=True):
        a, b = given[0], given[1]
        byte = b >> 16 & 255
        assert result[0] == (a >> 16) + (byte - 256 if byte > 127 else byte) & 0xFFFFFFFF
        assert result[1] == given[5] & 0xFFFF00FF | (a >> 24 | b & 255) << 8
        low = a & b & 0xFFFF
        assert result[2] == (low | 0xFFFF0000 if low & 0x8000 else low)
        assert result[3] == (a >> 8 & 255) << 16


@pytest.mark.parametrize("target", TARGETS)
def test_permutes(target: str) -> None:
    rng = np.random.default_rng(3)
    wave = 64 if target in WAVE64 else 32
    values = VALUES.copy()
    values[:, 1] = 4 * np.concatenate([rng.permutation(wave) for _ in range(64 // wave)])
    lines = ["ds_bpermute_b32 v16, v9, v8 offset:4", "ds_permute_b32 v17, v9, v8"]
    found = run_snippet(target, lines, values)
    for start in range(0, 64, wave):
        order = values[start : start + wave, 1] // 4
        data = values[start : start + wave, 0]
        assert found[start : start + wave, 0].tolist() == data[(order + 1) % wave].tolist()
        pushed = np.zeros(wave, np.uint32)
        pushed[order] = data
        assert found[start : start + wave, 1].tolist() == pushed.tolist()


SWIZZLES: dict[str, Callable[[int], int]] = {
    "swizzle(QUAD_PERM,3,1,0,2)": lambda lane: (lane & ~3) + (3, 1, 0, 2)[lane & 3],
    "swizzle(SWAP,8)": lambda lane: lane ^ 8,
    "swizzle(REVERSE,16)": lambda lane: lane ^ 15,
    "swizzle(BROADCAST,8,5)": lambda lane: (lane & ~7) + 5,
    'swizzle(BITMASK_PERM,"01pi0")': lambda lane: lane & ~31 | 8 | lane & 4 | (lane ^ 2) & 2,
}


@pytest.mark.parametrize("control", SWIZZLES)
def test_swizzles(control: str) -> None:
    for target in TARGETS:
        found = run_snippet(target, [f"ds_swizzle_b32 v16, v8 offset:{control}"], VALUES)[:, 0]
        assert found.tolist() == [int(VALUES[SWIZZLES[control](lane), 0]) for lane in range(64)], target


@pytest.mark.parametrize("target", TARGETS)
def test_lane_reads_and_writes(target: str) -> None:
    lines = [
        "v_readlane_b32 s8, v8, 5",
        "v_readfirstlane_b32 s9, v8",
        "v_mov_b32_e32 v16, s8",
        "v_mov_b32_e32 v17, s9",
        "v_writelane_b32 v18, s8, 3",
    ]
    found = run_snippet(target, lines, VALUES)
    wave = 64 if target in WAVE64 else 32
    for lane in range(64):
        start = lane // wave * wave
        assert found[lane, :2].tolist() == [VALUES[start + 5, 0], VALUES[start, 0]]
        assert found[lane, 2] == (VALUES[start + 5, 0] if lane % wave == 3 else 0)


@pytest.mark.parametrize("target", WAVE32)
def test_permlane16(target: str) -> None:
    lines = [
        "s_mov_b32 s8, 0x76543210",
        "s_mov_b32 s9, 0xfedcba98",
        "v_permlanex16_b32 v16, v8, s8, s9",
        "v_permlane16_b32 v17, v8, s9, s8",
    ]
    found = run_snippet(target, lines, VALUES)
    assert found[:, 0].tolist() == [int(VALUES[lane ^ 16, 0]) for lane in range(64)]
    assert found[:, 1].tolist() == [int(VALUES[lane ^ 8, 0]) for lane in range(64)]


def test_permlane_swaps_of_gfx950() -> None:
    values = VALUES.copy()
    values[:, 1] = np.arange(64) + 500
    lines = ["v_mov_b32_e32 v16, v8", "v_mov_b32_e32 v17, v9", "v_permlane32_swap_b32_e32 v16, v17"]
    lines += ["v_mov_b32_e32 v18, v8", "v_mov_b32_e32 v19, v9", "v_permlane16_swap_b32_e32 v18, v19"]
    found = run_snippet("gfx950", lines, values)
    first, second = values[:, 0], values[:, 1]
    assert found[:, 0].tolist() == [*first[:32], *second[:32]]
    assert found[:, 1].tolist() == [*first[32:], *second[32:]]
    assert found[:, 2].tolist() == [*first[:16], *second[:16], *first[32:48], *second[32:48]]
    assert found[:, 3].tolist() == [*first[16:32], *second[16:32], *first[48:], *second[48:]]


@pytest.mark.parametrize("target", TARGETS)
def test_lane_number_and_ballot(target: str) -> None:
    if target in WAVE64:
        lines = ["v_mbcnt_lo_u32_b32 v2, -1, 0", "v_mbcnt_hi_u32_b32 v16, -1, v2"]
        lines += ["v_cmp_lt_u32_e32 vcc, 40, v16", "v_mov_b32_e32 v17, vcc_lo", "v_mov_b32_e32 v18, vcc_hi"]
    else:
        lines = ["v_mbcnt_lo_u32_b32 v16, -1, 0", "v_cmp_lt_u32_e32 vcc_lo, 20, v16", "v_mov_b32_e32 v17, vcc_lo"]
        lines += ["v_mov_b32_e32 v18, 0"]
    found = run_snippet(target, lines, VALUES)
    wave = 64 if target in WAVE64 else 32
    assert found[:, 0].tolist() == [lane % wave for lane in range(64)]
    limit = 40 if wave == 64 else 20
    mask = sum(1 << lane for lane in range(wave) if lane > limit)
    assert int(found[0, 1]) | int(found[0, 2]) << 32 == mask
