"""Global, buffer, flat and scratch memory and LDS: sizes, extensions, halves, atomics, addressing forms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.amdgcn.compiled import TARGETS, WAVE64, wave_of
from tests.amdgcn.snippets import launch, run_snippet, snippet_kernel
from tests.amdgcn.test_vector_integer import MASK32, signed

RANDOM = np.random.default_rng(21).integers(0, 1 << 32, (64, 8), np.uint64).astype(np.uint32)
BYTES = RANDOM.view(np.uint8).reshape(64, 32)

# In a snippet v0 is the thread; 32 bytes of input per thread start at s[4:5], 16 bytes of results at s[6:7].
ADDRESS = "v_lshlrev_b32_e32 v2, 5, v0"


def wait(target: str) -> str:
    return "s_wait_loadcnt_dscnt 0x0" if target == "gfx1201" else "s_waitcnt vmcnt(0) lgkmcnt(0)"


LOADS: dict[str, tuple[str, Callable[[bytes], int]]] = {
    "ubyte": ("u8", lambda raw: raw[5]),
    "sbyte": ("i8", lambda raw: signed(raw[5], 8)),
    "ushort": ("u16", lambda raw: raw[5] | raw[6] << 8),
    "sshort": ("i16", lambda raw: signed(raw[5] | raw[6] << 8, 16)),
    "dword": ("b32", lambda raw: int.from_bytes(raw[5:9], "little")),
}


@pytest.mark.parametrize("kind", LOADS)
@pytest.mark.parametrize("space", ("global", "flat"))
def test_loads_extend(kind: str, space: str) -> None:
    rdna, expected = LOADS[kind]
    wanted = [expected(row.tobytes()) & MASK32 for row in BYTES]
    for target in TARGETS:
        name = f"{space}_load_{kind if target in WAVE64 else rdna}"
        if space == "global":
            access = f"{name} v16, v2, s[4:5] offset:5"
            lines = [ADDRESS, access, wait(target)]
        else:
            carry = "vcc" if target in WAVE64 else "vcc_lo"
            add = "v_add_co_u32_e32" if target in WAVE64 else "v_add_co_u32"
            addc = "v_addc_co_u32_e32" if target in WAVE64 else "v_add_co_ci_u32_e32"
            lines = [ADDRESS, "v_add_u32_e32 v2, 5, v2" if target in WAVE64 else "v_add_nc_u32_e32 v2, 5, v2"]
            lines += [f"{add} v2, {carry}, s4, v2", "v_mov_b32_e32 v3, s5", f"{addc} v3, {carry}, 0, v3, {carry}"]
            lines += [f"{name} v16, v[2:3]", wait(target)]
        assert run_snippet(target, lines, RANDOM)[:, 0].tolist() == wanted, target


@pytest.mark.parametrize("target", TARGETS)
def test_halves_are_kept(target: str) -> None:
    if target in WAVE64:
        low, high = "global_load_short_d16", "global_load_ubyte_d16_hi"
    else:
        low, high = "global_load_d16_b16", "global_load_d16_hi_u8"
    lines = [ADDRESS, f"{low} v16, v2, s[4:5] offset:2", f"{high} v17, v2, s[4:5] offset:3", wait(target)]
    found = run_snippet(target, lines, RANDOM)
    for raw, given, result in zip(BYTES, RANDOM.tolist(), found.tolist(), strict=True):
        assert result[0] == given[4] & 0xFFFF0000 | int(raw[2]) | int(raw[3]) << 8
        assert result[1] == given[5] & 0xFFFF | int(raw[3]) << 16


@pytest.mark.parametrize("target", TARGETS)
def test_wide_loads_and_stores(target: str) -> None:
    load = "global_load_dwordx3" if target in WAVE64 else "global_load_b96"
    lines = [ADDRESS, f"{load} v[16:18], v2, s[4:5] offset:8", wait(target)]
    assert run_snippet(target, lines, RANDOM)[:, :3].tolist() == RANDOM[:, 2:5].tolist()


STORES = {"byte": ("b8", 1, 0), "short": ("b16", 2, 0), "short_d16_hi": ("d16_hi_b16", 2, 16), "dwordx2": ("b64", 8, 0)}


@pytest.mark.parametrize("kind", STORES)
def test_stores_write_their_bytes_only(kind: str) -> None:
    rdna, size, shift = STORES[kind]
    for target in TARGETS:
        name = f"global_store_{kind if target in WAVE64 else rdna}"
        data = "v[8:9]" if size == 8 else "v8"
        # The results' final store overwrites what was stored, so read it back.
        load = "global_load_dwordx4" if target in WAVE64 else "global_load_b128"
        lines = ["v_lshlrev_b32_e32 v2, 4, v0", f"{name} v2, {data}, s[6:7] offset:4"]
        lines += [f"{load} v[16:19], v2, s[6:7]", wait(target)]
        found = run_snippet(target, lines, RANDOM).view(np.uint8).reshape(64, 16)
        for given, raw in zip(RANDOM, found, strict=True):
            value = (int(given[0]) | int(given[1]) << 32) >> shift
            wanted = bytes(4) + (value & (1 << 8 * size) - 1).to_bytes(size, "little")
            assert raw.tobytes() == wanted + bytes(16 - len(wanted)), target


@pytest.mark.parametrize("target", TARGETS)
def test_buffer_loads_stop_at_the_end(target: str) -> None:
    word3 = "0x27000" if target in WAVE64 else "0x31004000"
    load, store = ("dwordx2", "dword") if target in WAVE64 else ("b64", "b32")
    none = "0" if target != "gfx1201" else "null"
    lines = [
        *("s_mov_b32 s8, s4", "s_and_b32 s9, s5, 0xffff", "s_movk_i32 s10, 0x200", f"s_mov_b32 s11, {word3}"),
        *(ADDRESS, f"buffer_load_{load} v[16:17], v2, s[8:11], {none} offen offset:12"),
        *("v_lshlrev_b32_e32 v3, 3, v0", f"buffer_load_{load} v[18:19], v3, s[8:11], {none} offen offset:4"),
        wait(target),
        "s_movk_i32 s10, 0x10",
        f"buffer_store_{store} v8, v2, s[8:11], {none} offen offset:0x80",
    ]
    found = run_snippet(target, lines, RANDOM)
    flat = RANDOM.reshape(-1)
    for lane in range(64):
        # 0x200 bytes are 128 dwords; each dword is checked by itself.
        for column, dword in ((0, 8 * lane + 3), (1, 8 * lane + 4), (2, 2 * lane + 1), (3, 2 * lane + 2)):
            assert found[lane, column] == (flat[dword] if dword < 128 else 0)


ATOMICS: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "add": ("add_u32", lambda old, x: old + x),
    "sub": ("sub_u32", lambda old, x: old - x),
    "and": ("and_b32", lambda old, x: old & x),
    "or": ("or_b32", lambda old, x: old | x),
    "xor": ("xor_b32", lambda old, x: old ^ x),
    "swap": ("swap_b32", lambda _old, x: x),
    "umax": ("max_u32", max),
    "smin": ("min_i32", lambda old, x: min(signed(old), signed(x))),
    "inc": ("inc_u32", lambda old, x: 0 if old >= x else old + 1),
    "dec": ("dec_u32", lambda old, x: x if old == 0 or old > x else old - 1),
}


@pytest.mark.parametrize("kind", ATOMICS)
def test_global_atomics_return_the_old_value(kind: str) -> None:
    rdna, function = ATOMICS[kind]
    for target in TARGETS:
        name = f"global_atomic_{kind if target in WAVE64 else rdna}"
        flag = {"gfx90a": "glc", "gfx1100": "glc", "gfx1201": "th:TH_ATOMIC_RETURN"}.get(target, "sc0")
        # All lanes of a row of 16 update one result dword, in lane order.
        lines = ["v_lshrrev_b32_e32 v2, 4, v0", "v_lshlrev_b32_e32 v2, 4, v2"]
        lines += [f"{name} v16, v2, v8, s[6:7] {flag}", wait(target)]
        lines += ["s_wait_storecnt 0x0" if target == "gfx1201" else "s_nop 0"]
        load = "global_load_dword" if target in WAVE64 else "global_load_b32"
        lines += [f"{load} v17, v2, s[6:7]", wait(target)]
        wave = wave_of(target)
        found = run_snippet(target, lines, RANDOM[:wave])
        for group in range(wave // 16):
            value = 0
            for lane in range(16 * group, 16 * group + 16):
                assert int(found[lane, 0]) == value, (target, lane)
                value = function(value, int(RANDOM[lane, 0])) & MASK32
            assert int(found[16 * group, 1]) == value


@pytest.mark.parametrize("target", TARGETS)
def test_wide_and_float_atomics(target: str) -> None:
    values = RANDOM.copy()
    floats = np.arange(64, dtype=np.float32)
    values[:, 4] = floats.view(np.uint32)
    cdna = target in WAVE64
    wide = "global_atomic_add_x2" if cdna else "global_atomic_add_u64"
    load = "global_load_dwordx2" if cdna else "global_load_b64"
    lines = ["v_mov_b32_e32 v2, 0", f"{wide} v2, v[8:9], s[6:7]", "global_atomic_add_f32 v2, v12, s[6:7] offset:32"]
    if target == "gfx1201":
        lines.append("s_wait_storecnt 0x0")
    lines += [wait(target), f"{load} v[16:17], v2, s[6:7]", f"{load} v[18:19], v2, s[6:7] offset:32", wait(target)]
    values = values[: wave_of(target)]
    found = run_snippet(target, lines, values)
    total = sum(int(row[0]) | int(row[1]) << 32 for row in values) & (1 << 64) - 1
    assert int(found[0, 0]) | int(found[0, 1]) << 32 == total
    assert found[0, 2:3].view(np.float32)[0] == floats[: wave_of(target)].sum()


def test_compare_and_swap() -> None:
    values = np.zeros((64, 4), np.uint32)
    values[:, 0] = np.arange(64) + 1  # new value
    values[:, 1] = np.arange(64)  # expected old value: the chain succeeds in lane order
    lines = ["v_mov_b32_e32 v2, 0", "global_atomic_cmpswap v16, v2, v[8:9], s[6:7] sc0", wait("gfx942")]
    found = run_snippet("gfx942", lines, values)
    assert found[:, 0].tolist() == list(range(64))
    lds = ["v_mov_b32_e32 v2, 0", "v_mov_b32_e32 v3, 0", "ds_write_b32 v2, v3"]
    lds += ["ds_cmpst_rtn_b32 v16, v2, v9, v8", "s_waitcnt lgkmcnt(0)"]
    assert run_snippet("gfx942", lds, values, lds=16)[:, 0].tolist() == list(range(64))
    rdna = ["v_mov_b32_e32 v2, 0", "v_mov_b32_e32 v3, 0", "ds_store_b32 v2, v3"]
    rdna += ["ds_cmpstore_rtn_b32 v16, v2, v8, v9", "s_waitcnt lgkmcnt(0)"]
    first_wave = run_snippet("gfx1100", rdna, values[:32], lds=16)[:32, 0]
    assert first_wave.tolist() == list(range(32))


@pytest.mark.parametrize("target", TARGETS)
def test_lds_sizes_and_pairs(target: str) -> None:
    read, write = ("ds_read", "ds_write") if target in WAVE64 else ("ds_load", "ds_store")
    read2, write2 = (
        ("ds_read2_b32", "ds_write2_b32") if target in WAVE64 else ("ds_load_2addr_b32", "ds_store_2addr_b32")
    )
    lines = [
        ADDRESS,
        f"{write}_b128 v2, v[8:11]",
        f"{write2} v2, v12, v13 offset0:4 offset1:5",
        f"{write}_b8 v2, v14 offset:24",
        f"{write}_b8_d16_hi v2, v14 offset:25",
        f"{write}_b16 v2, v15 offset:26",
        wait(target),
        f"{read}_b64 v[16:17], v2 offset:8",
        f"{read2} v[18:19], v2 offset0:5 offset1:6",
        wait(target),
    ]
    found = run_snippet(target, lines, RANDOM, lds=64 * 32)
    for given, result in zip(RANDOM.tolist(), found.tolist(), strict=True):
        assert result[:3] == [given[2], given[3], given[5]]
        assert result[3] == given[6] & 255 | (given[6] >> 16 & 255) << 8 | (given[7] & 0xFFFF) << 16


@pytest.mark.parametrize("target", TARGETS)
def test_lds_atomics(target: str) -> None:
    write = "ds_write_b32" if target in WAVE64 else "ds_store_b32"
    read = "ds_read_b32" if target in WAVE64 else "ds_load_b32"
    lines = [
        *("v_mov_b32_e32 v2, 0", "v_mov_b32_e32 v3, 0", f"{write} v2, v3", f"{write} v2, v3 offset:4"),
        *("ds_add_rtn_u32 v16, v2, v8", "ds_max_u32 v2, v9 offset:4", wait(target)),
        *(f"{read} v17, v2 offset:4", f"{read} v18, v2", wait(target)),
    ]
    wave = wave_of(target)
    found = run_snippet(target, lines, RANDOM[:wave], lds=16)
    column = RANDOM[:wave, 0].astype(np.uint64)
    before = (np.cumsum(column) - column) % (1 << 32)
    assert found[:wave, 0].tolist() == before.tolist()
    assert found[0, 1] == RANDOM[:wave, 1].max()
    assert int(found[0, 2]) == int(column.sum()) & MASK32


@pytest.mark.parametrize("target", ("gfx942", "gfx950", "gfx1100", "gfx1201"))
def test_scratch_is_private(target: str) -> None:
    store, load = ("dword", "dword") if target in WAVE64 else ("b32", "b32")
    lines = [
        "v_and_b32_e32 v2, 12, v8",
        f"scratch_store_{store} off, v9, off offset:16",
        f"scratch_store_{store} v2, v10, off",
        f"scratch_load_{load} v16, off, off offset:16",
        f"scratch_load_{load} v17, v2, off",
        wait(target),
    ]
    found = run_snippet(target, lines, RANDOM, scratch=32)
    assert found[:, 0].tolist() == RANDOM[:, 1].tolist()
    assert found[:, 1].tolist() == RANDOM[:, 2].tolist()


def test_transposing_reads_of_gfx950() -> None:
    """In each group of 16 lanes the loads are a matrix's rows of 16 columns; lane i gets column i."""
    for bits, dwords in ((16, 2), (8, 2), (4, 2)):
        lines = [
            *("v_lshlrev_b32_e32 v2, 3, v0", "ds_write_b64 v2, v[8:9]", "s_waitcnt lgkmcnt(0)"),
            *(f"ds_read_b64_tr_b{bits} v[16:17], v2", "s_waitcnt lgkmcnt(0)"),
        ]
        found = run_snippet("gfx950", lines, RANDOM, lds=512)
        elements = 64 // bits
        for group in range(4):
            raw = RANDOM[16 * group : 16 * group + 16, :dwords].copy().view(np.uint64)[:, 0].tolist()
            whole = [x >> bits * i & (1 << bits) - 1 for x in raw for i in range(elements)]
            for lane in range(16):
                column = [whole[16 * r + lane] for r in range(elements)]
                wanted = sum(x << bits * i for i, x in enumerate(column))
                result = found[16 * group + lane]
                assert int(result[0]) | int(result[1]) << 32 == wanted, (bits, lane)


