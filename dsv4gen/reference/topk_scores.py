"""Rows of scores that break top-k kernels, by name.

Each generator gets the row's length, k and a seeded generator, and returns float32 [length]. Names say what is
special; bins are those of a histogram over the leading 12 bits of the fp16-rounded score.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import torch
from torch import Generator, Tensor

Maker = Callable[[int, int, Generator], Tensor]

HALF_MAX = 65504.0
#: the smallest fp32 that rounds to infinity in fp16
HALF_OVERFLOW = 65520.0
_INFINITY = float("inf")
_NAN = float("nan")


def _normal(mean: float, deviation: float) -> Maker:
    return lambda length, k, generator: torch.randn(length, generator=generator) * deviation + mean


def _uniform(low: float, high: float) -> Maker:
    return lambda length, k, generator: torch.rand(length, generator=generator) * (high - low) + low


def _constant(value: float) -> Maker:
    return lambda length, k, generator: torch.full((length,), value)


def _choice(*values: float) -> Maker:
    def make(length: int, k: int, generator: Generator) -> Tensor:  # noqa: ARG001
        return torch.tensor(values)[torch.randint(len(values), (length,), generator=generator)]

    return make


def _relu_sum(length: int, k: int, generator: Generator) -> Tensor:  # noqa: ARG001
    """What the indexer makes: 64 heads' rectified products, weighted and summed."""
    heads = torch.randn(64, length, generator=generator).relu()
    return (torch.rand(64, generator=generator)[:, None] * heads).sum(0)


def _zeros(share: float) -> Maker:
    def make(length: int, k: int, generator: Generator) -> Tensor:  # noqa: ARG001
        row = torch.randn(length, generator=generator).abs()
        return torch.where(torch.rand(length, generator=generator) < share, 0.0, row)

    return make


def _log_uniform(low: float, high: float) -> Maker:
    def make(length: int, k: int, generator: Generator) -> Tensor:  # noqa: ARG001
        exponent = torch.rand(length, generator=generator, dtype=torch.float64)
        return (low * (high / low) ** exponent).float()

    return make


def _from_bits(patterns: Tensor) -> Tensor:
    return patterns.to(torch.int32).view(torch.float32)


def _random_bits(length: int, k: int, generator: Generator) -> Tensor:  # noqa: ARG001
    return _from_bits(torch.randint(-(2**31), 2**31, (length,), generator=generator))


def _subnormal(length: int, k: int, generator: Generator) -> Tensor:  # noqa: ARG001
    magnitude = torch.randint(0, 1 << 23, (length,), generator=generator)
    sign = torch.randint(0, 2, (length,), generator=generator) * -(2**31)
    return _from_bits(magnitude + sign)


def _one_bin(length: int, k: int, generator: Generator) -> Tensor:  # noqa: ARG001
    """1 + i * 2^-23 in random order: up to 2^17 distinct scores of one bin."""
    order = torch.randperm(length, generator=generator).double()
    return (1 + order * 2.0**-23).float()


def _one_negative_bin(length: int, k: int, generator: Generator) -> Tensor:
    return -_one_bin(length, k, generator)


def _bin_edges(length: int, k: int, generator: Generator) -> Tensor:  # noqa: ARG001
    """Scores one ulp around the fp32 values at which fp16 rounding changes its leading 12 bits."""
    half = torch.randint(1, 0x7C0, (length,), generator=generator) * 16
    values = torch.stack([half, half - 1]).to(torch.int16).view(torch.float16).double()
    edges = values.mean(0).float().view(torch.int32) + torch.randint(-1, 2, (length,), generator=generator)
    sign = torch.randint(0, 2, (length,), generator=generator) * -(2**31)
    return _from_bits(edges + sign)


def _zero_threshold(length: int, k: int, generator: Generator) -> Tensor:
    """Fewer than k scores above zero, tiny ones among them, and zeros of both signs."""
    row = torch.where(torch.rand(length, generator=generator) < 0.5, 0.0, -0.0)
    above = torch.randperm(length, generator=generator)[: max(min(k, length) - 1, 0)]
    row[above] = _log_uniform(1e-45, 1e3)(len(above), k, generator)
    return row


def _below_zero_threshold(length: int, k: int, generator: Generator) -> Tensor:
    """Zeros and positive scores, but fewer than k of them: the cut is among tiny negative scores."""
    row = -_log_uniform(1e-45, 1e-6)(length, k, generator)
    above = torch.randperm(length, generator=generator)[: max(min(k, length) - 2, 0)]
    row[above] = _choice(0.0, -0.0, 1e-30, 1.0)(len(above), k, generator)
    return row


def _ramp(sign: int) -> Maker:
    return lambda length, k, generator: sign * torch.arange(length).float() / 7


