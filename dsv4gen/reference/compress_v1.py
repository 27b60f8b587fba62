"""Plans of the first upstream ABI as the structs of `compress_plan`, in plain loops.

    compress, write   int32 [n, 4]: ragged, request (row of the step), position, rows from the state; unused is -1
    pages             int32 [batch]: state page of the last position that is written (upstream's `indices`)
    extra             (upstream's `extra_data`) int32, by ratio and step
                      4, prefill     [batch, 4]: the load position's previous page and its own, the write position's
                                     previous page, and the first position of the write position's group
                      4, decode      [batch, 1]: page of the previous group
                      128, prefill   [batch, 1]: page of the load position
                      128, decode    not needed

The load position is the last one before the step, the write position the last one of it. Without `extra`, ratio 4 has a
ring of eight rows per page, and ratio 128 reads the page that it writes.

An entry that names no token of a request is invalid, and so is a group that a position does not end or whose window is
longer than windows are, and a write to no page. Pages that are only read may be anything: the kernels mask them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4gen.reference.compress import Geometry
from dsv4gen.reference.compress_plan import INVALID, MAX_TOKENS, PrefillPlan

_LARGEST = 2**31 - 1
#: rows of a page where there is no `extra`
_LEGACY_RING = 8


@dataclass(frozen=True)
class V1Plan:
    """What a v1 prefill step carries; see the head of this module."""

    compress: Tensor
    write: Tensor
    pages: Tensor
    extra: Tensor | None


def from_v1(plan: V1Plan, geometry: Geometry) -> PrefillPlan:
    """The same work as v2 structs, entry by entry."""
    compress = [_group(entry, plan, geometry) or [INVALID] * 4 for entry in plan.compress.tolist()]
    write = [_kept(entry, plan, geometry) or [INVALID] * 2 for entry in plan.write.tolist()]
    return PrefillPlan(
        torch.tensor(compress, dtype=torch.int32).view(-1, 4), torch.tensor(write, dtype=torch.int32).view(-1, 2)
    )


def decode_from_v1(seq_lens: Tensor, pages: Tensor, extra: Tensor | None, geometry: Geometry) -> Tensor:
    """Decode structs int32 [batch, 4] of v1's `seq_lens`, `indices` and `extra_data`.

    A row without tokens, or whose page is negative, is padding.
    """
    rows = []
    for row, (seq_len, page) in enumerate(zip(seq_lens.tolist(), pages.tolist(), strict=True)):
        last = seq_len - 1
        before, current = _pages_by_ring(page, last) if extra is None and geometry.ratio == 4 else (page, page)
        if extra is not None:
            before = int(extra.reshape(-1)[row])
        target = _state_row(page, last, geometry, legacy=extra is None)
        padding = seq_len <= 0 or target is None
        rows.append([0, INVALID, INVALID, INVALID] if padding else [seq_len, target, _page(before), _page(current)])
    return torch.tensor(rows, dtype=torch.int32).view(-1, 4)


def _group(entry: list[int], plan: V1Plan, geometry: Geometry) -> list[int] | None:
    """A compress struct, None where the entry is no group."""
    ragged, request, position, window = entry
    ends = 0 <= position < _LARGEST and (position + 1) % geometry.ratio == 0
    if not (_named(ragged, request, plan) and ragged < MAX_TOKENS and ends and 0 <= window <= geometry.window):
        return None
    before = current = int(plan.pages[request])
    if geometry.ratio == 4 and plan.extra is None:
        before, current = _pages_by_ring(current, position)
    elif geometry.ratio == 4:
        assert plan.extra is not None
        current = int(plan.extra[request, 1])
        before = int(plan.extra[request, 0]) if window > 4 else current
    elif plan.extra is not None:
        before = current = int(plan.extra.reshape(-1)[request])
    packed = ragged | window << 16
    return [position + 1, packed, _page(before), _page(current)]


def _kept(entry: list[int], plan: V1Plan, geometry: Geometry) -> list[int] | None:
    """A write struct, None where the entry writes nothing."""
    ragged, request, position, _ = entry
    if not _named(ragged, request, plan) or position < 0:
        return None
    page = int(plan.pages[request])
    if geometry.ratio == 4 and plan.extra is not None and position < int(plan.extra[request, 3]):
        page = int(plan.extra[request, 2])
    target = _state_row(page, position, geometry, legacy=plan.extra is None)
    return None if target is None else [ragged, target]


def _named(ragged: int, request: int, plan: V1Plan) -> bool:
    return ragged >= 0 and 0 <= request < len(plan.pages)


def _state_row(page: int, position: int, geometry: Geometry, *, legacy: bool) -> int | None:
    """The row of a position in its page; None for no page, and for one that no plan can name."""
    rows = _LEGACY_RING if legacy and geometry.ratio == 4 else geometry.ratio
    row = page * rows + position % rows
    return row if page >= 0 and row <= _LARGEST else None


def _pages_by_ring(ring: int, position: int) -> tuple[int, int]:
    """Pages of the previous and of the own group in a ring of eight rows."""
    group = position // 4 % 2
    return ring * 2 + 1 - group, ring * 2 + group


def _page(page: int) -> int:
    return page if 0 <= page <= _LARGEST else INVALID
