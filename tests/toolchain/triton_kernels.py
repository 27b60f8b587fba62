"""Kernels for the offline Triton compile; imported only by its worker."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def scale_rows(x, y, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + columns, mask=columns < n, other=0.0)
    total = tl.sum(values, axis=0)
    tl.store(y + row * stride + columns, values * total, mask=columns < n)


@triton.jit
def convert(x, y, BLOCK: tl.constexpr, KIND: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    tl.store(y + columns, tl.load(x + columns).to(KIND))


@triton.jit
def contract(x, y, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + columns)
    tl.store(y + columns, values * values + tl.load(y + columns))


@triton.jit
def large_tile(x, y, SIZE: tl.constexpr):
    rows = tl.arange(0, SIZE)[:, None]
    columns = tl.arange(0, SIZE)[None, :]
    tile = tl.load(x + rows * SIZE + columns)
    tl.store(y + rows * SIZE + columns, tl.trans(tile))


@triton.jit
def helper_with_a_mistake(value):
    return value + name_that_nobody_defined  # noqa: F821


@triton.jit
def broken(x, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    tl.store(x + columns, helper_with_a_mistake(tl.load(x + columns)))
