"""Rows of scores that break top-k kernels, by name.

Names say what is special; bins are those of a histogram over the leading 12 bits of the fp16-rounded score.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

HALF_MAX = 65504.0
#: the smallest fp32 that rounds to infinity in fp16
HALF_OVERFLOW = 65520.0
_INFINITY = float("inf")
_NAN = float("nan")
#: bits that turn a pattern's sign, as a signed number
_SIGN = -(2**31)


@dataclass(frozen=True)
class Draw:
    """A row to make: its length, the k that will select from it, and where random numbers come from."""

    length: int
    k: int
    generator: Generator

    def normal(self) -> Tensor:
        """N(0, 1), float32 [length]."""
        return torch.randn(self.length, generator=self.generator)

    def uniform(self) -> Tensor:
        """U[0, 1), float32 [length]."""
        return torch.rand(self.length, generator=self.generator)

    def integers(self, low: int, high: int) -> Tensor:
        """Uniform in [low, high), int64 [length]."""
        return torch.randint(low, high, (self.length,), generator=self.generator)

    def places(self, count: int) -> Tensor:
        """Distinct random columns, int64 [min(count, length)]."""
        return torch.randperm(self.length, generator=self.generator)[: max(count, 0)]

    def part(self, length: int) -> Draw:
        """The same source for a row of another length."""
        return Draw(length, self.k, self.generator)


Maker = Callable[[Draw], Tensor]


def _normal(mean: float, deviation: float) -> Maker:
    return lambda draw: draw.normal() * deviation + mean


def _constant(value: float) -> Maker:
    return lambda draw: torch.full((draw.length,), value)


def _choice(*values: float) -> Maker:
    return lambda draw: torch.tensor(values)[draw.integers(0, len(values))]


def _below_half_overflow(draw: Draw) -> Tensor:
    """Inside (65504, 65520): above fp16's largest number, rounded down to it."""
    return draw.uniform() * (HALF_OVERFLOW - HALF_MAX) + HALF_MAX


def _relu_sum(draw: Draw) -> Tensor:
    """What the indexer makes: 64 heads' rectified products, weighted and summed."""
    heads = torch.randn(64, draw.length, generator=draw.generator).relu()
    return (torch.rand(64, generator=draw.generator)[:, None] * heads).sum(0)


def _zeros(share: float) -> Maker:
    return lambda draw: torch.where(draw.uniform() < share, 0.0, draw.normal().abs())


def _log_uniform(low: float, high: float) -> Maker:
    return lambda draw: (low * (high / low) ** draw.uniform().double()).float()


def _from_bits(patterns: Tensor) -> Tensor:
    return patterns.to(torch.int32).view(torch.float32)


def _random_bits(draw: Draw) -> Tensor:
    return _from_bits(draw.integers(_SIGN, -_SIGN))


def _subnormal(draw: Draw) -> Tensor:
    return _from_bits(draw.integers(0, 1 << 23) + draw.integers(0, 2) * _SIGN)


def _one_bin(draw: Draw) -> Tensor:
    """1 + i * 2^-23 in random order: up to 2^17 distinct scores of one bin."""
    return (1 + draw.places(draw.length).double() * 2.0**-23).float()


def _bin_edges(draw: Draw) -> Tensor:
    """Scores one ulp around the fp32 values at which fp16 rounding changes its leading 12 bits."""
    half = draw.integers(1, 0x7C0) * 16
    values = torch.stack([half, half - 1]).to(torch.int16).view(torch.float16).double()
    edges = values.mean(0).float().view(torch.int32)
    return _from_bits(edges + draw.integers(-1, 2) + draw.integers(0, 2) * _SIGN)


def _zero_threshold(draw: Draw) -> Tensor:
    """Fewer than k scores above zero, tiny ones among them, and zeros of both signs."""
    row = _choice(0.0, -0.0)(draw)
    above = draw.places(min(draw.k, draw.length) - 1)
    row[above] = _log_uniform(1e-45, 1e3)(draw.part(len(above)))
    return row


