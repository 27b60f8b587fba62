"""Small kernels that probe the interpreter; imported by the worker only."""

from __future__ import annotations

import time

import triton
import triton.language as tl


@triton.jit
def add_one(x, y, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offsets, tl.load(x + offsets, mask=offsets < n) + 1, mask=offsets < n)


@triton.jit
def dot(a, b, c, N: tl.constexpr):
    rows = tl.arange(0, N)
    tile = rows[:, None] * N + rows[None, :]
    tl.store(c + tile, tl.dot(tl.load(a + tile), tl.load(b + tile)))


@triton.jit
def decode(codes, values, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(values + offsets, tl.load(codes + offsets).to(tl.float32))


@triton.jit
def decode_bits(codes, values, FNUZ: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    raw = tl.load(codes + offsets)
    if FNUZ:  # noqa: SIM108 (the compiler types both sides of a conditional expression)
        narrow = raw.to(tl.float8e4b8, bitcast=True)
    else:
        narrow = raw.to(tl.float8e4nv, bitcast=True)
    tl.store(values + offsets, narrow.to(tl.float32))


@triton.jit
def cast(x, y, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(y + offsets, tl.load(x + offsets).to(y.dtype.element_ty))


@triton.jit
def reductions(x, y, N: tl.constexpr):
    values = tl.load(x + tl.arange(0, N))
    tl.store(y, tl.sum(values, axis=0).to(tl.float32))
    tl.store(y + 1, tl.max(values, axis=0).to(tl.float32))
    tl.store(y + 2, tl.min(values, axis=0).to(tl.float32))
    running = tl.cumsum(values, axis=0)
    tl.store(y + 3 + tl.arange(0, N), running.to(tl.float32))


@triton.jit
def arithmetic(x, y, z, N: tl.constexpr):
    offsets = tl.arange(0, N)
    left = tl.load(x + offsets)
    right = tl.load(y + offsets)
    tl.store(z + offsets, left + right)
    tl.store(z + N + offsets, left * right)
    tl.store(z + 2 * N + offsets, tl.where(left > right, left, -right))
    tl.store(z + 3 * N + offsets, left.to(tl.int32).to(tl.bfloat16))


@triton.jit
def division(x, quotient, remainder, divisor, N: tl.constexpr):
    offsets = tl.arange(0, N)
    values = tl.load(x + offsets)
    tl.store(quotient + offsets, values // divisor)
    tl.store(remainder + offsets, values % divisor)


@triton.jit
def running_total(x, y, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(x + offsets, mask=offsets < n, other=0.0)
    tl.store(y, tl.sum(total, axis=0))


@triton.jit
def count_up(counter, n):
    tl.atomic_add(counter + n, 1)


@triton.jit
def merge_pairs(largest, total, other_largest, other_total):
    top = tl.maximum(largest, other_largest)
    return top, total * 0.5 + other_total


@triton.jit
def reduce_pairs(x, y, z, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr, KEEP: tl.constexpr):
    places = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    values = tl.load(x + places)
    largest, total = tl.reduce((values, values.to(tl.float32)), AXIS, merge_pairs, keep_dims=KEEP)
    at = tl.arange(0, ROWS if AXIS == 1 else COLUMNS)
    if KEEP:
        at = tl.expand_dims(at, AXIS)
    tl.store(y + at, largest)
    tl.store(z + at, total)


@triton.jit
def reduce_line(x, y, COUNT: tl.constexpr):
    values = tl.load(x + tl.arange(0, COUNT))
    _, total = tl.reduce((values, values), 0, merge_pairs)
    tl.store(y, total)


@triton.jit
def not_a_number(x, y):
    one = tl.full((1,), 1.0, tl.float32)
    tl.store(y + tl.arange(0, 1), tl.maximum(one, tl.load(x + tl.arange(0, 1))))


def sleep(seconds):
    time.sleep(seconds)


def die():
    import os
    import signal

    os.kill(os.getpid(), signal.SIGSEGV)


def refuse():
    from dsv4gen.base.errors import ArgumentError

    raise ArgumentError("out has stride 2", remedy="pass a contiguous tensor")


def total(x):
    print("kernels may print")
    return float(x.double().sum())
