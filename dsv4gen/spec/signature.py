"""Argument types of a Triton kernel, read from the tensor table of its op."""

from __future__ import annotations

from dsv4gen.spec.family import FamilySpec, Op

#: dtype of the specs -> Triton's name; FP8 data travels as bytes.
TRITON_TYPES = {
    "f32": "fp32",
    "f16": "fp16",
    "bf16": "bf16",
    "f8e4m3fn": "u8",
    "f8e4m3fnuz": "u8",
    "u8": "u8",
    "i32": "i32",
    "u32": "u32",
    "i64": "i64",
    "bool": "i1",
}

#: Triton specialises pointers and integers that are a multiple of this.
DIVISIBILITY = 16


def triton_signature(family: FamilySpec, op: Op, options: dict[str, str]) -> dict[str, str]:
    """Type per parameter in order: `*fp32`, `i32` for axes, `i64` for strides.

    `options` holds the chosen value of each option that a dtype names.
    """
    signature: dict[str, str] = {}
    for name in op.params:
        if name in op.tensors:
            dtype = op.tensors[name].dtype
            signature[name] = f"*{TRITON_TYPES[options.get(dtype, dtype)]}"
        elif name in op.scalars:
            signature[name] = TRITON_TYPES[op.scalars[name].dtype]
        else:
            signature[name] = "i32" if name in family.axes else "i64"
    return signature


def divisible_pointers(op: Op) -> tuple[str, ...]:
    """Tensor parameters whose address is a multiple of DIVISIBILITY bytes."""
    return tuple(name for name in op.params if name in op.tensors and op.tensors[name].align % DIVISIBILITY == 0)
