"""Kernel arguments in words, for running any code object: `f32[4096]`, `i32[512]=-1`, `u32:7`, `null`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from dsv4gen.base.errors import UsageError

_DTYPES = {
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "u16": np.uint16,
    "f16": np.float16,
    "i32": np.int32,
    "u32": np.uint32,
    "f32": np.float32,
    "i64": np.int64,
    "u64": np.uint64,
    "f64": np.float64,
}
_ARRAY = re.compile(r"(\w+)\[(\d+)\](?:=(.+))?")
_SCALAR = re.compile(r"(\w+):(.+)")


def parse_argument(word: str, seed: int) -> Any:
    """An array (random normal or small integers from `seed`, or all equal), a sized number, or None.

    Raises:
        UsageError: words of another form, an unknown type, a value that is no number.
    """
    if word == "null":
        return None
    array, scalar = _ARRAY.fullmatch(word), _SCALAR.fullmatch(word)
    found = array or scalar
    if found is None or found[1] not in _DTYPES:
        raise UsageError(
            f"{word!r} is no argument",
            remedy=f"write f32[4096], i32[512]=-1, u32:7 or null; types: {', '.join(_DTYPES)}",
        )
    dtype = _DTYPES[found[1]]
    try:
        if scalar is not None:
            return _number(dtype, scalar[2])
        return _array(dtype, int(found[2]), found[3], seed)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{word!r}: {error}") from error


def _number(dtype: Any, text: str) -> Any:
    if dtype().dtype.kind == "f":
        return dtype(float(text))
    value, limits = int(text, 0), np.iinfo(dtype)
    if not limits.min <= value <= limits.max:
        raise ValueError(f"{value} is outside {limits.min}..{limits.max}")
    return dtype(value)


def _array(dtype: Any, size: int, fill: str | None, seed: int) -> Any:
    if fill is not None:
        return np.full(size, float(fill) if dtype().dtype.kind == "f" else int(fill, 0), dtype)
    generator = np.random.default_rng(seed)
    if dtype().dtype.kind == "f":
        return generator.standard_normal(size).astype(dtype)
    return generator.integers(0, 100, size).astype(dtype)
