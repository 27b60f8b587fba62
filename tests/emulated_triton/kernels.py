"""Small kernels for the worker's own tests."""

import torch
import triton
import triton.language as tl


@triton.jit
def scaled(source, out, count, factor, wide, flag: tl.constexpr, BLOCK: tl.constexpr):
    """out = source * factor + wide, negative where `flag` is set."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(source + at, mask=at < count, other=0.0) * factor + wide
    tl.store(out + at, -values if flag else values, mask=at < count)


@triton.jit
def unmasked(source, out, BLOCK: tl.constexpr):
    """Copies a whole block, whatever fits."""
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(source + at))


@triton.jit
def summed(source, out, BLOCK: tl.constexpr):
    """The sum of a block: several warps meet in LDS."""
    tl.store(out, tl.sum(tl.load(source + tl.arange(0, BLOCK)), axis=0))


def twice(*, source, out):
    """Two launches through memory that the launcher makes itself."""
    half = torch.empty_like(source)
    scaled[(triton.cdiv(source.numel(), 64),)](source, half, source.numel(), 2.0, 1 << 33, flag=False, BLOCK=64)
    scaled[(triton.cdiv(source.numel(), 64),)](half, out, source.numel(), 0.5, -(1 << 32), flag=True, BLOCK=64)
    return "done"
