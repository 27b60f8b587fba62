"""Inputs of indexer logits that are timed: full rows of random pages; in a prefill step four rows share a key more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dsv4gen.base.errors import VerifyError
from dsv4gen.reference import fp8
from dsv4gen.reference.indexer_logits import HEAD_DIM, TOKEN, prefill
from dsv4gen.reference.indexer_logits_cases import check_logits
from dsv4gen.reference.paged_bench import few_tokens
from dsv4gen.reference.workload import Arguments, Call, Request, Workload, unknown_op

OPS = ("decode", "prefill")
#: what FP8 instructions of some devices may add to an error of the contract's size
_FAST_SLACK = 2e-3
_CHUNK = 1 << 16
#: keys of a row that are compared
_COMPARED = 2048


def workload(request: Request) -> Workload:
    """Calls of one op; pages, queries and weights rotate over one pool."""
    if request.op not in OPS:
        raise unknown_op(request, OPS)
    batch, width, heads, queries, rows, page_size = request.sizes(
        "batch", "width", "heads", queries=1, rows=0, page_size=64
    )
    columns = -(-width // page_size)
    device, count = request.device, rows if request.op == "prefill" else batch * queries
    shared: dict[str, Any] = {
        "cache": random_keys(2 * batch * columns, page_size, request.options["dialect"], device),
        "out": torch.empty(count, width, device=device),
        "page_size": page_size,
        "seq_lens": torch.full((batch,), width, dtype=torch.int32, device=device),
    }
    if request.op == "prefill":
        row = torch.arange(rows, device=device, dtype=torch.int32)
        each = -(-rows // max(batch, 1))
        shared["requests"] = row // each
        shared["seq_lens"] = (width - (each - 1 - row % each) // 4).clamp(min=1)

    def make() -> Sequence[Call]:
        order = torch.randperm(2 * batch * columns, device=device)[: batch * columns]
        q = random_codes((count, heads, HEAD_DIM), request.options["query_dialect"], device)
        drawn = {
            "q": q if request.op == "prefill" else q.view(batch, queries, heads, HEAD_DIM),
            "weights": torch.randn(count, heads, device=device) * 0.01,
            "page_table": order.to(torch.int32).view(batch, columns),
        }
        return [Call(request.op, {**shared, **drawn})]

    def judge(_: Arguments, after: Arguments) -> None:
        _check(request, after, queries)

    return Workload(batch * width * TOKEN, make, judge)


def random_codes(shape: tuple[int, ...], dialect: str, device: str) -> Tensor:
    """uint8 codes of normal values."""
    codes = fp8.encode(torch.randn(_CHUNK), fp8.dialect_of(dialect)).to(device)
    return codes[torch.randint(0, _CHUNK, shape, device=device)]


def random_keys(pages: int, page_size: int, dialect: str, device: str) -> Tensor:
    """uint8 [pages, page_size * 132]: codes of normal values, then a float32 scale per token."""
    pool = torch.empty(pages, page_size * TOKEN, dtype=torch.uint8, device=device)
    middle = page_size * HEAD_DIM
    for first in range(0, pages, step := max(1, (1 << 25) // middle)):
        part = pool[first : first + step]
        part[:, :middle] = random_codes((len(part), middle), dialect, device)
        part[:, middle:] = (0.5 + torch.rand(len(part), page_size, device=device)).view(torch.uint8)
    return pool


def _check(request: Request, after: Any, queries: int) -> None:
    """The first keys of a few rows against the reference, and every seen logit finite.

    Raises:
        VerifyError: the first difference found.
    """
    out = after["out"]
    rows = few_tokens(out.shape[0])
    few = torch.tensor(rows, dtype=torch.int64)
    if request.op == "prefill":
        owner, lens = after["requests"].cpu()[few].long(), after["seq_lens"].cpu()[few]
    else:
        owner = few // queries
        lens = after["seq_lens"].cpu()[owner] - queries + 1 + few % queries
    for row, length in zip(rows, lens.tolist(), strict=True):
        if not bool(torch.isfinite(out[row, :length]).all()):
            raise VerifyError(f"out: row {row} has logits that were not written, or are not finite")
    width = min(out.shape[1], _COMPARED)
    page_size = after["page_size"]
    pages = after["page_table"][owner.to(out.device)][:, : -(-width // page_size)].long()
    expected = torch.zeros(len(rows), width, dtype=torch.float64)
    prefill(
        after["q"].view(out.shape[0], -1, HEAD_DIM)[few.to(out.device)].cpu(),
        after["weights"][few.to(out.device)].cpu(),
        after["cache"][pages.flatten()].cpu(),
        torch.arange(pages.numel(), dtype=torch.int32).view(pages.shape),
        torch.arange(len(rows)),
        lens.clamp(max=width),
        expected,
        page_size=page_size,
        dialect=request.options["dialect"],
        query_dialect=request.options["query_dialect"],
    )
    seen = torch.arange(width)[None] < lens[:, None]
    slack = _FAST_SLACK if request.options["sums"] == "fast" else 0.0
    found = out[few.to(out.device), :width].cpu()
    check_logits(found[seen], expected[seen], torch.ones(int(seen.sum()), dtype=torch.bool), name="out", slack=slack)
