"""sglang as a peer: its DeepSeek-V4 kernels, called as its own layers call them. Written against 0.5.23.

Its top-k is compiled with nvcc at the first call; its Triton attention tunes itself there, which takes minutes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from typing import Any

import torch

from dsv4gen.bench.peers import PeerCalls
from dsv4gen.bench.stopwatch import Thunk
from dsv4gen.reference.workload import Call, Request

_OPS = "sglang.kernels.ops.attention.dsv4"
_TOKEN_BYTES = 584
Values = Mapping[str, Any]
Written = Callable[[], Mapping[str, Any]]


def version() -> str:
    """The version of the installed distribution, or the package's own.

    Raises:
        ImportError: not installed.
    """
    package = importlib.import_module("sglang")
    try:
        return installed("sglang")
    except PackageNotFoundError:
        return str(getattr(package, "__version__", "unknown version"))


def prepare(request: Request, sets: Sequence[Sequence[Call]]) -> PeerCalls | None:
    """Calls of the kernels that do the same; none for other ops and options."""
    bind = _BINDERS.get((request.family, request.op))
    if bind is None or request.options.get("dialect", "e4m3fn") != "e4m3fn":
        return None
    bound = [bind(calls[0].arguments) for calls in sets]
    return PeerCalls([call for call, _ in bound], bound[0][1])


def _topk(values: Values) -> tuple[Thunk, Written]:
    kernels = importlib.import_module(f"{_OPS}.topk")
    out, lens, table = values["out"], values["seq_lens"], values.get("page_table")
    raw, page_size = values.get("raw_out"), 1 << values.get("page_bits", 0)
    plan = kernels.plan_topk_v2(lens)

    def call() -> None:
        kernels.topk_transform_paged_v2(values["scores"], lens, table, out, page_size, plan, raw)

    def written() -> Mapping[str, Any]:
        out.fill_(-7)
        call()
        return {"out": out} if raw is None else {"out": out, "raw_out": raw}

    return call, written


def _gather(values: Values) -> tuple[Thunk, Written]:
    kernels = importlib.import_module(f"{_OPS}.dequant_k_cache")
    rows, indices = torch.empty_like(values["out"]), values["indices"].flatten()

    def call() -> None:
        flat = rows.view(-1, 1, rows.shape[-1])
        kernels.dequantize_k_cache_paged_dsv4(values["cache"], indices, values["page_size"], out=flat)

    def written() -> Mapping[str, Any]:
        call()
        return {"out": rows, "mask": torch.zeros_like(values["mask"])}

    return call, written


def _attend(values: Values) -> tuple[Thunk, Written]:
    kernels = importlib.import_module(f"{_OPS}.triton_sparse_decode")
    last: dict[str, Any] = {}
    named: dict[str, Any] = {"k_cache": _pages(values, ""), "indices": values["indices"].unsqueeze(1)}
    if "extra_cache" in values:
        named["extra_k_cache"] = _pages(values, "extra_")
        named["extra_indices_in_kvcache"] = values["extra_indices"].unsqueeze(1)

    def call() -> None:
        q, scale, sink = values["q"].unsqueeze(1), values["scale"], values["sink"]
        last["out"], last["lse"] = kernels.triton_fp8_attention_fwd(
            q, softmax_scale=scale, head_dim_v=512, attn_sink=sink, **named
        )

    def written() -> Mapping[str, Any]:
        call()
        return {"out": last["out"].view_as(values["out"])}

    return call, written


def _pages(values: Values, prefix: str) -> Any:
    """The cache as sglang passes it: [pages, tokens, 1, 584], without the padding of a page."""
    cache, size = values[f"{prefix}cache"], values[f"{prefix}page_size"]
    return cache[:, : size * _TOKEN_BYTES].view(cache.shape[0], size, 1, _TOKEN_BYTES)


_BINDERS: dict[tuple[str, str], Callable[[Values], tuple[Thunk, Written]]] = {
    ("topk", "select"): _topk,
    ("gather_dequant", "gather"): _gather,
    ("sparse_decode", "attend"): _attend,
}
