"""MFMA and WMMA: products of random matrices through the documented lane layouts, against NumPy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from dsv4gen.emulate.amdgcn import Kernel
from tests.amdgcn.compiled import wave_of
from tests.amdgcn.snippets import _DESCRIPTOR, module_text
from tests.amdgcn.test_convert import table

F32 = np.float32


def encode(matrix: np.ndarray, kind: str, *, fnuz: bool = False) -> np.ndarray:
    """The bits of small integers in a format (all formats here represent them exactly)."""
    if kind in ("f32", "xf32"):
        return matrix.astype(F32).view(np.uint32)
    if kind == "f16":
        return matrix.astype(np.float16).view(np.uint16)
    if kind == "bf16":
        return (matrix.astype(F32).view(np.uint32) >> 16).astype(np.uint16)
    if kind in ("i8", "u8"):
        return matrix.astype(np.int64).astype(np.uint8)
    if kind in ("fp8", "bf8"):
        codes = {float(value): code for code, value in reversed(list(enumerate(table(kind, fnuz=fnuz))))}
        return np.array([[codes[float(x)] for x in row] for row in matrix], np.uint8)
    if kind == "fp4":
        sizes = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
        return np.array([[sizes.index(abs(x)) | (8 if x < 0 else 0) for x in row] for row in matrix], np.uint8)
    raise AssertionError(kind)


WIDTH = {"f32": 32, "xf32": 32, "f16": 16, "bf16": 16, "i8": 8, "u8": 8, "fp8": 8, "bf8": 8, "fp4": 4}


def pack(elements: np.ndarray, width: int) -> np.ndarray:
    """uint [lanes, elements] of `width` bits -> uint32 [lanes, registers]."""
    lanes, count = elements.shape
    result = np.zeros((lanes, -(-count * width // 32)), np.uint32)
    for index in range(count):
        result[:, index * width // 32] |= elements[:, index].astype(np.uint32) << np.uint32(index * width % 32)
    return result


@dataclass(frozen=True)
class Mfma:
    """One instruction: its targets and name, the block size, and the formats."""

    targets: tuple[str, ...]
    name: str
    size: int
    depth: int
    blocks: int
    first: str
    second: str = ""
    result: str = "f32"
    suffix: str = ""


NEW = ("gfx942", "gfx950")
MFMA = (
    Mfma(("gfx90a",), "v_mfma_f32_16x16x16bf16_1k", 16, 16, 1, "bf16"),
    Mfma(("gfx90a",), "v_mfma_f32_32x32x8f16", 32, 8, 1, "f16"),
    Mfma(("gfx90a",), "v_mfma_f32_32x32x4f16", 32, 4, 2, "f16"),
    Mfma(("gfx90a",), "v_mfma_f32_4x4x4f16", 4, 4, 16, "f16"),
    Mfma(("gfx90a",), "v_mfma_f32_16x16x8bf16", 16, 8, 1, "bf16"),
    Mfma(("gfx90a",), "v_mfma_i32_16x16x16i8", 16, 16, 1, "i8", result="i32"),
    Mfma(("gfx90a",), "v_mfma_f32_32x32x1f32", 32, 1, 2, "f32"),
    Mfma(NEW, "v_mfma_f32_16x16x16_bf16", 16, 16, 1, "bf16"),
    Mfma(NEW, "v_mfma_f32_32x32x8_f16", 32, 8, 1, "f16"),
    Mfma(NEW, "v_mfma_f32_16x16x4_f32", 16, 4, 1, "f32"),
    Mfma(NEW, "v_mfma_f32_16x16x4_4b_f16", 16, 4, 4, "f16"),
    Mfma(("gfx942",), "v_mfma_f32_16x16x8_xf32", 16, 8, 1, "xf32"),
    Mfma(NEW, "v_mfma_f32_16x16x32_fp8_bf8", 16, 32, 1, "fp8", "bf8"),
    Mfma(NEW, "v_mfma_f32_32x32x16_fp8_fp8", 32, 16, 1, "fp8", "fp8"),
    Mfma(NEW, "v_mfma_i32_32x32x16_i8", 32, 16, 1, "i8", result="i32"),
    Mfma(("gfx950",), "v_mfma_f32_16x16x32_f16", 16, 32, 1, "f16"),
    Mfma(("gfx950",), "v_mfma_f32_32x32x16_bf16", 32, 16, 1, "bf16"),
    Mfma(("gfx950",), "v_mfma_i32_16x16x64_i8", 16, 64, 1, "i8", result="i32"),
    Mfma(("gfx950",), "v_mfma_f32_16x16x128_f8f6f4", 16, 128, 1, "fp8", "fp8"),
    Mfma(("gfx950",), "v_mfma_f32_16x16x128_f8f6f4", 16, 128, 1, "fp4", "bf8", suffix=" cbsz:4 blgp:1"),
    Mfma(("gfx950",), "v_mfma_f32_32x32x64_f8f6f4", 32, 64, 1, "bf8", "fp4", suffix=" cbsz:1 blgp:4"),
)


def matrix_kernel(target: str, instruction: str, a: int, b: int, c: int) -> Kernel:
    """A kernel that loads a + b + c dwords per lane, multiplies, and stores the result over c dwords.

    A starts at v8, B behind it, C behind B at an even register; D overwrites C.
    """
    cdna = wave_of(target) == 64
    load, store = ("global_load_dword", "global_store_dword") if cdna else ("global_load_b32", "global_store_b32")
    lines = [
        "s_load_dwordx4 s[4:7], s[0:1], 0x0" if cdna else "s_load_b128 s[4:7], s[0:1], 0x0",
        "v_lshlrev_b32_e32 v1, 2, v0",
    ]
    # Inputs and results are [register][lane]: 256 bytes apart.
    for index in range(a + b + c):
        register = 8 + index if index < a + b else accumulator(a, b) + index - a - b
        lines += [f"{load} v{register}, v1, s[4:5]", "s_add_u32 s4, s4, 256", "s_addc_u32 s5, s5, 0"]
    lines += ["s_nop 0", instruction, "s_nop 0"]
    for index in range(c):
        lines += [f"{store} v1, v{accumulator(a, b) + index}, s[6:7]", "s_add_u32 s6, s6, 256", "s_addc_u32 s7, s7, 0"]
    code = "\n".join(f"\t{line}" for line in [*lines, "s_endpgm"])
    extra = "\t\t.amdhsa_accum_offset 128" if cdna else "\t\t.amdhsa_wavefront_size32 1"
    kernel = f"\t.text\nmatrix:\n{code}\n" + _DESCRIPTOR.format(name="matrix", lds=0, scratch=0, extra=extra)
    return Kernel.from_assembly(module_text(target, [kernel], ["matrix"]), "matrix")


def accumulator(a: int, b: int) -> int:
    return (8 + a + b + 1) // 2 * 2


def multiply(target: str, instruction: str, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Run on register contents uint32 [lanes, registers]; returns D's registers."""
    lanes = wave_of(target)
    kernel = matrix_kernel(target, instruction, a.shape[1], b.shape[1], c.shape[1])
    rows = np.zeros((a.shape[1] + b.shape[1] + c.shape[1], 64), np.uint32)
    rows[:, :lanes] = np.concatenate([a, b, c], axis=1).T
    results = np.zeros((c.shape[1], 64), np.uint32)
    outcome = kernel.run(1, lanes, [rows, results])
    assert outcome.problems == ()
    return results[:, :lanes].T.copy()


