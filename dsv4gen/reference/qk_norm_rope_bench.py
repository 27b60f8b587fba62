"""Inputs of norm, rotation and store that are timed: random positions, every key in a slot of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dsv4gen.base.errors import ArgumentError
from dsv4gen.reference.compress_store import check_stored, page_bytes, quantizer
from dsv4gen.reference.paged_bench import few_tokens, page_of
from dsv4gen.reference.qk_norm_rope import KEY_DIM, RotaryTable, keys, query_heads, rms_norm
from dsv4gen.reference.qk_norm_rope_case import check_rounded
from dsv4gen.reference.workload import Call, Request, Workload, unknown_op

OPS = ("qk_norm_rope_store", "q_norm_rope", "k_norm_rope_store", "qk_norm")
EPS = 1e-6
_POSITIONS, _PAGE_SIZE = 65536, 256
#: options whose other choices nothing here makes
_FIXED = {"dtype": "bf16", "weight_dtype": "f32", "table_dtype": "f32", "position_dtype": "i64", "slot_dtype": "i32",
          "table": "interleaved", "record": "v4_584", "q_norm": "on"}  # fmt: skip


def workload(request: Request) -> Workload:
    """Calls of one op; heads and keys rotate, outputs with them."""
    if request.op not in OPS:
        raise unknown_op(request, OPS)
    for name, choice in _FIXED.items():
        if request.options[name] != choice:
            raise ArgumentError(f"only {name}={choice} is timed", remedy=f"leave {name} out")
    tokens, heads = request.sizes("tokens", heads=0)
    shared = _shared(request, tokens)

    def make() -> Sequence[Call]:
        return [Call(request.op, {**shared, **_heads(request, tokens, heads)})]

    def judge(_: Any, after: Any) -> None:
        _check(request, after, tokens)

    return Workload(tokens * (heads * 4 + 2) * KEY_DIM, make, judge)


def _shared(request: Request, tokens: int) -> dict[str, Any]:
    """What every set has in common: weights, and for the ops that take them the table, positions and the cache."""
    device, op = request.device, request.op
    weight = torch.rand(KEY_DIM, device=device) + 0.5
    if op == "qk_norm":
        return {"k_weight": weight, "eps": EPS}
    angles = torch.rand(_POSITIONS, 32, device=device) * 6.28
    found: dict[str, Any] = {
        "cosines": torch.stack([angles.cos(), angles.sin()], -1).flatten(1),
        "positions": torch.randint(0, _POSITIONS, (tokens,), device=device),
    }
    if op == "q_norm_rope":
        return {**found, "eps": EPS}
    pages = tokens // _PAGE_SIZE + 2
    found |= {
        "kv_weight": weight,
        "cache": torch.zeros(pages, page_bytes("v4_584", KEY_DIM, _PAGE_SIZE), dtype=torch.uint8, device=device),
        "slots": torch.arange(tokens, dtype=torch.int32, device=device),
        "page_size": _PAGE_SIZE,
    }
    return {**found, **({"eps": EPS} if op == "k_norm_rope_store" else {"q_eps": EPS, "kv_eps": EPS})}


def _heads(request: Request, tokens: int, heads: int) -> dict[str, Tensor]:
    """One set of inputs, and room for what they become."""
    found: dict[str, Tensor] = {}
    if request.op != "k_norm_rope_store":
        found["q"] = torch.randn(tokens, heads, KEY_DIM, device=request.device).bfloat16()
        found["q_out"] = torch.empty_like(found["q"])
    if request.op == "qk_norm":
        found["k"] = torch.randn(tokens, 1, KEY_DIM, device=request.device).bfloat16()
        found["k_out"] = torch.empty_like(found["k"])
    elif request.op != "q_norm_rope":
        found["kv"] = torch.randn(tokens, KEY_DIM, device=request.device).bfloat16()
    return found


def _check(request: Request, after: Any, tokens: int) -> None:
    """A few tokens against the reference.

    Raises:
        VerifyError: the first difference found.
    """
    chosen = few_tokens(tokens, 8)
    few = {name: value[chosen].cpu() for name, value in after.items() if name in ("q", "q_out", "k", "k_out", "kv")}
    if request.op == "qk_norm":
        check_rounded(few["q_out"], rms_norm(few["q"], None, EPS), "q_out")
        check_rounded(few["k_out"], rms_norm(few["k"], after["k_weight"].cpu(), EPS), "k_out")
        return
    positions = after["positions"][chosen].cpu()
    table = RotaryTable("interleaved", after["cosines"].cpu())
    if "q" in few:
        check_rounded(few["q_out"], query_heads(few["q"], positions, table, eps=EPS), "q_out")
    if "kv" in few:
        rows = keys(few["kv"], positions, table, eps=EPS, weight=after["kv_weight"].cpu())
        page = page_of(after["cache"], _PAGE_SIZE, after["slots"][chosen].tolist())
        options = request.options
        quant = quantizer(
            options["dialect"], maximum=options["fp8_max"], floor=options["floor"], source=options["quant_source"]
        )
        check_stored(page, page, len(chosen), torch.arange(len(chosen)), rows, "v4_584", quant, "cache")
