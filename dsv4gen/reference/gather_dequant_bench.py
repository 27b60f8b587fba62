"""Inputs of gather calls that are timed: every index valid, rows written in full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dsv4gen.base.errors import VerifyError
from dsv4gen.reference.compare import check_exact
from dsv4gen.reference.gather_dequant import gather_dequant
from dsv4gen.reference.paged_bench import few_tokens, random_pool, random_slots, tokens_of, window_slots
from dsv4gen.reference.workload import Arguments, Call, Request, Workload, agree_exactly, unknown_op

OPS = ("gather", "gather_dual")
#: bytes of a token that are read, with its index
_READ = 588


def workload(request: Request) -> Workload:
    """Calls of `gather` or `gather_dual`; indices rotate."""
    if request.op not in OPS:
        raise unknown_op(request, OPS)
    tokens, width, page_size, pages, extra_width, extra_page_size, extra_pages = request.sizes(
        "tokens", "width", page_size=64, pages=2048, extra_width=0, extra_page_size=64, extra_pages=2048
    )
    device, options, two = request.device, request.options, request.op == "gather_dual"
    columns = width + (extra_width if two else 0)
    shared: dict[str, Any] = {
        "cache": random_pool(pages, page_size, options["dialect"], device),
        "page_size": page_size,
        "out": torch.empty(tokens, columns, 512, dtype=torch.bfloat16, device=device),
        "mask": torch.empty(tokens, columns, dtype=torch.bool, device=device),
    }
    if two:
        shared["extra_cache"] = random_pool(extra_pages, extra_page_size, options["extra_dialect"], device)
        shared["extra_page_size"] = extra_page_size

    def make() -> Sequence[Call]:
        one = window_slots if two else random_slots
        drawn = {"indices": one(tokens, width, pages * page_size, device)}
        if two:
            drawn["extra_indices"] = random_slots(tokens, extra_width, extra_pages * extra_page_size, device)
        return [Call(request.op, {**shared, **drawn})]

    def judge(_: Arguments, after: Arguments) -> None:
        _check(after, [options["dialect"], options["extra_dialect"]] if two else [options["dialect"]])

    return Workload(tokens * columns * _READ, make, judge, most_sets=256, agree=agree_exactly)


def _check(values: Any, dialects: Sequence[str]) -> None:
    """A few tokens bit by bit, the whole mask, and no value left unwritten.

    Raises:
        VerifyError: the first difference found.
    """
    out, mask = values["out"], values["mask"]
    if bool(mask.view(torch.uint8).any()):
        raise VerifyError("mask: valid entries are marked, or were not written")
    if not bool(torch.isfinite(out).all()):
        raise VerifyError("out has elements that were not written, or are not finite")
    chosen = few_tokens(out.shape[0])
    expected = torch.empty(len(chosen), *out.shape[1:], dtype=out.dtype)
    unused, first = torch.empty(expected.shape[:2], dtype=torch.bool), 0
    for prefix, dialect in zip(("", "extra_"), dialects, strict=False):
        indices = values[f"{prefix}indices"][chosen]
        pool, inside = tokens_of(values[f"{prefix}cache"], values[f"{prefix}page_size"], indices)
        size = int(inside.max()) + 1
        gather_dequant(pool, inside, expected, unused, page_size=size, dialect=dialect, k_offset=first)
        first += indices.shape[1]
    check_exact(out[chosen].cpu(), expected, name="out")