def registers(a: int, b: int, c: int) -> str:
    """The operands `D, A, B, C` of a matrix instruction for these sizes."""
    start = accumulator(a, b)
    spans = ((start, c), (8, a), (8 + a, b), (start, c))
    return ", ".join(f"v[{first}:{first + size - 1}]" if size > 1 else f"v{first}" for first, size in spans)


def mfma_place(size: int, r: int, lane: int) -> tuple[int, int, int]:
    """(block, row, column) of register r of a lane."""
    if size == 32:
        return r // 16, r % 16 // 4 * 8 + lane // 32 * 4 + r % 4, lane % 32
    if size == 16:
        return r // 4, lane // 16 * 4 + r % 4, lane % 16
    return lane // 4, r, lane % 4


@pytest.mark.parametrize("case", MFMA, ids=lambda case: f"{case.name}{case.suffix.replace(' ', '-')}")
def test_mfma(case: Mfma) -> None:
    rng = np.random.default_rng(31)
    second = case.second or case.first
    # Values that every format has: fp4 has no 5, so multiples of 0.5 up to 2, doubled for integers.
    values = np.array([-2.0, -1.0, 0.0, 1.0, 2.0, 3.0])
    a = rng.choice(values, (case.blocks, case.size, case.depth))
    b = rng.choice(values, (case.blocks, case.depth, case.size))
    c = rng.integers(-9, 9, (case.blocks, case.size, case.size)).astype(np.float64)
    each = case.size * case.depth * case.blocks // 64
    groups = 64 // case.size // case.blocks
    lanes = np.arange(64)
    group = lanes // case.size
    block, k = group // groups, group % groups * each
    depth = k[:, None] + np.arange(each)
    a_lanes = a[block[:, None], (lanes % case.size)[:, None], depth]
    b_lanes = b[block[:, None], depth, (lanes % case.size)[:, None]]
    count = case.size * case.size * case.blocks // 64
    places = [[mfma_place(case.size, r, lane) for r in range(count)] for lane in lanes]
    c_lanes = np.array([[c[place] for place in row] for row in places])
    bits = c_lanes.astype(np.int32).view(np.uint32) if case.result == "i32" else c_lanes.astype(F32).view(np.uint32)
    for target in case.targets:
        fnuz = target == "gfx942"
        a_bits = pack(encode(a_lanes, case.first, fnuz=fnuz), WIDTH[case.first])
        b_bits = pack(encode(b_lanes, second, fnuz=fnuz), WIDTH[second])
        operands = registers(a_bits.shape[1], b_bits.shape[1], count)
        found = multiply(target, f"{case.name} {operands}{case.suffix}", a_bits, b_bits, bits)
        wanted = a @ b + c
        expected = np.array([[wanted[place] for place in row] for row in places])
        view = found.view(np.int32) if case.result == "i32" else found.view(F32)
        assert np.array_equal(view.astype(np.float64), expected), target


