"""Inputs of top-k calls that are timed: normal scores in full rows, pages in random order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dsv4gen.base.errors import VerifyError
from dsv4gen.reference.workload import Arguments, Call, Request, Workload, unknown_op


def workload(request: Request) -> Workload:
    """Calls of `select`; scores rotate, the page table does not."""
    if request.op != "select":
        raise unknown_op(request, ["select"])
    batch, width, k, page_bits = request.sizes("batch", "width", "k", page_bits=6)
    mode, device = request.options["mode"], request.device
    pages = -(-width // (1 << page_bits))
    numbers: dict[str, Any] = {
        "seq_lens": torch.full((batch,), width, dtype=torch.int32, device=device),
        "out": torch.empty(batch, k, dtype=torch.int32, device=device),
    }
    if mode != "indices":
        numbers["page_table"] = torch.rand(batch, pages, device=device).argsort(1).to(torch.int32)
        numbers["page_bits"] = page_bits
    if mode == "dual":
        numbers["raw_out"] = torch.empty(batch, k, dtype=torch.int32, device=device)

    def make() -> Sequence[Call]:
        return [Call("select", {**numbers, "scores": torch.randn(batch, width, device=device)})]

    def judge(_: Arguments, after: Arguments) -> None:
        check_full_rows(after, mode)

    return Workload(4 * batch * width, make, judge, agree=None)


def check_full_rows(values: Arguments, mode: str) -> None:
    """Judge a selection from rows without padding, where the tensors are: the values of `torch.topk`, each once.

    Raises:
        VerifyError: a wrong, missing or repeated entry.
    """
    scores, out = _tensor(values, "scores"), _tensor(values, "out").long()
    count = min(out.shape[1], scores.shape[1])
    positions = out if mode == "indices" else _positions(out, _tensor(values, "page_table"), int(values["page_bits"]))  # type: ignore[call-overload]
    if mode == "dual" and not torch.equal(_tensor(values, "raw_out").long()[:, :count], positions[:, :count]):
        raise VerifyError("raw_out and out name different entries")
    if bool((out[:, count:] != -1).any()):
        raise VerifyError("entries behind the last valid one are not -1")
    positions = positions[:, :count]
    if bool(((positions < 0) | (positions >= scores.shape[1])).any()):
        raise VerifyError("an entry names no score of its row")
    ordered = positions.sort(1).values
    if bool((ordered[:, 1:] == ordered[:, :-1]).any()):
        raise VerifyError("a score was selected twice")
    found = scores.gather(1, positions).sort(1, descending=True).values
    if not torch.equal(found, scores.topk(count, dim=1).values):
        raise VerifyError("the selected scores are not the largest")


def _positions(slots: Tensor, table: Tensor, page_bits: int) -> Tensor:
    """Positions of slots; -1 for a slot of no page of the row's table."""
    pages = table.shape[1]
    page = slots >> page_bits
    inside = (page >= 0) & (page < pages)
    position = table.long().argsort(1).gather(1, page.clamp(0, pages - 1))
    return torch.where(inside, (position << page_bits) | (slots & ((1 << page_bits) - 1)), -1)


def _tensor(values: Arguments, name: str) -> Tensor:
    found = values[name]
    assert isinstance(found, Tensor)
    return found