def _winners_in_a_run(length: int, k: int, generator: Generator) -> Tensor:
    """All winners side by side: a sample of the row sees none of them."""
    row = torch.randn(length, generator=generator)
    start = int(torch.randint(max(length - k, 0) + 1, (), generator=generator))
    row[start : start + k] += 100
    return row


def _winners_at_multiples(of: int, offset: int) -> Maker:
    """Winners only at, or only beside, the columns that a strided sample would look at."""

    def make(length: int, k: int, generator: Generator) -> Tensor:  # noqa: ARG001
        row = torch.randn(length, generator=generator)
        row[offset::of] += 50
        return row

    return make


def _with(base: Maker, count: int, *patterns: int) -> Maker:
    """`base` with `count` scores replaced by bit patterns in turn."""

    def make(length: int, k: int, generator: Generator) -> Tensor:
        row = base(length, k, generator)
        places = torch.randperm(length, generator=generator)[:count]
        cycle = torch.tensor(patterns)[torch.arange(len(places)) % len(patterns)]
        row.view(torch.int32)[places] = cycle.to(torch.int32)
        return row

    return make


def _more_infinities_than_k(length: int, k: int, generator: Generator) -> Tensor:
    return _with(_normal(0, 1), k + 7, _pattern(_INFINITY))(length, k, generator)


def _fewer_numbers_than_k(length: int, k: int, generator: Generator) -> Tensor:
    row = torch.full((length,), _NAN)
    numbers = torch.randperm(length, generator=generator)[: min(k, length) // 2]
    row[numbers] = torch.randn(len(numbers), generator=generator)
    return row


def _pattern(value: float) -> int:
    """Bits of a float32 as a signed number."""
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    return int(bits)


_POSITIVE_NAN, _NEGATIVE_NAN = 0x7FC00000, 0x7FC00000 - 2**31
_PAYLOAD_NAN, _NEGATIVE_PAYLOAD_NAN = 0x7F800001, 0x7FBFFFFF - 2**31

SCORES: dict[str, Maker] = {
    "normal": _normal(0, 1),
    "normal_20_3": _normal(20, 3),
    "relu_sum": _relu_sum,
    "zeros_60": _zeros(0.6),
    "zeros_95": _zeros(0.95),
    "zeros_all": _constant(0.0),
    "all_equal": _constant(1.5),
    "all_equal_negative": _constant(-3.25),
    "two_values": _choice(0.25, 0.5),
    "eight_values": _choice(*(i / 8 - 0.5 for i in range(8))),
    "all_minus_inf": _constant(-_INFINITY),
    "all_plus_inf": _constant(_INFINITY),
    "three_finite": lambda length, k, generator: _with(_constant(-_INFINITY), 3, _pattern(1.0))(length, k, generator),
    "more_infinities_than_k": _more_infinities_than_k,
    "below_half_overflow": _uniform(HALF_MAX, HALF_OVERFLOW),
    "half_overflow": _log_uniform(HALF_OVERFLOW, 1e30),
    "negative_half_overflow": lambda length, k, generator: -_log_uniform(HALF_MAX, 1e30)(length, k, generator),
    "subnormal": _subnormal,
    "mixed_zeros": _choice(0.0, -0.0),
    "zero_threshold": _zero_threshold,
    "below_zero_threshold": _below_zero_threshold,
    "one_bin": _one_bin,
    "one_negative_bin": _one_negative_bin,
    "bin_edges": _bin_edges,
    "random_bits": _random_bits,
    "ascending": _ramp(1),
    "descending": _ramp(-1),
    "winners_in_a_run": _winners_in_a_run,
    "winners_sampled": _winners_at_multiples(64, 0),
    "winners_unsampled": _winners_at_multiples(64, 33),
    "nan_1": _with(_normal(0, 1), 1, _POSITIVE_NAN),
    "nan_3_and_infinities": _with(_normal(0, 1), 11, _POSITIVE_NAN, _pattern(_INFINITY), _pattern(-_INFINITY)),
    "nan_4096": _with(_normal(-5, 1), 4096, _POSITIVE_NAN, _NEGATIVE_NAN),
    "nan_all": _constant(_NAN),
    "nan_payloads": _with(_normal(0, 1), 64, _PAYLOAD_NAN, _NEGATIVE_PAYLOAD_NAN, _NEGATIVE_NAN),
    "fewer_numbers_than_k": _fewer_numbers_than_k,
}


def make_scores(name: str, length: int, k: int, seed: int) -> Tensor:
    """A row of scores, float32 [length]; the same for the same arguments."""
    generator = torch.Generator().manual_seed(seed)
    return SCORES[name](length, k, generator).to(torch.float32).contiguous()
