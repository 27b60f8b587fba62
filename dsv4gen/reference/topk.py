"""Top-k selection: the definition of right.

Scores are compared by canonical keys: integers in the order of the scores, NaN below -inf, both zeros equal. A
selection of a row with n valid columns is right when its first m = min(k, n) entries are distinct positions
below n whose keys are the m largest, as a multiset; the order of entries and the choice among equal keys are free.
Rows with n <= k list 0..n-1 in order. The other entries are -1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4gen.base.errors import ArgumentError, VerifyError

MODES = ("indices", "page_table", "dual")
NAN_KEY = 0
#: entries past min(k, seq_len)
NOTHING = -1
_SIGN = 1 << 31


@dataclass(frozen=True)
class Selection:
    """What a mode writes: `out` int32 [batch, k], and in mode `dual` also the positions `raw_out` int32 [batch, k]."""

    out: Tensor
    raw_out: Tensor | None = None


def canonical_keys(scores: Tensor) -> Tensor:
    """Order-preserving keys, int64, same shape: 0 for NaN, equal for both zeros, else one per bit pattern.

    Args:
        scores: float32, any shape.
    """
    signed = scores.contiguous().view(torch.int32).to(torch.int64)
    negative = signed < 0
    keys = torch.where(negative, -1 - signed, signed + _SIGN)
    keys = torch.where(scores == 0, _SIGN, keys)
    return torch.where(torch.isnan(scores), NAN_KEY, keys)


def valid_lengths(seq_lens: Tensor, width: int, *, pages: int | None = None, page_bits: int = 0) -> Tensor:
    """Valid columns per row, int64 [batch]: seq_lens clamped to the row's width and to what its pages hold."""
    limit = width if pages is None else min(width, pages << page_bits)
    return seq_lens.to(torch.int64).clamp(0, limit)


def page_slots(positions: Tensor, table_row: Tensor, page_bits: int) -> Tensor:
    """Slots of positions through one row's page table, int64: `table[p >> bits] << bits | low bits of p`."""
    pages = table_row.to(torch.int64)[positions >> page_bits]
    return (pages << page_bits) | (positions & ((1 << page_bits) - 1))


def select(
    scores: Tensor,
    seq_lens: Tensor,
    k: int,
    *,
    mode: str = "indices",
    page_table: Tensor | None = None,
    page_bits: int = 0,
) -> Selection:
    """One right selection: larger scores first, equal ones by lower position; trivial rows in order.

    Args:
        scores: float32 [batch, width].
        seq_lens: int32 [batch], any value.
        k: entries per row.
        mode: `indices`, `page_table` or `dual`.
        page_table: int32 [batch, pages], for the modes that use it.
        page_bits: log2 of the page size in positions.

    Raises:
        ArgumentError: an unknown mode, or a page table missing.
    """
    _check_mode(mode, page_table)
    batch, width = scores.shape
    lengths = _lengths(seq_lens, width, page_table, page_bits)
    raw = torch.full((batch, k), NOTHING, dtype=torch.int32)
    out = raw.clone()
    for row, length in enumerate(lengths.tolist()):
        positions = _select_row(scores[row, :length], k)
        raw[row, : len(positions)] = positions.to(torch.int32)
        slots = positions if page_table is None else page_slots(positions, page_table[row], page_bits)
        out[row, : len(positions)] = slots.to(torch.int32)
    return Selection(raw if mode == "indices" else out, raw if mode == "dual" else None)


