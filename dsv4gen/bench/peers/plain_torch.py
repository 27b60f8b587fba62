"""torch as a peer: the op written with its library functions, as a user without a kernel would."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from dsv4gen.bench.peers import PeerCalls
from dsv4gen.reference.workload import Call, Request

Written = Mapping[str, Tensor]
Values = Mapping[str, Any]
_CODES, _DATA, _SCALES = 448, 576, 8


def version() -> str:
    """torch's version."""
    return torch.__version__


def prepare(request: Request, sets: Sequence[Sequence[Call]]) -> PeerCalls | None:
    """Calls of the op's torch version; none for other ops, and none for FP8 that torch does not know on the device."""
    make = _OPS.get((request.family, request.op))
    if make is None or request.options.get("dialect", "e4m3fn") != "e4m3fn":
        return None
    last: dict[str, Tensor] = {}

    def bound(values: Values) -> Callable[[], None]:
        return lambda: last.update(make(values))

    calls = [bound(calls[0].arguments) for calls in sets]

    def written() -> Written:
        calls[0]()
        return dict(last)

    return PeerCalls(calls, written)


def _topk(values: Values) -> Written:
    chosen = values["scores"].topk(values["out"].shape[1], dim=1, sorted=False).indices
    if "page_table" not in values:
        return {"out": chosen.to(torch.int32)}
    bits = values["page_bits"]
    pages = values["page_table"].gather(1, chosen >> bits)
    out = {"out": (pages << bits) | (chosen & ((1 << bits) - 1)).to(torch.int32)}
    return {**out, "raw_out": chosen.to(torch.int32)} if "raw_out" in values else out


def _by_token(pages: Tensor, page_size: int) -> Tensor:
    """[pages, tokens, bytes] of rows that lie side by side in a page."""
    return pages.view(pages.shape[0], page_size, -1)


def _rows(cache: Tensor, page_size: int, indices: Tensor) -> Tensor:
    """bfloat16 [tokens, width, 512]."""
    page, row = indices // page_size, indices % page_size
    middle = page_size * _DATA
    data = _by_token(cache[:, :middle], page_size)[page, row]
    scales = _by_token(cache[:, middle : middle + page_size * _SCALES], page_size)[page, row]
    codes = data[..., :_CODES].view(torch.float8_e4m3fn).float().view(*indices.shape, _SCALES - 1, -1)
    values = codes * torch.exp2(scales[..., :-1].float() - 127).unsqueeze(-1)
    return torch.cat([values.flatten(-2).bfloat16(), data[..., _CODES:].contiguous().view(torch.bfloat16)], -1)


def _gather(values: Values) -> Written:
    rows = [_rows(values["cache"], values["page_size"], values["indices"])]
    if "extra_cache" in values:
        rows.append(_rows(values["extra_cache"], values["extra_page_size"], values["extra_indices"]))
    out = torch.cat(rows, 1) if len(rows) > 1 else rows[0]
    return {"out": out, "mask": torch.zeros(out.shape[:2], dtype=torch.bool, device=out.device)}


def _attend(values: Values) -> Written:
    rows = _gather(values)["out"]
    logits = torch.matmul(values["q"], rows.transpose(1, 2)).float() * values["scale"]
    total = torch.logaddexp(logits.logsumexp(-1), values["sink"])
    weights = torch.exp(logits - total.unsqueeze(-1)).bfloat16()
    return {"out": torch.matmul(weights, rows)}


_OPS: dict[tuple[str, str], Callable[[Values], Written]] = {
    ("topk", "select"): _topk,
    ("gather_dequant", "gather"): _gather,
    ("gather_dequant", "gather_dual"): _gather,
    ("sparse_decode", "attend"): _attend,
}
