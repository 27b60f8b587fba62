"""Where state rows live and which tokens a compressor step touches: rings and plan structs, in plain loops.

Plans are int32 tensors, one struct a row; an unsigned 0xFFFFFFFF reads as -1 there.

    decode    [batch, 4]   seq_len, write_row, page of the previous group, page of the current group
    compress  [n, 4]       seq_len, ragged | buffered << 16, page of the previous group, page of the current one
    write     [n, 2]       ragged, write_row

A page is `ratio` consecutive state rows. `ragged` counts the step's tokens over all requests; `buffered` is how
many leading window rows come from the state, the others being input rows up to `ragged`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from dsv4gen.base.errors import ArgumentError
from dsv4gen.reference.compress import Geometry

#: a plan's 16-bit field; also the largest number of tokens in one step
MAX_TOKENS = 65536
INVALID = -1


class Ring(Protocol):
    """The state rows of a pool: `size` rows per request or per page of tokens, used in turn."""

    @property
    def size(self) -> int:
        """Rows of one ring."""

    def row(self, request: int, position: int) -> int:
        """The state row of a request's position."""

    def keeps_tail(self, position: int) -> bool:
        """Whether a position is stored although no later token of this step needs it."""


@dataclass(frozen=True)
class RequestRing:
    """`size` rows per request."""

    size: int

    def row(self, request: int, position: int) -> int:
        """Row of a position; negative requests are the caller's mistake."""
        return request * self.size + position % self.size

    def keeps_tail(self, position: int) -> bool:  # noqa: ARG002
        """Nothing is shared between requests."""
        return False


@dataclass(frozen=True)
class PagedRing:
    """`size` rows per page of the sliding-window cache, so that requests with one prefix share them.

    Attributes:
        page: tokens per page.
        request_to_token: int32 [requests, positions], token slots.
        full_to_window: int64 [slots], slots of the sliding-window cache.
    """

    size: int
    page: int
    request_to_token: Tensor
    full_to_window: Tensor

    def row(self, request: int, position: int) -> int:
        """Row of a position through both tables."""
        slot = int(self.full_to_window[int(self.request_to_token[request, position])])
        return slot // self.page * self.size + slot % self.size

    def keeps_tail(self, position: int) -> bool:
        """The last group of a page, from which another request may resume."""
        return position % self.page >= self.page - 4


def rollback_rows(ring_size: int, geometry: Geometry) -> int:
    """Tokens of a verify step, the first of which is always accepted, after which every accepted prefix is intact.

    0 where the ring is no longer than the window.
    """
    return ring_size - geometry.window + 2 if ring_size > geometry.window else 0


def check_ring(ring_size: int, geometry: Geometry, *, drafts: int = 0, page: int | None = None) -> None:
    """Refuse a ring that would lose rows without a trace.

    Args:
        ring_size: rows.
        drafts: tokens of a verify step; all but the first may be taken back.
        page: tokens per sliding-window page, for a paged ring.

    Raises:
        ArgumentError: the ring is shorter than the window, uneven, or too small for the drafts.
    """
    if ring_size < geometry.window or ring_size % geometry.ratio:
        raise ArgumentError(
            f"a ring of {ring_size} rows cannot hold a window of {geometry.window}",
            remedy=f"use a multiple of {geometry.ratio}, at least {geometry.window}",
        )
    if page is not None and page % ring_size:
        raise ArgumentError(f"a page of {page} tokens is not a multiple of the ring's {ring_size} rows")
    if drafts > rollback_rows(ring_size, geometry):
        raise ArgumentError(
            f"{drafts} draft tokens on a ring of {ring_size} rows overwrite rows that a rollback needs",
            remedy=f"at most {rollback_rows(ring_size, geometry)} drafts, or a longer ring",
        )


@dataclass(frozen=True)
class Extend:
    """The tokens of one request in a step: positions [prefix, seq_len)."""

    request: int
    prefix: int
    seq_len: int


@dataclass(frozen=True)
class PrefillPlan:
    """`compress` int32 [n, 4] and `write` int32 [n, 2], both in token order."""

    compress: Tensor
    write: Tensor


def decode_plan(requests: Sequence[int], seq_lens: Sequence[int], ring: Ring, geometry: Geometry) -> Tensor:
    """One struct per batch row; a row of length 0 is padding and writes nowhere."""
    rows = []
    for request, seq_len in zip(requests, seq_lens, strict=True):
        if seq_len == 0:
            rows.append([0, INVALID, INVALID, INVALID])
            continue
        last = seq_len - 1
        pages = [ring.row(request, position) // geometry.ratio for position in (max(last - geometry.ratio, 0), last)]
        rows.append([seq_len, ring.row(request, last), *pages])
    return torch.tensor(rows, dtype=torch.int32).view(-1, 4)


def prefill_plan(
    extends: Sequence[Extend], ring: Ring, geometry: Geometry, *, padded: int | None = None
) -> PrefillPlan:
    """Groups that the step completes, and tokens whose rows must outlive it.

    Args:
        extends: one entry per request, in the order of the flattened tokens.
        padded: rows of both plans; the rest is invalid. As many as needed when absent.

    Raises:
        ArgumentError: more tokens than a plan can number.
    """
    if sum(entry.seq_len - entry.prefix for entry in extends) > MAX_TOKENS:
        raise ArgumentError(f"a step takes at most {MAX_TOKENS} tokens", remedy="split the step")
    compress, write = [], []
    start = 0
    for entry in extends:
        first_kept = _first_kept(entry.seq_len, ring, geometry)
        for position in range(entry.prefix, entry.seq_len):
            ragged = start + position - entry.prefix
            if (position + 1) % geometry.ratio == 0:
                compress.append(_compress_row(entry, position, ragged, ring, geometry))
            if position >= first_kept or (geometry.ratio == 4 and ring.keeps_tail(position)):
                write.append([ragged, ring.row(entry.request, position)])
        start += entry.seq_len - entry.prefix
    return PrefillPlan(_padded(compress, 4, padded), _padded(write, 2, padded))


def _first_kept(seq_len: int, ring: Ring, geometry: Geometry) -> int:
    """The first position that a later step can need, whatever part of this one is taken back."""
    complete = seq_len // geometry.ratio * geometry.ratio
    overlap = geometry.ratio if geometry.halves == 2 else 0
    return min(complete - overlap, seq_len - rollback_rows(ring.size, geometry))


def _compress_row(entry: Extend, position: int, ragged: int, ring: Ring, geometry: Geometry) -> list[int]:
    buffered = geometry.window - min(position - entry.prefix + 1, geometry.window)
    previous = max(position - geometry.ratio, 0)
    pages = [ring.row(entry.request, p) // geometry.ratio for p in (previous, position)]
    packed = ragged | buffered << 16
    return [position + 1, packed, *pages]


def _padded(rows: list[list[int]], columns: int, count: int | None) -> Tensor:
    count = len(rows) if count is None else count
    plan = torch.full((count, columns), INVALID, dtype=torch.int32)
    if rows:
        plan[: len(rows)] = torch.tensor(rows, dtype=torch.int64).to(torch.int32)
    return plan


def unpack(compress: Tensor) -> tuple[Tensor, Tensor]:
    """`ragged` and `buffered` of compress rows, int64; meaningless for invalid rows."""
    packed = compress[:, 1].to(torch.int64)
    return packed & 0xFFFF, packed >> 16 & 0xFFFF