def check_selection(
    selection: Selection,
    scores: Tensor,
    seq_lens: Tensor,
    *,
    mode: str = "indices",
    page_table: Tensor | None = None,
    page_bits: int = 0,
) -> None:
    """Judge a selection at zero tolerance.

    Args:
        selection: what a kernel wrote; `raw_out` is needed in mode `dual`.
        scores, seq_lens, mode, page_table, page_bits: as given to the kernel; see `select`. Each row of the
            table must name distinct pages, or slots could not be told apart.

    Raises:
        VerifyError: the first row that is wrong, and how.
        ArgumentError: an unknown mode, a page table missing or not one-to-one, or no raw_out in mode `dual`.
    """
    _check_mode(mode, page_table)
    lengths = _lengths(seq_lens, scores.shape[1], page_table, page_bits)
    for row, length in enumerate(lengths.tolist()):
        name = f"row {row} ({length} valid)"
        entries = selection.out[row].to(torch.int64)
        if page_table is not None:
            entries = _positions(entries, page_table[row], page_bits, length, name)
        if mode == "dual":
            if selection.raw_out is None:
                raise ArgumentError("mode 'dual' has two outputs, and raw_out is missing")
            _require(torch.equal(entries, selection.raw_out[row].to(torch.int64)), name, "out and raw_out differ")
        _check_row(entries, scores[row, :length], name)


def _select_row(valid: Tensor, k: int) -> Tensor:
    """Positions, int64 [min(k, len(valid))]."""
    if len(valid) <= k:
        return torch.arange(len(valid))
    return torch.sort(canonical_keys(valid), descending=True, stable=True).indices[:k]


def _check_row(entries: Tensor, valid: Tensor, name: str) -> None:
    """One row's positions (int64 [k]) against its valid scores."""
    wanted = min(len(entries), len(valid))
    chosen, rest = entries[:wanted], entries[wanted:]
    _require(bool((rest == NOTHING).all()), name, f"entries past the first {wanted} are not all {NOTHING}")
    inside = (chosen >= 0) & (chosen < len(valid))
    _require(bool(inside.all()), name, f"{int((~inside).sum())} of the first {wanted} entries are outside the row")
    distinct = len(torch.unique(chosen))
    _require(distinct == wanted, name, f"only {distinct} of {wanted} entries are distinct")
    if len(valid) <= len(entries):
        _require(torch.equal(chosen, torch.arange(wanted)), name, "a row that is selected whole is not in order")
        return
    keys = canonical_keys(valid)
    best = keys.topk(wanted).values
    found = keys[chosen].sort(descending=True).values
    wrong = int((best != found).sum())
    _require(wrong == 0, name, f"{wrong} of the {wanted} selected scores are not among the largest")


def _positions(entries: Tensor, table_row: Tensor, page_bits: int, length: int, name: str) -> Tensor:
    """Positions that a row's slots stand for; -1 stays -1."""
    slots, positions = page_slots(torch.arange(length), table_row, page_bits).sort()
    if len(slots) > 1 and bool((slots[1:] == slots[:-1]).any()):
        raise ArgumentError(f"{name}: the page table names a page twice, so slots do not tell positions apart")
    empty = entries == NOTHING
    if length == 0:
        _require(bool(empty.all()), name, f"entries of an empty row are not all {NOTHING}")
        return entries
    place = torch.searchsorted(slots, entries).clamp(max=length - 1)
    _require(bool(((slots[place] == entries) | empty).all()), name, "an entry is no slot of a valid position")
    return torch.where(empty, NOTHING, positions[place])


def _lengths(seq_lens: Tensor, width: int, page_table: Tensor | None, page_bits: int) -> Tensor:
    pages = None if page_table is None else page_table.shape[1]
    return valid_lengths(seq_lens, width, pages=pages, page_bits=page_bits)


def _check_mode(mode: str, page_table: Tensor | None) -> None:
    if mode not in MODES:
        raise ArgumentError(f"unknown mode {mode!r}", remedy=f"one of {', '.join(MODES)}")
    if (mode == "indices") != (page_table is None):
        raise ArgumentError(f"mode {mode!r} {'takes no' if mode == 'indices' else 'needs a'} page table")


def _require(right: bool, name: str, what: str) -> None:
    if not right:
        raise VerifyError(f"{name}: {what}")
