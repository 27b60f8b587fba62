"""FlashInfer as a peer: its top-k with page table. Its modules are compiled at the first call, which takes long."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dsv4gen.bench.peers import PeerCalls
from dsv4gen.reference.workload import Call, Request


def version() -> str:
    """The package's version.

    Raises:
        ImportError: not installed.
    """
    return str(importlib.import_module("flashinfer").__version__)


def prepare(request: Request, sets: Sequence[Sequence[Call]]) -> PeerCalls | None:
    """Calls of `top_k_page_table_transform`; none for other ops and modes."""
    if (request.family, request.op) != ("topk", "select") or request.options["mode"] != "page_table":
        return None
    transform = importlib.import_module("flashinfer.topk").top_k_page_table_transform

    def bound(values: Mapping[str, Any]) -> Callable[[], None]:
        out, size = values["out"], 1 << values["page_bits"]
        return lambda: transform(
            values["scores"], values["page_table"], values["seq_lens"], out.shape[1], page_size=size, out=out
        )

    calls = [bound(calls[0].arguments) for calls in sets]
    out = sets[0][0].arguments["out"]

    def written() -> Mapping[str, Any]:
        out.fill_(-7)  # type: ignore[attr-defined]
        calls[0]()
        return {"out": out}

    return PeerCalls(calls, written)
