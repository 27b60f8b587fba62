"""Top-k selection: the definition of right.

Scores are compared by canonical keys: integers in the order of the scores, NaN below -inf, both zeros equal. A
selection of a row with n valid columns is right when its first m = min(k, n) entries are distinct positions
below n whose keys are the m largest, as a multiset; the order of entries and the choice among equal keys are free.
Rows with n <= k list 0..n-1 in order. The other entries are -1. `Rules` says what further options ask for.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4gen.base.errors import ArgumentError, VerifyError
from dsv4gen.reference.topk_rows import NOTHING, Rows

NAN_KEY = 0
_SIGN = 1 << 31


@dataclass(frozen=True)
class Selection:
    """What a mode writes: `out` int32 [batch, k], and in mode `dual` also the positions `raw_out` int32 [batch, k]."""

    out: Tensor
    raw_out: Tensor | None = None


@dataclass(frozen=True)
class Rules:
    """Options of the family that narrow which selections are right.

    Attributes:
        tie_break: of equal keys at the border, `low` takes the lowest positions, `high` the highest, `none` any.
        nan_policy: with `drop`, a NaN's entry is -1: after the numbers, or in its place where a row is listed in order.
        sorted: `index` orders a row's entries by position.
    """

    tie_break: str = "none"
    nan_policy: str = "lowest"
    sorted: str = "none"

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ArgumentError(f"unknown {name} {getattr(self, name)!r}", remedy=f"one of {', '.join(choices)}")


CHOICES = {"tie_break": ("none", "low", "high"), "nan_policy": ("lowest", "drop"), "sorted": ("none", "index")}
#: the defaults
ANY = Rules()


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


def select(rows: Rows, k: int, rules: Rules = ANY) -> Selection:
    """One right selection of k entries per row: larger scores first, equal ones as `tie_break` says or by lower
    position, unless sorted; trivial rows in order."""
    raw = torch.full((len(rows), k), NOTHING, dtype=torch.int32)
    out = raw.clone()
    for row in range(len(rows)):
        positions = _select_row(rows.valid(row), k, rules)
        raw[row, : len(positions)] = positions.to(torch.int32)
        out[row, : len(positions)] = rows.entries(row, positions).to(torch.int32)
    return Selection(out, raw if rows.mode == "dual" else None)


def check_selection(selection: Selection, rows: Rows, rules: Rules = ANY) -> None:
    """Judge a selection at zero tolerance.

    Args:
        selection: what a kernel wrote; `raw_out` is needed in mode `dual`.
        rows: as given to the kernel. Each row of the page table must name distinct pages, or slots could not be
            told apart.
        rules: the options that the kernel was made for.

    Raises:
        VerifyError: the first row that is wrong, and how.
        ArgumentError: a page table that is not one-to-one, or no raw_out in mode `dual`.
    """
    for row in range(len(rows)):
        name = f"row {row} ({rows.length(row)} valid)"
        positions = rows.positions(row, selection.out[row].to(torch.int64), name)
        if rows.mode == "dual":
            if selection.raw_out is None:
                raise ArgumentError("mode 'dual' has two outputs, and raw_out is missing")
            _require(torch.equal(positions, selection.raw_out[row].to(torch.int64)), name, "out and raw_out differ")
        _check_row(positions, rows.valid(row), name, rules)


def _select_row(valid: Tensor, k: int, rules: Rules) -> Tensor:
    """Positions, int64 [min(k, len(valid))]; NOTHING for a NaN that is dropped."""
    if len(valid) <= k:
        positions = torch.arange(len(valid))
        return positions.where(~valid.isnan(), NOTHING) if rules.nan_policy == "drop" else positions
    if rules.tie_break == "high":
        backwards = torch.sort(canonical_keys(valid.flip(0)), descending=True, stable=True).indices[:k]
        found = len(valid) - 1 - backwards
    else:
        found = torch.sort(canonical_keys(valid), descending=True, stable=True).indices[:k]
    numbers = found[~valid[found].isnan()] if rules.nan_policy == "drop" else found
    numbers = numbers.sort().values if rules.sorted == "index" else numbers
    return torch.cat([numbers, torch.full((k - len(numbers),), NOTHING)])


def _check_row(entries: Tensor, valid: Tensor, name: str, rules: Rules) -> None:
    """One row's positions (int64 [k]) against its valid scores."""
    wanted = min(len(entries), len(valid))
    right = _select_row(valid, len(entries), rules)
    if len(valid) <= len(entries):
        _require_nothing(entries[wanted:], name, wanted)
        _require(torch.equal(entries[:wanted], right), name, "a row that is selected whole is not in order")
        return
    wanted = int((right != NOTHING).sum())
    chosen = entries[:wanted]
    _require_nothing(entries[wanted:], name, wanted)
    inside = (chosen >= 0) & (chosen < len(valid))
    _require(bool(inside.all()), name, f"{int((~inside).sum())} of the first {wanted} entries are outside the row")
    distinct = len(torch.unique(chosen))
    _require(distinct == wanted, name, f"only {distinct} of {wanted} entries are distinct")
    keys = canonical_keys(valid)
    best = keys[right[:wanted]].sort(descending=True).values
    found = keys[chosen].sort(descending=True).values
    wrong = int((best != found).sum())
    _require(wrong == 0, name, f"{wrong} of the {wanted} selected scores are not among the largest")
    if rules.sorted == "index":
        _require(bool((chosen[1:] > chosen[:-1]).all()), name, "entries are not in the order of their positions")
    if rules.tie_break != "none":
        wrong = int((right[:wanted].sort().values != chosen.sort().values).sum())
        _require(wrong == 0, name, f"equal scores are not those of tie_break {rules.tie_break}")


def _require_nothing(rest: Tensor, name: str, wanted: int) -> None:
    _require(bool((rest == NOTHING).all()), name, f"entries past the first {wanted} are not all {NOTHING}")


def _require(right: bool, name: str, what: str) -> None:
    if not right:
        raise VerifyError(f"{name}: {what}")
