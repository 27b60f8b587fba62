"""RMSNorm of heads and rotation by position in float64: what stands between projections and cache.

    query heads   RMSNorm over a head, with or without a weight, or none; rotation of the last 64 dimensions
    key           RMSNorm with a weight, rotation, and a record of `compress_store` in its slot

One rounding at the end, from float32; nothing is rounded between norm and rotation. A position that the table does not
have rotates nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4gen.reference import compress

ROPE = compress.ROPE
#: dimensions of a stored key
KEY_DIM = 512
LAYOUTS = ("interleaved", "split", "two")
_LARGEST = float(torch.finfo(torch.float32).max)


@dataclass(frozen=True)
class RotaryTable:
    """Cosines and sines by position in one of three layouts.

    Attributes:
        layout: `interleaved` c0 s0 c1 s1 .. in one row, `split` all cosines then all sines in one row, `two` tensors.
        cosines: the table [positions, 64], or [positions, 32] in layout two.
        sines: [positions, 32], layout two only.
    """

    layout: str
    cosines: Tensor
    sines: Tensor | None = None

    def at(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine per pair, float64 [n, 32] each; 1 and 0 for a position outside the table."""
        known = ((positions >= 0) & (positions < self.cosines.shape[0]))[:, None]
        if not known.any():
            return torch.ones(len(positions), ROPE // 2).double(), torch.zeros(len(positions), ROPE // 2).double()
        rows = torch.where(known[:, 0], positions.long(), 0)
        table = self.cosines[rows].double()
        if self.layout == "interleaved":
            cosine, sine = table[:, 0::2], table[:, 1::2]
        elif self.layout == "split":
            cosine, sine = table[:, : ROPE // 2], table[:, ROPE // 2 :]
        else:
            assert self.sines is not None
            cosine, sine = table, self.sines[rows].double()
        return torch.where(known, cosine, 1.0), torch.where(known, sine, 0.0)


def rotary_table(angles: Tensor, layout: str, dtype: torch.dtype = torch.float32) -> RotaryTable:
    """A table of `angles` [positions, 32] in radians."""
    cosine, sine = angles.double().cos().to(dtype), angles.double().sin().to(dtype)
    if layout == "two":
        return RotaryTable(layout, cosine, sine)
    joined = torch.stack([cosine, sine], -1).flatten(1) if layout == "interleaved" else torch.cat([cosine, sine], 1)
    return RotaryTable(layout, joined)


def rms_norm(heads: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """heads / sqrt(mean(heads^2) + eps) * weight over the last dimension, float64.

    A sum of squares past float32's range counts as infinite, as it is for kernels.
    """
    heads = heads.double()
    total = heads.square().sum(-1, keepdim=True)
    total = torch.where(total > _LARGEST, torch.inf, total)
    scaled = heads * torch.rsqrt(total / heads.shape[-1] + eps)
    return scaled if weight is None else scaled * weight.double()


def rotate_heads(heads: Tensor, positions: Tensor, table: RotaryTable) -> Tensor:
    """Heads [tokens, heads, head_dim] rotated by their token's position, float64."""
    tokens, count, dim = heads.shape
    cosine, sine = (part.repeat_interleave(count, 0) for part in table.at(positions))
    return compress.rotate(heads.reshape(-1, dim), cosine, sine).view(tokens, count, dim)


def query_heads(
    heads: Tensor, positions: Tensor, table: RotaryTable, *, eps: float | None, weight: Tensor | None = None
) -> Tensor:
    """Query heads [tokens, heads, head_dim] as attention takes them, float64; `eps` None leaves out the norm."""
    normed = heads.double() if eps is None else rms_norm(heads, weight, eps)
    return rotate_heads(normed, positions, table)


def keys(kv: Tensor, positions: Tensor, table: RotaryTable, *, eps: float, weight: Tensor) -> Tensor:
    """Keys [tokens, 512] as they are stored, before quantisation, float64."""
    return rotate_heads(rms_norm(kv, weight, eps)[:, None], positions, table)[:, 0]
