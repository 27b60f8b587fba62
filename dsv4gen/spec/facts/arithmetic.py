"""What is computed with which precision: matrix units, FP8, bf16."""

from __future__ import annotations

from typing import Literal

from dsv4gen.spec.models import Distinct, Model, Positive, Tile


class DotFloor(Model):
    """Smallest (M, N, K) of `tl.dot` that reaches the matrix unit; null where none does.

    Attributes:
        bf16: for bf16 inputs.
        fp8: for FP8 inputs.
    """

    bf16: Tile | None
    fp8: Tile | None


class Matrix(Model):
    """Matrix instructions: shapes (M, N, K) per input type, and the default precision of an fp32 dot.

    Attributes:
        family: the instructions.
        bf16: shapes with bf16 inputs.
        fp8: shapes with FP8 inputs.
        dot_floor: smallest (M, N, K) of `tl.dot` that reaches them.
        fp32_default: precision of an fp32 dot unless told otherwise.
        fp8_sums: products of FP8 inputs are added in f32, or in some 13 bits (short); null without FP8.
    """

    family: Literal["mfma", "wmma", "mma", "wgmma", "tcgen05"]
    bf16: Distinct[Tile]
    fp8: Distinct[Tile]
    dot_floor: DotFloor
    fp32_default: Literal["ieee", "tf32", "xf32"]
    fp8_sums: Literal["f32", "short"] | None


class MaxFinite(Model):
    """Largest finite value per dialect.

    Attributes:
        e4m3fn: of the OCP dialect.
        e4m3fnuz: of the dialect without negative zero.
    """

    e4m3fn: Positive | None = None
    e4m3fnuz: Positive | None = None


class NativeSince(Model):
    """First Triton version whose casts are native; null where they are emulated or refused.

    Attributes:
        encode: for casts to FP8.
        decode: for casts from FP8.
    """

    encode: str | None
    decode: str | None


class TritonFp8(Model):
    """Type names Triton takes without error, emulated ones included.

    Attributes:
        accepted: the type names.
        native_since: first versions whose casts are native.
    """

    accepted: Distinct[str]
    native_since: NativeSince


class Fp8(Model):
    """Native FP8 dialects. `mode_bit`: conversions saturate only after a mode bit is set.

    Attributes:
        convert: dialects with conversion instructions.
        matrix: dialects the matrix instructions read.
        max_finite: largest finite value per dialect.
        overflow: what a conversion of a larger value gives.
        mode_bit: whether saturation needs the mode bit.
        triton: what Triton accepts.
    """

    convert: Distinct[Literal["e4m3fn", "e4m3fnuz"]]
    matrix: Distinct[Literal["e4m3fn", "e4m3fnuz"]]
    max_finite: MaxFinite
    overflow: Literal["nan", "saturate"]
    mode_bit: bool
    triton: TritonFp8


class Bf16(Model):
    """How f32 becomes bf16, and whether bf16 values multiply as they are or are widened to f32 for it.

    Attributes:
        convert: an instruction, or a sequence of integer operations.
        multiply: as they are, or widened.
    """

    convert: Literal["native", "software"]
    multiply: Literal["native", "widened"]
