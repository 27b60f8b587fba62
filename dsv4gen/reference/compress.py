"""The compressor's mathematics in float64: pool, RMSNorm, rotary embedding, Hadamard transform.

A compressed token stands for `ratio` tokens. It pools a window of projected rows with a softmax over the rows,
taken separately for every dimension, then normalises and rotates the result. With ratio 4 windows overlap: the
first half of the window is the previous group, read from other columns of its rows.

    ratio 4:    row = [kv_overlap | kv_current | score_overlap | score_current], 4 * head_dim wide, window 8
    ratio 128:  row = [kv | score], 2 * head_dim wide, window 128

`compressed_rows` computes from the whole projected sequence; it knows no ring, plan or page, and everything
that has them must agree with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4gen.base.errors import ArgumentError

RATIOS = (4, 128)
HEAD_DIMS = (128, 512)
#: dimensions that are rotated, the last ones of a head
ROPE = 64


@dataclass(frozen=True)
class Geometry:
    """Sizes that follow from ratio and head dimension."""

    ratio: int
    head_dim: int

    def __post_init__(self) -> None:
        """Refuse sizes no model has.

        Raises:
            ArgumentError: unknown ratio or head dimension.
        """
        if self.ratio not in RATIOS or self.head_dim not in HEAD_DIMS:
            raise ArgumentError(
                f"ratio {self.ratio} with head dimension {self.head_dim}",
                remedy=f"ratios are {RATIOS}, head dimensions {HEAD_DIMS}",
            )

    @property
    def halves(self) -> int:
        """Groups that a window spans."""
        return 2 if self.ratio == 4 else 1

    @property
    def window(self) -> int:
        """Rows that one compressed token pools."""
        return self.ratio * self.halves

    @property
    def width(self) -> int:
        """Elements of a projected row, and of a state row."""
        return 2 * self.halves * self.head_dim


def kernel_bias(checkpoint: Tensor, geometry: Geometry) -> Tensor:
    """The score bias as kernels take it, [window, head_dim], from the checkpoint's [ratio, halves * head_dim].

    Row k belongs to window row k. For ratio 128 both layouts are the same.
    """
    return torch.cat([checkpoint[:, h * geometry.head_dim :][:, : geometry.head_dim] for h in range(geometry.halves)])


def split_row(rows: Tensor, half: int, geometry: Geometry) -> tuple[Tensor, Tensor]:
    """Values and scores [..., head_dim] of one half of projected rows [..., width]."""
    dim, halves = geometry.head_dim, geometry.halves
    return rows[..., half * dim : (half + 1) * dim], rows[..., (halves + half) * dim : (halves + half + 1) * dim]


def window_half(k: int, geometry: Geometry) -> int:
    """Which columns window row `k` reads: 0 for the previous group of ratio 4, else the last half."""
    return k // geometry.ratio


def pool(values: Tensor, scores: Tensor, valid: Tensor | None = None) -> Tensor:
    """Softmax over the rows per dimension, and the mean of the values under it; float64 [..., head_dim].

    Args:
        values, scores: [..., rows, head_dim].
        valid: bool [..., rows]; other rows contribute nothing, whatever their bytes.

    A score of -inf has weight 0. Where no weight is left the result is 0. A NaN score makes its dimension NaN.
    """
    values, scores = values.double(), scores.double()
    if valid is not None:
        keep = valid.unsqueeze(-1)
        values = torch.where(keep, values, 0.0)
        scores = torch.where(keep, scores, -torch.inf)
    largest = scores.amax(-2, keepdim=True)
    weights = torch.exp(scores - torch.where(largest == -torch.inf, 0.0, largest))
    total = weights.sum(-2)
    mean = (weights * values).sum(-2) / total
    return torch.where(total == 0, torch.zeros_like(mean), mean)


def rms_norm(rows: Tensor, weight: Tensor, eps: float) -> Tensor:
    """rows * rsqrt(mean(rows^2) + eps) * weight over the last dimension, float64."""
    rows = rows.double()
    return rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + eps) * weight.double()


def rotate(rows: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate the interleaved pairs of the last 64 dimensions, float64.

    Args:
        rows: [n, head_dim].
        cos, sin: [n, 32], of the rows' positions.
    """
    rows = rows.double().clone()
    real, imaginary = rows[:, -ROPE::2].clone(), rows[:, -ROPE + 1 :: 2].clone()
    cos, sin = cos.double(), sin.double()
    rows[:, -ROPE::2] = real * cos - imaginary * sin
    rows[:, -ROPE + 1 :: 2] = real * sin + imaginary * cos
    return rows


def hadamard(rows: Tensor) -> Tensor:
    """The normalised Walsh-Hadamard transform over the last dimension in Sylvester's order, float64."""
    size = rows.shape[-1]
    matrix = torch.ones(1, 1, dtype=torch.float64)
    while matrix.shape[0] < size:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return torch.matmul(rows.double(), matrix / float(size) ** 0.5)


def window_of(sequence: Tensor, end: int, bias: Tensor, geometry: Geometry) -> tuple[Tensor, Tensor, Tensor]:
    """Values, scores with bias, and validity of the window that ends at position `end`.

    Args:
        sequence: [tokens, width], the projected rows of one request from position 0.
        end: position of the group's last token.
        bias: [window, head_dim].

    Returns:
        float64 [window, head_dim] twice and bool [window]; rows before position 0 are invalid.
    """
    values = torch.zeros(geometry.window, geometry.head_dim, dtype=torch.float64)
    scores = torch.full_like(values, -torch.inf)
    valid = torch.zeros(geometry.window, dtype=torch.bool)
    for k in range(geometry.window):
        position = end - geometry.window + 1 + k
        if position >= 0:
            value, score = split_row(sequence[position].double(), window_half(k, geometry), geometry)
            values[k], scores[k] = value, score + bias[k].double()
            valid[k] = True
    return values, scores, valid


def group_ends(prefix: int, length: int, ratio: int) -> list[int]:
    """Last positions of the groups that positions [prefix, length) complete."""
    return [position for position in range(prefix, length) if (position + 1) % ratio == 0]


def compressed_rows(sequence: Tensor, ends: list[int], bias: Tensor, geometry: Geometry) -> Tensor:
    """Pooled rows of the groups ending at `ends`, float64 [n, head_dim]."""
    rows = [pool(*window_of(sequence, end, bias, geometry)) for end in ends]
    return torch.stack(rows) if rows else torch.zeros(0, geometry.head_dim, dtype=torch.float64)
