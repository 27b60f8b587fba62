"""Attention of query heads over selected tokens of paged FP8 caches: the definition of right, in plain torch.

K and V are the same dequantised row of 512 values. The softmax runs over the multiset of valid entries of one or
two scopes (a cache with its index list each); an attention sink is one more key whose value is zero. All
arithmetic is float64 on rows as bfloat16 holds them.

Rules: the log-sum-exp is natural, without the sink, and +inf where nothing is valid; such rows are zero. An entry
is valid if it names a slot of its pool and its column is below the length of the batch row. Rows of invalid
entries are never read, so whatever they hold cannot matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4gen.reference import fp8
from dsv4gen.reference.gather_dequant import load_tokens, valid_entries


@dataclass(frozen=True)
class Scope:
    """One paged cache with its index list.

    Attributes:
        pool: uint8 [pages, page_bytes].
        page_size: tokens per page.
        indices: int32 [tokens, width], global token slots.
        lengths: int32 [tokens / queries] leading entries that count, or None for all.
        dialect: `e4m3fn` or `e4m3fnuz`.
    """

    pool: Tensor
    page_size: int
    indices: Tensor
    lengths: Tensor | None = None
    dialect: str = "e4m3fn"

    def rows(self, queries: int) -> tuple[Tensor, Tensor]:
        """Dequantised rows, bfloat16 [tokens, width, 512] with zeros where invalid, and validity, bool."""
        slots = self.pool.shape[0] * self.page_size
        valid = valid_entries(self.indices, slots, self.lengths, queries)
        rows = torch.zeros(*self.indices.shape, 512, dtype=torch.bfloat16)
        rows[valid] = load_tokens(self.pool, self.page_size, self.indices[valid], fp8.dialect_of(self.dialect))
        return rows, valid


def attend(
    q: Tensor,
    scopes: Iterable[Scope],
    *,
    scale: float,
    sink: Tensor | None = None,
    queries: int = 1,
    value_width: int = 512,
) -> tuple[Tensor, Tensor]:
    """Attention over the entries of all scopes together.

    Args:
        q: bfloat16 [tokens, heads, 512].
        scale: factor of the dot products, positive.
        sink: float32 [heads], a logit in the domain of the scaled dot products; infinities are legal.
        queries: tokens that share one batch row and its lengths.
        value_width: leading columns of the rows that are values.

    Returns:
        float64 outputs [tokens, heads, value_width] and log-sum-exps [tokens, heads].
    """
    parts = [scope.rows(queries) for scope in scopes]
    rows = torch.cat([rows for rows, _ in parts], dim=1)
    valid = torch.cat([valid for _, valid in parts], dim=1)
    return attend_rows(q, rows, ~valid, scale=scale, sink=sink, value_width=value_width)


def attend_rows(
    q: Tensor, rows: Tensor, mask: Tensor, *, scale: float, sink: Tensor | None = None, value_width: int = 512
) -> tuple[Tensor, Tensor]:
    """Attention over rows that were gathered before.

    Args:
        rows: bfloat16 [tokens, width, 512]; anything where masked.
        mask: bool [tokens, width], True where invalid.

    Returns:
        as `attend`.
    """
    values = torch.where(mask[:, :, None], 0.0, rows.double())
    logits = torch.einsum("thd,tkd->thk", q.double(), values) * scale
    logits = logits.masked_fill(mask[:, None, :], -torch.inf)
    lse = torch.logsumexp(logits, dim=2) if rows.shape[1] else torch.full(q.shape[:2], -torch.inf).double()
    empty = mask.all(dim=1)[:, None].expand_as(lse)
    weights = torch.exp(logits - torch.where(empty, 0.0, lse)[:, :, None])
    out = torch.einsum("thk,tkd->thd", weights, values)[:, :, :value_width]
    return _finished(out, lse, empty, sink)


def merge_lse(parts: Tensor, lses: Tensor, *, sink: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """One attention result from results over disjoint parts of the keys.

    Args:
        parts: [splits, tokens, heads, value_width], any float type; anything where the part is empty.
        lses: float32 [splits, tokens, heads]; an infinity of either sign marks an empty part.
        sink: float32 [heads], applied once, here; parts must not have it.

    Returns:
        float64 outputs [tokens, heads, value_width] and log-sum-exps [tokens, heads], +inf where all parts are empty.
    """
    absent = torch.isinf(lses)
    logs = torch.where(absent, -torch.inf, lses.double())
    lse = torch.logsumexp(logs, dim=0)
    empty = absent.all(dim=0)
    weights = torch.exp(logs - torch.where(empty, 0.0, lse))
    out = (torch.where(absent[..., None], 0.0, parts.double()) * weights[..., None]).sum(0)
    return _finished(out, lse, empty, sink)


def sink_factor(lse: Tensor, sink: Tensor) -> Tensor:
    """exp(lse) / (exp(lse) + exp(sink)) without overflow, for any sink; float64, shape of `lse`."""
    distance = sink.double() - lse.double()
    small = torch.exp(-distance.abs())
    return torch.where(distance > 0, small, 1.0) / (1 + small)


def _finished(out: Tensor, lse: Tensor, empty: Tensor, sink: Tensor | None) -> tuple[Tensor, Tensor]:
    """Apply the sink and the rule for rows without a valid key."""
    if sink is not None:
        out = out * sink_factor(lse, sink[None, :])[:, :, None]
    return torch.where(empty[:, :, None], 0.0, out), torch.where(empty, torch.inf, lse)


def token_ranges(tokens: int, row_bytes: int, limit: int = 2**31) -> Sequence[tuple[int, int]]:
    """Consecutive ranges [first, last) of tokens whose gathered rows take at most `limit` bytes, one at least."""
    step = max(1, limit // max(1, row_bytes))
    return [(first, min(first + step, tokens)) for first in range(0, tokens, step)]
