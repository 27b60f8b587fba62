"""Checks of a qk_norm_rope module; each raises on the first difference. The tests pass a shipped module, the mutation
tests one with a planted defect, the card's script its own stand-in for the worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from dsv4gen.reference.compress_store import check_stored, page_bytes, quantizer
from dsv4gen.reference.qk_norm_rope import keys, query_heads, rotary_table
from dsv4gen.reference.qk_norm_rope_case import check_rounded
from dsv4gen.reference.qk_norm_rope_cases import GROUPS, group_cases


class Worker(Protocol):
    """Runs launch functions of a module: the interpreter's worker, or a card."""

    def call(self, module: Path, function: str, **keywords: object) -> object:
        """Call a launch function; tensors change in place."""

    def allocate(self, size: int) -> Tensor:
        """Bytes that cost nothing until they are touched."""


Check = Callable[[Worker, Path], None]


def run_group(worker: Worker, module: Path, *, group: str) -> None:
    """Every call of a group of cases, judged."""
    for case in group_cases(group):
        worker.call(module, case.op, **dict(case.arguments))
        case.check()


def _far(worker: Worker, shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> Tensor:
    """A tensor whose entries lie gigabytes apart; only those that are touched take memory."""
    item = torch.empty((), dtype=dtype).element_size()
    last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    return worker.allocate(item * (last + 1)).view(dtype).as_strided(tuple(shape), tuple(strides))


def far_rows(worker: Worker, module: Path) -> None:
    """Strides beyond 2^31: tokens, heads, keys, angles and cache pages that lie that far apart."""
    generator = torch.Generator().manual_seed(3)
    table = rotary_table(torch.rand(5, 32, generator=generator) * 6.28, "interleaved")
    far_table = _far(worker, (5, 64), (1 << 30, 1), torch.float32)
    far_table.copy_(table.cosines)
    kv = _far(worker, (3, 512), ((1 << 30) + 16, 1), torch.bfloat16)
    kv.copy_(torch.randn(3, 512, generator=generator))
    kv_out = _far(worker, (3, 512), ((1 << 30) + 16, 1), torch.bfloat16)
    weight = torch.rand(512, generator=generator) + 0.5
    positions = torch.tensor([4, 0, 3])
    pages, page_size = 3, 2
    cache = _far(worker, (pages, page_bytes("v4_584", 512, page_size)), ((1 << 30) + 64, 1), torch.uint8).zero_()
    rows = keys(kv, positions, table, eps=1e-6, weight=weight)
    common = {
        "kv": kv, "kv_weight": weight, "cosines": far_table, "positions": positions, "cache": cache, "kv_out": kv_out,
        "slots": torch.tensor([5, 1, 2], dtype=torch.int32), "page_size": page_size,
    }  # fmt: skip
    for strides in ((1 << 30, 512, 1), (512, 1 << 30, 1)):
        q, q_out = (_far(worker, (3, 3, 512), strides, torch.bfloat16) for _ in range(2))
        q.copy_(torch.randn(3, 3, 512, generator=generator))
        worker.call(module, "qk_norm_rope_store", q=q, q_out=q_out, **common)
        check_rounded(q_out, query_heads(q, positions, table, eps=1e-6), f"heads {strides} apart")
        near = cache.clone()
        slots = torch.tensor([5, 1, 2])
        quant = quantizer("e4m3fn", source="f32")
        check_stored(near, torch.zeros_like(near), page_size, slots, rows, "v4_584", quant, "far pages")
        check_rounded(kv_out, rows, "keys far apart")


def far_splits(worker: Worker, module: Path) -> None:
    """Partial projections that lie 2^31 elements apart."""
    generator = torch.Generator().manual_seed(5)
    table = rotary_table(torch.rand(5, 32, generator=generator) * 6.28, "interleaved")
    partials = _far(worker, (3, 1, 2, 512), (1 << 30, 1024, 512, 1), torch.float32)
    partials.copy_(torch.randn(3, 1, 2, 512, generator=generator))
    q_out = torch.zeros(1, 2, 512, dtype=torch.bfloat16)
    positions = torch.tensor([2])
    cache = torch.zeros(1, page_bytes("v4_584", 512, 1), dtype=torch.uint8)
    worker.call(
        module, "qk_norm_rope_store", partials=partials, q_out=q_out, kv=torch.ones(1, 512, dtype=torch.bfloat16),
        kv_weight=torch.ones(512), cosines=table.cosines, positions=positions, cache=cache, page_size=1,
        slots=torch.tensor([-1], dtype=torch.int32),
    )  # fmt: skip
    check_rounded(q_out, query_heads(partials.double().sum(0), positions, table, eps=1e-6), "far splits")


CHECKS: Mapping[str, Check] = {
    **{group: partial(run_group, group=group) for group in GROUPS},
    "far_rows": far_rows,
    "far_splits": far_splits,
}
