"""Matrix instructions: what their names mean. The lane layouts are in runtime/matrix.h."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: numbers of runtime/matrix.h `Format`
FORMATS = {
    name: number
    for number, name in enumerate(
        (
            *("f32", "f16", "bf16", "i8", "fp8", "bf8", "fp8_fnuz", "bf8_fnuz"),
            *("fp6", "bf6", "fp4", "f64", "xf32", "u8", "i4", "u4", "i32"),
        )
    )
}
#: format numbers of cbsz and blgp in f8f6f4 instructions
SCALED_FORMATS = ("fp8", "bf8", "fp6", "bf6", "fp4")

MATRIX_STEPS = {
    ".mfma_f32": "mfma_f32",
    ".mfma_f64": "mfma_f64",
    ".mfma_i32": "mfma_i32",
    ".mfma_scaled": "mfma_scaled",
    ".wmma_float": "wmma_float",
    ".wmma_integer": "wmma_integer",
}

_MFMA = re.compile(
    r"v_mfma_(?:scale_)?(f32|f64|i32)_(\d+)x\d+x(\d+)_?(?:(\d+)b_)?"
    r"(f8f6f4|(?:fp8|bf8)_(?:fp8|bf8)|xf32|f64|f32|bf16|f16|i8)(_1k)?"
)
_WMMA = re.compile(r"v_wmma_(f32|f16|bf16|i32)_16x16x(\d+)_(f16|bf16|(?:fp8|bf8)_(?:fp8|bf8)|iu8|iu4)")
#: elements per lane where a name does not tell the number of blocks (gfx90a's spelling)
_OLD_ELEMENTS = {"f32": 1, "f16": 4, "bf16": 2, "bf16_1k": 4, "i8": 4, "f64": 1}


@dataclass(frozen=True)
class MatrixShape:
    """`size` x `size` results from `depth` products each, in `blocks` independent blocks."""

    result: str
    size: int
    depth: int
    blocks: int
    format_a: str
    format_b: str

    def packed(self) -> int:
        """The number runtime/matrix.h takes apart."""
        first, second = FORMATS[self.format_a], FORMATS[self.format_b]
        return self.size | self.depth << 6 | self.blocks << 15 | first << 20 | second << 25 | FORMATS[self.result] << 30


def mfma_shape(name: str, *, fnuz: bool) -> MatrixShape | None:
    """The shape of a `v_mfma_*` instruction, or None for other names; f8f6f4 formats come with the operands."""
    match = _MFMA.fullmatch(name)
    if match is None:
        return None
    result, size, depth, blocks, kind, suffix = match.groups()
    first, _, second = kind.partition("_")
    if kind == "f8f6f4":
        first = "fp8"
    elif fnuz and first in ("fp8", "bf8"):
        first, second = f"{first}_fnuz", f"{second}_fnuz"
    explicit = f"x{depth}_" in name
    count = int(blocks or 1)
    if not explicit:
        count = _OLD_ELEMENTS[kind + (suffix or "")] * 64 // (int(size) * int(depth))
    return MatrixShape(result, int(size), int(depth), count, first, second or first)


def wmma_shape(name: str, signed: tuple[int, ...]) -> MatrixShape | None:
    """The shape of a `v_wmma_*` instruction, or None; `signed` tells which integer factors are signed."""
    match = _WMMA.fullmatch(name)
    if match is None:
        return None
    result, depth, kind = match.groups()
    first, _, second = kind.partition("_")
    if kind in ("iu8", "iu4"):
        width = kind[2:]
        first, second = (f"{'i' if sign else 'u'}{width}" for sign in signed[:2])
    return MatrixShape(result, 16, int(depth), 1, first, second or first)
