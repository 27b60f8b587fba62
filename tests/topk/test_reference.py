"""The oracle itself: its keys, its selections, and that it rejects every kind of wrong output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from dsv4gen.base.errors import ArgumentError, VerifyError
from dsv4gen.reference.topk import NAN_KEY, Selection, canonical_keys, check_selection, select
from dsv4gen.reference.topk_rows import Rows
from dsv4gen.reference.topk_scores import SCORES, make_scores

K = 16
LENGTH = 40


@pytest.fixture
def scores() -> Tensor:
    return torch.randn(2, LENGTH, generator=torch.Generator().manual_seed(0))


def lengths(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.int32)


def test_keys_have_the_order_of_scores() -> None:
    ordered = [-np.inf, -65520.0, -1.0, -1e-45, 0.0, 1e-45, 1.0, 65504.0, 65520.0, np.inf]
    keys = canonical_keys(torch.tensor(ordered, dtype=torch.float32))
    assert bool((keys[1:] > keys[:-1]).all())
    assert bool((keys > NAN_KEY).all())


def test_special_keys() -> None:
    zeros = canonical_keys(torch.tensor([0.0, -0.0]))
    assert zeros[0] == zeros[1]
    patterns = torch.tensor([0x7FC00000, 0x7F800001, -1, -(2**31) + 0x7F800001], dtype=torch.int32)
    assert bool((canonical_keys(patterns.view(torch.float32)) == NAN_KEY).all())


def test_keys_agree_with_sorted_floats() -> None:
    row = make_scores("random_bits", 4096, 1, 5)
    row = row[~row.isnan()]
    by_key = row[canonical_keys(row).sort(stable=True).indices]
    assert torch.equal(by_key, row.sort().values)


def test_equals_torch_topk(scores: Tensor) -> None:
    chosen = select(Rows(scores, lengths(LENGTH, LENGTH)), K)
    values = torch.gather(scores, 1, chosen.out.long())
    assert torch.equal(values, scores.topk(K).values)


def test_trivial_and_empty_rows(scores: Tensor) -> None:
    out = select(Rows(scores, lengths(3, -5)), K).out
    assert out[0].tolist() == [0, 1, 2] + [-1] * (K - 3)
    assert out[1].tolist() == [-1] * K


def test_nan_is_taken_last() -> None:
    row = torch.full((1, LENGTH), float("nan"))
    row[0, 7] = -float("inf")
    assert select(Rows(row, lengths(LENGTH)), K).out[0].tolist() == [7, *range(7), *range(8, K)]


def test_pages(scores: Tensor) -> None:
    table = torch.tensor([[9, 2, 5, 0, 7], [1, 8, 3, 6, 4]], dtype=torch.int32)
    rows = Rows(scores, lengths(LENGTH, 20), "dual", page_table=table, page_bits=3)
    dual = select(rows, K)
    assert dual.raw_out is not None
    page, low = dual.raw_out // 8, dual.raw_out % 8
    assert torch.equal(dual.out, torch.gather(table, 1, page.long()) * 8 + low)
    check_selection(dual, rows)


def test_length_is_clamped_to_the_pages(scores: Tensor) -> None:
    table = torch.tensor([[3, 1], [0, 2]], dtype=torch.int32)
    out = select(Rows(scores, lengths(LENGTH, LENGTH), "page_table", page_table=table, page_bits=2), K).out
    assert (out[0] != -1).sum() == 8


@pytest.mark.parametrize("name", SCORES)
def test_accepts_its_own_selection(name: str) -> None:
    row = make_scores(name, 3000, 512, 1)[None]
    rows = Rows(row, lengths(3000))
    check_selection(select(rows, 512), rows)


def _swap_in_a_loser(out: Tensor) -> None:
    out[0, 3] = next(i for i in range(LENGTH) if i not in out[0])


def _repeat(out: Tensor) -> None:
    out[0, 3] = out[0, 4]


def _leave_the_row(out: Tensor) -> None:
    out[1, 0] = LENGTH


def _go_below_zero(out: Tensor) -> None:
    out[1, 0] = -2


def _leave_a_hole(out: Tensor) -> None:
    out[0, 5] = -1


PLANTED: dict[str, Callable[[Tensor], None]] = {
    "not among the largest": _swap_in_a_loser,
    "distinct": _repeat,
    "outside the row": _leave_the_row,
    "entries are outside": _go_below_zero,
    "1 of the first": _leave_a_hole,
}


@pytest.mark.parametrize("message", PLANTED)
def test_rejects(scores: Tensor, message: str) -> None:
    chosen = select(Rows(scores, lengths(LENGTH, LENGTH)), K)
    PLANTED[message](chosen.out)
    with pytest.raises(VerifyError, match=message):
        check_selection(chosen, Rows(scores, lengths(LENGTH, LENGTH)))


def test_rejects_a_trivial_row_out_of_order(scores: Tensor) -> None:
    rows = Rows(scores, lengths(LENGTH, 4))
    chosen = select(rows, K)
    chosen.out[1, :2] = torch.tensor([1, 0])
    with pytest.raises(VerifyError, match="not in order"):
        check_selection(chosen, rows)


def test_rejects_an_entry_past_the_selection(scores: Tensor) -> None:
    rows = Rows(scores, lengths(LENGTH, 4))
    chosen = select(rows, K)
    chosen.out[1, 9] = 9
    with pytest.raises(VerifyError, match="past the first 4"):
        check_selection(chosen, rows)


def test_rejects_outputs_that_do_not_match(scores: Tensor) -> None:
    table = torch.tensor([[1, 0], [0, 1]], dtype=torch.int32)
    both = lengths(LENGTH, LENGTH)
    rows = Rows(scores, both, "dual", page_table=table, page_bits=5)
    chosen = select(rows, K)
    assert chosen.raw_out is not None
    swapped, shifted = Selection(chosen.out, chosen.raw_out.flip(1)), Selection(chosen.out + 64)
    with pytest.raises(VerifyError, match="differ"):
        check_selection(swapped, rows)
    with pytest.raises(VerifyError, match="no slot"):
        check_selection(shifted, replace(rows, mode="page_table"))


def test_refuses_what_it_cannot_judge(scores: Tensor) -> None:
    table = torch.zeros(2, 5, dtype=torch.int32)
    chosen = select(Rows(scores, lengths(LENGTH, LENGTH)), K)
    with pytest.raises(ArgumentError, match="twice"):
        check_selection(chosen, Rows(scores, lengths(LENGTH, LENGTH), "page_table", page_table=table, page_bits=3))
    with pytest.raises(ArgumentError, match="needs a page table"):
        Rows(scores, lengths(1, 1), "dual")
    with pytest.raises(ArgumentError, match="unknown mode"):
        Rows(scores, lengths(1, 1), "pages")
    with pytest.raises(ArgumentError, match="takes no row_starts"):
        Rows(scores, lengths(1, 1), row_starts=lengths(1, 1))


def test_ragged_windows(scores: Tensor) -> None:
    rows = Rows(scores, lengths(20, 3), "ragged", row_starts=lengths(5, 7), out_offsets=lengths(100, -2))
    out = select(rows, K).out
    assert torch.equal(scores[0, 5:25].topk(K).indices, out[0] - 100)
    assert out[1].tolist() == [-2, -1, 0] + [-1] * (K - 3)
    check_selection(Selection(out), rows)
    with pytest.raises(VerifyError, match="outside the row"):
        check_selection(Selection(out + 5), rows)


def test_packed_windows(scores: Tensor) -> None:
    table = torch.tensor([[9, 2], [1, 8], [6, 3]], dtype=torch.int32)
    rows = Rows(
        scores,
        lengths(LENGTH, LENGTH),
        "packed",
        page_table=table,
        page_bits=4,
        row_starts=lengths(3, 1),
        row_to_batch=lengths(2, 3),
    )
    out = select(rows, K).out
    positions = scores[0, 3:35].topk(K).indices
    assert torch.equal(table[2].long()[positions // 16] * 16 + positions % 16, out[0].long())
    assert out[1].tolist() == [-1] * K
    check_selection(Selection(out), rows)
