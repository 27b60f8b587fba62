"""The two e4m3 dialects and UE8M0 scales, decoded and encoded from their definitions.

A dialect belongs to a cache, never to a device: the same byte is worth twice as much in `e4m3fn` as in
`e4m3fnuz`. Everything here is computed from the bit layout (4 exponent bits, 3 mantissa bits), not by torch's
own fp8 types, so that the tests can hold one against the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4gen.base.errors import ArgumentError, did_you_mean

SCALE_BIAS = 127
SCALE_NAN = 255
#: largest scale byte a writer emits; 255 means NaN
SCALE_MAX = 254


@dataclass(frozen=True)
class Dialect:
    """One e4m3 encoding.

    `limit` is the largest finite value; `divisor` is what the writers of our own caches divide by (on fnuz
    224, as upstream does, although 240 is representable). `nan_codes[0]` is the code a NaN is written as.
    """

    name: str
    bias: int
    limit: float
    divisor: float
    nan_codes: tuple[int, ...]
    signed_zero: bool


E4M3FN = Dialect("e4m3fn", 7, 448.0, 448.0, (0x7F, 0xFF), True)
E4M3FNUZ = Dialect("e4m3fnuz", 8, 240.0, 224.0, (0x80,), False)
DIALECTS = {dialect.name: dialect for dialect in (E4M3FN, E4M3FNUZ)}


def dialect_of(name: str) -> Dialect:
    """The dialect called `name`.

    Raises:
        ArgumentError: no such dialect.
    """
    if name not in DIALECTS:
        raise ArgumentError(f"unknown FP8 dialect {name!r}{did_you_mean(name, DIALECTS)}")
    return DIALECTS[name]


def decode_table(dialect: Dialect) -> Tensor:
    """The value of each of the 256 codes, float32 [256]."""
    codes = torch.arange(256)
    sign = 1.0 - 2.0 * (codes >> 7).double()
    exponent = (codes >> 3) & 15
    mantissa = (codes & 7).double()
    subnormal = exponent == 0
    significand = torch.where(subnormal, mantissa / 8, 1 + mantissa / 8)
    power = torch.where(subnormal, 1 - dialect.bias, exponent - dialect.bias).double()
    values = sign * significand * torch.exp2(power)
    values[list(dialect.nan_codes)] = torch.nan
    return values.float()


def decode(codes: Tensor, dialect: Dialect) -> Tensor:
    """Values of uint8 codes, float32, same shape; every code is exact."""
    return decode_table(dialect)[codes.to(torch.int64)]


def encode(values: Tensor, dialect: Dialect) -> Tensor:
    """Codes of float32 values: round to nearest even, saturating at the dialect's limit; uint8, same shape.

    Infinities saturate; NaN becomes the dialect's NaN code. Values that round to zero keep their sign only
    where the dialect has a negative zero, because 0x80 is NaN in `e4m3fnuz`.
    """
    magnitude = values.double().abs().clamp(max=dialect.limit)
    exponent = torch.frexp(magnitude).exponent.to(torch.int64) - 1
    exponent = torch.where(magnitude == 0, 1 - dialect.bias, exponent.clamp(min=1 - dialect.bias))
    eighths = torch.round(torch.ldexp(magnitude, 3 - exponent)).to(torch.int64)
    # A significand that rounds up to 16/8 carries into the exponent field by plain addition, as a value below
    # 8/8 (a subnormal) borrows from it.
    codes = ((exponent + dialect.bias - 1) << 3) + eighths
    negative = torch.signbit(values)
    if not dialect.signed_zero:
        negative = negative & (codes != 0)
    codes = codes | (negative.to(torch.int64) << 7)
    codes = torch.where(torch.isnan(values), dialect.nan_codes[0], codes)
    return codes.to(torch.uint8)


def decode_scale(scale_bytes: Tensor) -> Tensor:
    """2^(byte - 127) as float32: byte 0 is the subnormal 2^-127, byte 255 is NaN."""
    power = scale_bytes.double() - SCALE_BIAS
    scales = torch.exp2(power).float()
    return torch.where(scale_bytes == SCALE_NAN, torch.nan, scales)


def encode_scale(scales: Tensor) -> Tensor:
    """The smallest UE8M0 byte whose scale is not below `scales`, read from the float32 bits; uint8.

    A scale that is not a power of two is rounded up to one. Values above 2^127 saturate at byte 254; NaN
    becomes byte 255; zero and everything up to 2^-127 become byte 0.
    """
    bits = scales.float().contiguous().view(torch.int32).to(torch.int64)
    exponent = (bits >> 23) & 0xFF
    mantissa = bits & 0x7FFFFF
    smallest = (exponent == 0) & (mantissa <= 0x400000)
    rounded = torch.where(smallest, 0, exponent + (mantissa != 0).to(torch.int64)).clamp(max=SCALE_MAX)
    return torch.where(torch.isnan(scales), SCALE_NAN, rounded).to(torch.uint8)


def quantize_tiles(values: Tensor, dialect: Dialect, *, floor: float = 1e-4) -> tuple[Tensor, Tensor]:
    """Codes and scale bytes of tiles along the last dimension, as the cache's writers make them.

    Args:
        values: float32 [..., tile].
        dialect: encoding of the cache.
        floor: smallest absolute maximum a tile is treated as having; it keeps an all-zero tile finite.

    Returns:
        uint8 codes [..., tile] and uint8 scale bytes [...]; `decode(codes) * decode_scale(bytes)` is close to
        the input.
    """
    largest = values.float().abs().amax(-1)
    scale_bytes = encode_scale(largest.clamp(min=floor) / dialect.divisor)
    scales = decode_scale(scale_bytes)
    scaled = (values.float() / scales.unsqueeze(-1)).clamp(-dialect.divisor, dialect.divisor)
    codes = encode(scaled, dialect)
    return codes, scale_bytes
