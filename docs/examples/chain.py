"""One decode step of a DeepSeek-V4 layer of ratio 4, from new tokens to attention, and how long each stage takes.

    python docs/examples/chain.py [--batch 1,64] [--tokens 16384,262144] [--heads 64] [--k 512]

    compress        each request's new token completes a group: one row to the cache of compressed tokens,
    compress keys   and one to the indexer's cache of keys
    logits          the indexer's score of every compressed token
    top-k           the k best, as slots of the cache of compressed tokens
    attention       over the last 128 tokens and those k

Needs a card, torch and triton. `tests/chain` runs the same stages small on the CPU, against their references.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import dsv4gen
from dsv4gen.reference.compress import Geometry
from dsv4gen.reference.compress_plan import RequestRing, decode_plan
from dsv4gen.reference.gather_dequant import V4
from dsv4gen.reference.paged_bench import random_pool

RATIO, WINDOW = 4, 128
#: tokens per page of the cache of compressed tokens (and of the indexer's keys), and of the sliding window's
PAGE, WINDOW_PAGE = 64, 256
HEAD, INDEX_HEAD, INDEX_HEADS = 512, 128, 64


@dataclass(frozen=True)
class Stage:
    """One call: `options` choose the code, `arguments` are tensors and numbers, outputs included."""

    name: str
    family: str
    op: str
    options: Mapping[str, str]
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Sizes:
    """What a step is made of; `tokens` are those of each request, the new one included, a multiple of 4."""

    batch: int
    tokens: int
    heads: int = 64
    k: int = 512
    index_heads: int = INDEX_HEADS

    @property
    def keys(self) -> int:
        """Compressed tokens of a request."""
        return self.tokens // RATIO


def make_stages(sizes: Sizes, device: str) -> list[Stage]:
    """The stages in order, over caches that hold the requests' earlier tokens; each reads what those before wrote."""
    batch, keys = sizes.batch, sizes.keys
    columns = -(-keys // PAGE)
    table = torch.randperm(batch * columns, device=device).to(torch.int32).view(batch, columns)
    new_slots = table[:, (keys - 1) // PAGE].long() * PAGE + (keys - 1) % PAGE
    compressed = random_rows(batch * columns, PAGE, device)
    index_keys = random_keys(batch * columns, device)
    lens = torch.full((batch,), keys, dtype=torch.int32, device=device)
    # Rows of 256 floats, as engines allocate them; what lies behind a row's keys is never read.
    scores = torch.empty(batch, -(-keys // 256) * 256, device=device)
    chosen = torch.empty(batch, sizes.k, dtype=torch.int32, device=device)
    return [
        _compress("compress", HEAD, "v4_584", compressed, new_slots, sizes),
        _compress("compress keys", INDEX_HEAD, "idx_fp8_132", index_keys, new_slots, sizes),
        Stage("logits", "indexer_logits", "decode", {}, {
            "q": random_codes((batch, 1, sizes.index_heads, INDEX_HEAD), device),
            "weights": torch.randn(batch, sizes.index_heads, device=device) * 0.02,
            "cache": index_keys, "page_table": table, "seq_lens": lens, "out": scores, "page_size": PAGE,
        }),
        Stage("top-k", "topk", "select", {"mode": "page_table"}, {
            "scores": scores, "seq_lens": lens, "page_table": table, "out": chosen, "page_bits": PAGE.bit_length() - 1,
        }),
        Stage("attention", "sparse_decode", "attend", {"scopes": "two"}, _attention(compressed, chosen, sizes, device)),
    ]  # fmt: skip


def _compress(name: str, head: int, record: str, cache: Tensor, slots: Tensor, sizes: Sizes) -> Stage:
    """Decode step of one compressor, whose ring holds each request's last eight rows."""
    geometry, device = Geometry(RATIO, head), cache.device
    plan = decode_plan(range(sizes.batch), [sizes.tokens] * sizes.batch, RequestRing(geometry.window), geometry)
    return Stage(name, "compress", "decode", {"record": record}, {
        "state": torch.randn(sizes.batch * geometry.window, geometry.width, device=device),
        "source": torch.randn(sizes.batch, geometry.width, device=device),
        "plan": plan.to(device), "bias": torch.randn(geometry.window, head, device=device),
        "weight": torch.rand(head, device=device) + 0.5, "cosines": torch.rand(sizes.tokens, 64, device=device),
        "out_loc": slots, "cache": cache, "page_size": PAGE, "ratio": RATIO, "eps": 1e-6,
    })  # fmt: skip


def _attention(compressed: Tensor, chosen: Tensor, sizes: Sizes, device: str) -> dict[str, Any]:
    """Queries, the window's cache with one page per request, and the selected tokens."""
    first = torch.arange(sizes.batch, device=device)[:, None] * WINDOW_PAGE
    window = min(WINDOW, sizes.tokens)
    return {
        "q": torch.randn(sizes.batch, sizes.heads, HEAD, device=device).bfloat16(),
        "cache": random_rows(sizes.batch, WINDOW_PAGE, device),
        "indices": (first + torch.arange(window, device=device)).to(torch.int32),
        "extra_cache": compressed, "extra_indices": chosen, "sink": torch.randn(sizes.heads, device=device),
        "out": torch.empty(sizes.batch, sizes.heads, HEAD, dtype=torch.bfloat16, device=device),
        "lse": torch.empty(sizes.batch, sizes.heads, device=device),
        "page_size": WINDOW_PAGE, "extra_page_size": PAGE, "queries": 1, "scale": HEAD**-0.5,
    }  # fmt: skip


def random_rows(pages: int, page_size: int, device: str) -> Tensor:
    """A cache of compressed or window tokens, values of about 1/8: scales three exponents lower, the bf16 part too."""
    pool = random_pool(pages, page_size, "e4m3fn", device)
    scales = pool[:, page_size * V4.data_row : page_size * (V4.data_row + V4.scale_row)]
    scales -= 3
    rows = pool[:, : page_size * V4.data_row].view(torch.bfloat16).view(pages, page_size, V4.data_row // 2)
    rows[..., V4.codes // 2 :] /= 8
    return pool


def random_codes(shape: tuple[int, ...], device: str) -> Tensor:
    """uint8 codes of e4m3fn below 2 in magnitude."""
    return torch.randint(0, 256, shape, dtype=torch.uint8, device=device) & 0xBF


def random_keys(pages: int, device: str) -> Tensor:
    """An indexer cache uint8 [pages, 8448]: codes, then a float32 scale per token."""
    pool = random_codes((pages, PAGE * (INDEX_HEAD + 4)), device)
    pool[:, PAGE * INDEX_HEAD :] = (0.01 + 0.02 * torch.rand(pages, PAGE, device=device)).view(torch.uint8)
    return pool


def loaded(stage: Stage) -> Callable[[], Any]:
    """The stage as a call of the kernel for the card in the machine."""
    op = dsv4gen.load(stage.family, **stage.options).op(stage.op)
    return lambda: op(**stage.arguments)


def check(stages: list[Stage]) -> None:
    """Selections name distinct slots of their requests' pages, and attention is finite.

    Raises:
        AssertionError: they do not.
    """
    arguments = {stage.name: stage.arguments for stage in stages}
    out, table = arguments["top-k"]["out"].cpu(), arguments["top-k"]["page_table"].cpu()
    for row, pages in zip(out.tolist(), table.tolist(), strict=True):
        real = [slot for slot in row if slot >= 0]
        assert len(set(real)) == len(real) == min(len(row), int(arguments["top-k"]["seq_lens"][0]))
        assert {slot // PAGE for slot in real} <= set(pages)
    assert bool(torch.isfinite(arguments["attention"]["out"]).all())


def microseconds(calls: list[Callable[[], Any]], repeats: int = 20) -> float:
    """One pass over the calls: the median replay of a graph of `repeats` passes."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            for call in calls:
                call()
    times = []
    for _ in range(9):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(float(start.elapsed_time(end)) * 1e3 / repeats)
    return statistics.median(times)


def rows(sizes: Sizes) -> Iterator[tuple[str, float]]:
    """Names and microseconds of the stages, then of the whole step as one graph."""
    stages = make_stages(sizes, "cuda")
    calls = [loaded(stage) for stage in stages]
    for call in calls:
        call()
    torch.cuda.synchronize()
    check(stages)
    for stage, call in zip(stages, calls, strict=True):
        yield stage.name, microseconds([call])
    yield "whole step", microseconds(calls)


def main() -> None:
    """Print a table per batch and length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", default="1,64")
    parser.add_argument("--tokens", default="16384,262144")
    parser.add_argument("--heads", type=int, default=64)
    parser.add_argument("--k", type=int, default=512)
    options = parser.parse_args()
    batches, tokens = ([int(word) for word in text.split(",")] for text in (options.batch, options.tokens))
    for count in tokens:
        for batch in batches:
            sizes = Sizes(batch, count, options.heads, options.k)
            print(f"{batch} requests of {count} tokens, {sizes.keys} keys each, {sizes.heads} heads, k {sizes.k}")
            for name, us in rows(sizes):
                print(f"  {name:14} {us:9.1f} us", flush=True)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
