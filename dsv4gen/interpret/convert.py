"""Exact casts between Triton's float types on numpy bit patterns, through torch's own casts.

The interpreter keeps bf16 as uint16 and fp8 as uint8. Its own conversion truncates to bf16, loses carries and
NaN, and reads the fp8 NaN codes as numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

#: Triton's name of a float type -> torch dtype
TORCH_TYPES = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5": torch.float8_e5m2,
    "fp8e5b16": torch.float8_e5m2fnuz,
}
#: types the interpreter holds as raw integers
NARROW = frozenset(("bf16", "fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16"))

_SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_TORCH_BITS = {8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}
_UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def supported(source: Any, target: Any) -> bool:
    """Whether both Triton scalar types have a torch twin."""
    return str(source) in TORCH_TYPES and str(target) in TORCH_TYPES


def convert(bits: np.ndarray[Any, Any], source: Any, target: Any) -> np.ndarray[Any, Any]:
    """Bit patterns of Triton scalar type `source` as unsigned bit patterns of `target`, same shape.

    Rounds to nearest even; saturates where torch does (to e4m3).
    """
    width = source.primitive_bitwidth
    flat = np.ascontiguousarray(bits).reshape(-1).view(_SIGNED[width])
    values = torch.from_numpy(flat.copy()).view(TORCH_TYPES[str(source)])
    wanted = TORCH_TYPES[str(target)]
    cast = values.to(wanted) if wanted is torch.float64 else values.to(torch.float32).to(wanted)
    pattern = cast.view(_TORCH_BITS[target.primitive_bitwidth]).numpy()
    result: np.ndarray[Any, Any] = pattern.view(_UNSIGNED[target.primitive_bitwidth]).reshape(bits.shape)
    return result