def _sparse_zeros(draw: Draw) -> Tensor:
    """The k-th largest is one of 2k zeros, far between among negative scores: their border lies anywhere in the row."""
    row = -draw.normal().abs() - 1
    places = draw.places(draw.k // 4 + 2 * draw.k)
    row[places] = 0.0
    row[places[: draw.k // 4]] = 3.0
    return row


def _plateau_in_a_bin(draw: Draw) -> Tensor:
    """The k-th largest is one of 700 equal scores, among up to 800 of their bin that are not quite equal, if the row
    has room for all of them."""
    row = -draw.normal().abs() - 1
    larger = min(400, draw.k // 2)
    clear = max(draw.k - larger - 350, 0)
    steps = torch.arange(1, 401).double()
    values = torch.cat(
        [
            torch.full((clear,), 7.0),
            1 + steps[:larger] * 2.0**-23,
            torch.ones(700),
            1 - steps * 2.0**-24,
        ]
    )
    places = draw.places(len(values))
    row[places] = values[: len(places)].float()
    return row


def _below_zero_threshold(draw: Draw) -> Tensor:
    """Zeros and positive scores, but fewer than k of them: the k-th largest is a tiny negative score."""
    row = -_log_uniform(1e-45, 1e-6)(draw)
    above = draw.places(min(draw.k, draw.length) - 2)
    row[above] = _choice(0.0, -0.0, 1e-30, 1.0)(draw.part(len(above)))
    return row


def _ramp(sign: int) -> Maker:
    return lambda draw: sign * torch.arange(draw.length).float() / 7


def _ties_in_front(draw: Draw) -> Tensor:
    """Of 400 scores that equal the k-th largest, as many lie within the first 300 columns as win where the first ones
    do, and the others in the last columns."""
    row = -draw.normal().abs() - 1
    front = min(100, draw.k, draw.length // 4)
    row[: 3 * front : 3] = 1.0
    row[draw.length - min(300, draw.length // 4) :] = 1.0
    middle = torch.randperm(max(draw.length // 2 - 3 * front, 0), generator=draw.generator)
    row[3 * front + middle[: draw.k - front]] = 7.0
    return row


def _winners_in_a_run(draw: Draw) -> Tensor:
    """All winners side by side: a sample of the row sees none of them."""
    row = draw.normal()
    start = int(torch.randint(max(draw.length - draw.k, 0) + 1, (), generator=draw.generator))
    row[start : start + draw.k] += 100
    return row


def _winners_at_multiples(of: int, offset: int) -> Maker:
    """Winners only at, or only beside, the columns that a strided sample would look at."""

    def make(draw: Draw) -> Tensor:
        row = draw.normal()
        row[offset::of] += 50
        return row

    return make


def _with(base: Maker, count: int, *patterns: int) -> Maker:
    """`base` with `count` scores replaced by bit patterns in turn."""

    def make(draw: Draw) -> Tensor:
        row = base(draw)
        places = draw.places(count)
        cycle = torch.tensor(patterns)[torch.arange(len(places)) % len(patterns)]
        row.view(torch.int32)[places] = cycle.to(torch.int32)
        return row

    return make


def _more_infinities_than_k(draw: Draw) -> Tensor:
    return _with(_normal(0, 1), draw.k + 7, _pattern(_INFINITY))(draw)


def _fewer_numbers_than_k(draw: Draw) -> Tensor:
    row = torch.full((draw.length,), _NAN)
    numbers = draw.places(min(draw.k, draw.length) // 2)
    row[numbers] = draw.part(len(numbers)).normal()
    return row


def _pattern(value: float) -> int:
    """Bits of a float32 as a signed number."""
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    return int(bits)


_POSITIVE_NAN, _NEGATIVE_NAN = 0x7FC00000, 0x7FC00000 + _SIGN
_PAYLOAD_NAN, _NEGATIVE_PAYLOAD_NAN = 0x7F800001, 0x7FBFFFFF + _SIGN

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
    "three_finite": _with(_constant(-_INFINITY), 3, _pattern(1.0)),
    "more_infinities_than_k": _more_infinities_than_k,
    "below_half_overflow": _below_half_overflow,
    "half_overflow": _log_uniform(HALF_OVERFLOW, 1e30),
    "negative_half_overflow": lambda draw: -_log_uniform(HALF_MAX, 1e30)(draw),
    "subnormal": _subnormal,
    "mixed_zeros": _choice(0.0, -0.0),
    "zero_threshold": _zero_threshold,
    "sparse_zeros": _sparse_zeros,
    "below_zero_threshold": _below_zero_threshold,
    "one_bin": _one_bin,
    "plateau_in_a_bin": _plateau_in_a_bin,
    "ties_in_front": _ties_in_front,
    "one_negative_bin": lambda draw: -_one_bin(draw),
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
    draw = Draw(length, k, torch.Generator().manual_seed(seed))
    return SCORES[name](draw).to(torch.float32).contiguous()