@pytest.mark.parametrize("target", ("gfx942", "gfx950"))
def test_loads_into_lds(target: str) -> None:
    lines = [
        *("s_mov_b32 m0, 64", ADDRESS, "global_load_lds_dword v2, s[4:5] offset:4", "s_waitcnt vmcnt(0)"),
        *("v_lshlrev_b32_e32 v3, 2, v0", "ds_read_b32 v16, v3 offset:68", "s_waitcnt lgkmcnt(0)"),
    ]
    assert run_snippet(target, lines, RANDOM, lds=512)[:, 0].tolist() == RANDOM[:, 1].tolist()


def test_buffer_loads_into_lds() -> None:
    lines = [
        *("s_mov_b32 m0, 0", "s_mov_b32 s8, s4", "s_and_b32 s9, s5, 0xffff", "s_movk_i32 s10, 0x400"),
        *("s_mov_b32 s11, 0x27000", ADDRESS, "buffer_load_dwordx4 v2, s[8:11], 0 offen lds", "s_waitcnt vmcnt(0)"),
        *("v_lshlrev_b32_e32 v3, 4, v0", "ds_read_b128 v[16:19], v3", "s_waitcnt lgkmcnt(0)"),
    ]
    found = run_snippet("gfx950", lines, RANDOM, lds=1024)
    wanted = RANDOM[:, :4].copy()
    wanted[32:] = 0  # beyond the buffer's 0x400 bytes
    assert found.tolist() == wanted.tolist()


def test_counters_of_memory() -> None:
    lines = ["v_lshlrev_b32_e32 v2, 2, v0", "ds_write_b32 v2, v0", "v_lshlrev_b32_e32 v3, 7, v0"]
    kernel = snippet_kernel("gfx942", [*lines, "ds_write_b32 v3, v0"], lds=64 * 128)
    _, result = launch(kernel, RANDOM)
    # Stride 128 bytes: all 32 lanes of a group meet in one bank. The dense write has no conflict.
    assert result.counters["lds_bank_conflicts"] == 2 * 31
    # Inputs: 64 * 32 bytes, 16 lines of 128 bytes, touched by two loads; results: 64 * 16 bytes, 8 lines.
    assert result.counters["cache_lines"] == 16 + 16 + 8
