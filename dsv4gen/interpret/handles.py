"""Values of the interpreter: bf16 and fp8, which it keeps as raw integers, to real numbers and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter

from dsv4gen.interpret import convert

Handle = interpreter.TensorHandle


def is_narrow(handle: Any) -> bool:
    """Whether a handle holds bf16 or fp8 as raw integers; a comparison keeps the type but holds bools."""
    return str(handle.dtype.scalar) in convert.NARROW and handle.data.dtype != np.bool_


def widen(handle: Any) -> Any:
    """A handle with bf16 and fp8 values as real float32; others unchanged."""
    if not is_narrow(handle):
        return handle
    bits = convert.convert(handle.data, handle.dtype.scalar, tl.float32)
    return Handle(bits.view(np.float32), tl.float32)


def narrow(data: Any, dtype: Any) -> Any:
    """float32 values as a handle of a bf16 or fp8 type."""
    values = np.asarray(data, dtype=np.float32)
    return Handle(convert.convert(values, tl.float32, dtype.scalar), dtype.scalar)