def test_scaled_mfma_of_gfx950() -> None:
    """Every lane brings 32 values of k and an e8m0 scale for them, in the byte that op_sel names."""
    rng = np.random.default_rng(5)
    a = rng.choice([-1.0, 0.5, 2.0, 4.0], (16, 128))
    b = rng.choice([-1.0, 0.5, 2.0, 4.0], (128, 16))
    scale_a, scale_b = rng.integers(120, 135, (16, 4)), rng.integers(120, 135, (4, 16))
    lanes = np.arange(64)
    depth = (lanes // 16 * 32)[:, None] + np.arange(32)
    a_bits = pack(encode(a[(lanes % 16)[:, None], depth], "fp8"), 8)
    b_bits = pack(encode(b[depth, (lanes % 16)[:, None]], "fp8"), 8)
    scales = (scale_a[lanes % 16, lanes // 16] << 8 | scale_b[lanes // 16, lanes % 16] << 16).astype(np.uint32)
    # The scales travel in one more input register: part of B's span here.
    b_all = np.concatenate([b_bits, scales[:, None]], axis=1)
    start = accumulator(8, 9)
    scale_register = 8 + 8 + 8
    instruction = (
        f"v_mfma_scale_f32_16x16x128_f8f6f4 v[{start}:{start + 3}], v[8:15], v[16:23], v[{start}:{start + 3}], "
        f"v{scale_register}, v{scale_register} op_sel:[1,0,0] op_sel_hi:[0,1,0]"
    )
    found = multiply("gfx950", instruction, a_bits, b_all, np.zeros((64, 4), np.uint32)).view(F32)
    scaled_a = a * np.repeat(2.0 ** (scale_a - 127.0), 32, axis=1)
    scaled_b = b * np.repeat(2.0 ** (scale_b - 127.0), 32, axis=0)
    wanted = scaled_a @ scaled_b
    expected = np.array([[wanted[mfma_place(16, r, lane)[1:]] for r in range(4)] for lane in lanes])
    assert np.allclose(found, expected, rtol=1e-6)


def test_wide_mfma_in_fp64() -> None:
    rng = np.random.default_rng(6)
    a, b, c = rng.standard_normal((16, 4)), rng.standard_normal((4, 16)), rng.standard_normal((16, 16))
    lanes = np.arange(64)
    a_bits = a[lanes % 16, lanes // 16].view(np.uint32).reshape(64, 2)
    b_bits = b[lanes // 16, lanes % 16].view(np.uint32).reshape(64, 2)
    places = [[(4 * r + lane // 16, lane % 16) for r in range(4)] for lane in lanes]
    c_lanes = np.array([[c[place] for place in row] for row in places])
    instruction = f"v_mfma_f64_16x16x4f64 {registers(2, 2, 8)}"
    found = multiply("gfx90a", instruction, a_bits, b_bits, c_lanes.view(np.uint32).reshape(64, 8))
    wanted = a @ b + c
    expected = np.array([[wanted[place] for place in row] for row in places])
    assert np.allclose(found.view(np.float64), expected, rtol=1e-14)


def test_constant_addend_and_broadcast_blocks() -> None:
    rng = np.random.default_rng(7)
    a, b = rng.integers(-3, 3, (4, 16, 4)), rng.integers(-3, 3, (4, 4, 16))
    lanes = np.arange(64)
    a_bits = pack(encode(a[lanes // 16, lanes % 16], "f16"), 16)
    b_bits = pack(encode(b.transpose(0, 2, 1)[lanes // 16, lanes % 16], "f16"), 16)
    spans = registers(2, 2, 16).split(", ")
    instruction = f"v_mfma_f32_16x16x4_4b_f16 {spans[0]}, {spans[1]}, {spans[2]}, 1.0 cbsz:2 abid:3"
    found = multiply("gfx942", instruction, a_bits, b_bits, np.zeros((64, 16), np.uint32)).view(F32)
    wanted = a[3] @ b + 1.0
    expected = [[wanted[mfma_place(16, r, lane)] for r in range(16)] for lane in lanes]
    assert found.tolist() == expected


WMMA = (
    ("gfx1100", "v_wmma_f32_16x16x16_f16", 16, "f16", "f16", "f32"),
    ("gfx1100", "v_wmma_f32_16x16x16_bf16", 16, "bf16", "bf16", "f32"),
    ("gfx1100", "v_wmma_i32_16x16x16_iu8", 16, "i8", "i8", "i32"),
    ("gfx1201", "v_wmma_f32_16x16x16_f16", 16, "f16", "f16", "f32"),
    ("gfx1201", "v_wmma_f32_16x16x16_bf16", 16, "bf16", "bf16", "f32"),
    ("gfx1201", "v_wmma_f32_16x16x16_fp8_bf8", 16, "fp8", "bf8", "f32"),
    ("gfx1201", "v_wmma_i32_16x16x16_iu8", 16, "i8", "u8", "i32"),
)


@pytest.mark.parametrize("case", WMMA, ids=lambda case: f"{case[0]}-{case[1]}")
def test_wmma(case: tuple[str, str, int, str, str, str]) -> None:
    target, name, depth, first, second, result = case
    rng = np.random.default_rng(41)
    a = rng.integers(-3, 4, (16, depth)).astype(np.float64)
    b = rng.integers(0 if second == "u8" else -3, 4, (depth, 16)).astype(np.float64)
    c = rng.integers(-9, 9, (16, 16)).astype(np.float64)
    lanes = np.arange(32)
    new = target == "gfx1201"
    each = depth // 2 if new else depth
    k = (lanes // 16 * each if new else 0 * lanes)[:, None] + np.arange(each)
    a_bits = pack(encode(a[(lanes % 16)[:, None], k], first), WIDTH[first])
    b_bits = pack(encode(b[k, (lanes % 16)[:, None]], second), WIDTH[second])
    places = [[(lane // 16 * 8 + r if new else 2 * r + lane // 16, lane % 16) for r in range(8)] for lane in lanes]
    c_lanes = np.array([[c[place] for place in row] for row in places])
    integers = result == "i32"
    bits = c_lanes.astype(np.int32).view(np.uint32) if integers else c_lanes.astype(F32).view(np.uint32)
    signs = f" neg_lo:[1,{int(second == 'i8')},0]" if integers else ""
    operands = registers(a_bits.shape[1], b_bits.shape[1], 8)
    found = multiply(target, f"{name} {operands}{signs}", a_bits, b_bits, bits)
    wanted = a @ b + c
    view = found.view(np.int32) if integers else found.view(F32)
    assert view.astype(np.float64).tolist() == [[wanted[place] for place in row] for row in places]


@pytest.mark.parametrize("target", ("gfx1100", "gfx1201"))
def test_wmma_with_half_results(target: str) -> None:
    rng = np.random.default_rng(43)
    a, b = rng.integers(-3, 4, (16, 16)).astype(float), rng.integers(-3, 4, (16, 16)).astype(float)
    lanes = np.arange(32)
    new = target == "gfx1201"
    each = 8 if new else 16
    k = (lanes // 16 * each if new else 0 * lanes)[:, None] + np.arange(each)
    a_bits = pack(encode(a[(lanes % 16)[:, None], k], "f16"), 16)
    b_bits = pack(encode(b[k, (lanes % 16)[:, None]], "f16"), 16)
    count = 4 if new else 8
    operands = registers(a_bits.shape[1], b_bits.shape[1], count)
    suffix = "" if new else " op_sel:[0,0,1]"
    zeros = np.zeros((32, count), np.uint32)
    found = multiply(target, f"v_wmma_f16_16x16x16_f16 {operands}{suffix}", a_bits, b_bits, zeros)
    halves = found.view(np.float16).reshape(32, count, 2)
    wanted = a @ b
    for lane in range(32):
        for r in range(8):
            row = lane // 16 * 8 + r if new else 2 * r + lane // 16
            value = halves[lane, r // 2, r % 2] if new else halves[lane, r, 1]
            assert value == wanted[row, lane % 16]
    if not new:
        assert (halves[:, :, 0] == 0).all()  # the low halves keep the addend's bits
