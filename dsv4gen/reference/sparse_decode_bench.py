"""Inputs of sparse decode attention that are timed: a window of the first cache, selected tokens of the second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dsv4gen.base.errors import VerifyError
from dsv4gen.reference.compare import check_attention, check_lse
from dsv4gen.reference.paged_bench import few_tokens, random_pool, random_slots, tokens_of, window_slots
from dsv4gen.reference.sparse_decode import Scope, attend
from dsv4gen.reference.workload import Arguments, Call, Request, Workload, unknown_op

SCALE = 512**-0.5
_TOKEN_BYTES = 584


def workload(request: Request) -> Workload:
    """Calls of `attend`; indices and queries rotate, the caches are far larger than a device's cache."""
    if request.op != "attend":
        raise unknown_op(request, ["attend"])
    tokens, heads, width, page_size, pages, extra_width, extra_page_size, extra_pages = request.sizes(
        "tokens", "heads", "width", page_size=64, pages=2048, extra_width=0, extra_page_size=64, extra_pages=0
    )
    device, options = request.device, request.options
    shared: dict[str, Any] = {
        "cache": random_pool(pages, page_size, options["dialect"], device),
        "page_size": page_size,
        "sink": torch.randn(heads, device=device),
        "out": torch.empty(tokens, heads, 512, dtype=torch.bfloat16, device=device),
        "lse": torch.empty(tokens, heads, device=device),
        "scale": SCALE,
    }
    two = options["scopes"] == "two" and extra_pages > 0 and extra_width > 0
    if two:
        shared["extra_cache"] = random_pool(extra_pages, extra_page_size, options["extra_dialect"], device)
        shared["extra_page_size"] = extra_page_size
    if options["reduce"] == "last_arriver":
        shared["counters"] = torch.zeros(tokens * heads, dtype=torch.int32, device=device)

    def make() -> Sequence[Call]:
        drawn = {
            "q": torch.randn(tokens, heads, 512, device=device).clamp(-1, 1).bfloat16(),
            "indices": window_slots(tokens, width, pages * page_size, device),
        }
        if two:
            drawn["extra_indices"] = random_slots(tokens, extra_width, extra_pages * extra_page_size, device)
        return [Call("attend", {**shared, **drawn})]

    def judge(_: Arguments, after: Arguments) -> None:
        _check(after, options["dialect"], options["extra_dialect"], two)

    keys = width + (extra_width if two else 0)
    set_bytes, unit = tokens * (keys * _TOKEN_BYTES + heads * 1024), ("KV token", tokens * keys)
    return Workload(set_bytes, make, judge, most_sets=300, unit=unit)


def _check(values: Any, dialect: str, extra_dialect: str, two: bool) -> None:
    """A few tokens by the contract's rule, and every output finite.

    Raises:
        VerifyError: the first difference found.
    """
    out, lse = values["out"], values["lse"]
    if not bool(torch.isfinite(out).all()) or not bool(torch.isfinite(lse).all()):
        raise VerifyError("out or lse has elements that were not written, or are not finite")
    chosen = few_tokens(out.shape[0])
    names = [("", dialect), ("extra_", extra_dialect)] if two else [("", dialect)]
    scopes = []
    for prefix, encoding in names:
        pool, indices = tokens_of(
            values[f"{prefix}cache"], values[f"{prefix}page_size"], values[f"{prefix}indices"][chosen]
        )
        scopes.append(Scope(pool, max(1, int(indices.max()) + 1), indices, dialect=encoding))
    expected = attend(values["q"][chosen].cpu(), scopes, scale=values["scale"], sink=values["sink"].cpu())
    check_lse(lse[chosen].cpu(), expected[1])
    check_attention(out[chosen].cpu(), expected[0])
