"""Reductions and scans of Triton's interpreter: of bf16 and fp8 by value, and in few steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
import triton.runtime.interpreter as interpreter

from dsv4gen.interpret.handles import is_narrow, narrow, widen


def patch() -> None:
    """Sums, extrema and scans over bf16 and fp8 read values, not bits; functions of a kernel combine whole slices."""
    one_by_one = interpreter.ReduceOps.generic_reduce
    interpreter.ReduceOps.generic_reduce = lambda self, operands: (
        one_by_one(self, operands) if self.axis is None else _reduce_slices(self, operands)
    )
    for owner, names in (
        (interpreter.ReduceOps, ("sum", "min_max")),
        (interpreter.ScanOps, ("cumsum", "cumprod")),
    ):
        for name in names:
            setattr(owner, name, _widened_reduction(getattr(owner, name)))


def _reduce_slices(self: Any, operands: Any) -> list[Any]:
    """`tl.reduce` with a function of the kernel, from the first slice along the axis to the last.

    The interpreter calls the function for each element by itself, a thousand times as often; the order is the same.
    """
    types = [operand.dtype for operand in operands]
    slices = [np.moveaxis(operand.handle.data, self.axis, 0) for operand in operands]
    totals = [self.to_tensor(data[0], dtype) for data, dtype in zip(slices, types, strict=True)]
    for position in range(1, len(slices[0])):
        others = (self.to_tensor(data[position], dtype) for data, dtype in zip(slices, types, strict=True))
        combined = self.combine_fn.fn(*totals, *others)
        results = combined if isinstance(combined, tuple) else (combined,)
        totals = [
            self.to_tensor(_shaped(item, total), dtype)
            for item, total, dtype in zip(results, totals, types, strict=True)
        ]
    if not self.keep_dims:
        return totals
    return [
        self.to_tensor(np.expand_dims(total.handle.data.reshape(slices[0].shape[1:]), self.axis), dtype)
        for total, dtype in zip(totals, types, strict=True)
    ]


def _shaped(result: Any, like: Any) -> Any:
    """A combined value's data in the shape of a slice, which a constant or a scalar may lack."""
    data = result.handle.data if isinstance(result, tl.core.tensor) else result
    return np.broadcast_to(data, like.handle.data.shape) if like.shape else np.asarray(data).item()


def _widened_reduction(plain: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(self: Any, operand: Any, *arguments: Any, **keywords: Any) -> Any:
        operand = operand[0] if isinstance(operand, tuple) else operand
        if not is_narrow(operand.handle):
            return plain(self, operand, *arguments, **keywords)
        shape_type = tl.block_type(tl.float32, list(operand.handle.data.shape))
        result = plain(self, tl.core.tensor(widen(operand.handle), shape_type), *arguments, **keywords)
        if isinstance(result, (tuple, list)):
            return type(result)(_narrowed(self, item, operand.dtype) for item in result)
        return _narrowed(self, result, operand.dtype)

    return reduce


def _narrowed(operation: Any, result: Any, dtype: Any) -> Any:
    """A float32 result back in the operand's type; indices stay integers."""
    if result.dtype != tl.float32:
        return result
    data = narrow(result.handle.data, dtype).data
    return operation.to_tensor(data if result.shape else data.item(), dtype)
