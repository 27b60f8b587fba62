"""Rows at which quantisers of small records decide, ties of codes and what lies about a floor, stored as they are."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from dsv4gen.reference.compare import check_exact
from dsv4gen.reference.compress_case import Arguments, Case, Tensors, make_case
from dsv4gen.reference.compress_store import FP4_FLOOR, FP4_TILE, page_bytes, store_rows
from dsv4gen.reference.compress_world import Options
from dsv4gen.reference.hazards import POISON_BYTE

_TIES = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0)


def fp4_ties() -> Tensor:
    """float32 [2, 128]: every tie of e2m1 under unit scale, what lies beside it, zeros of both signs."""
    ties = torch.tensor(_TIES)
    near = torch.cat([ties, ties * (1 - 2.0**-9), ties * (1 + 2.0**-9)])
    near = torch.cat([near, -near, torch.tensor([0.0, -0.0, -1e-9])]).repeat(6)[:256].view(2, 128)
    near.view(8, FP4_TILE)[:, 0] = 6.0
    return near


def floor_edges(floor: float = FP4_FLOOR) -> Tensor:
    """float32 [n, 128]: tiles whose largest element is a floor, the number before it or behind it, twice and half of it
    likewise, also in bf16; zero, the ends of the subnormal numbers, and what shares a scale with the floor."""
    exact = torch.tensor([floor / 2, floor, 2 * floor, 2.0**-126, 2.0**-149, 0.0, 1e-4], dtype=torch.float32)
    above, below = (torch.nextafter(exact, torch.tensor(end)) for end in (1.0, 0.0))
    coarse = exact.bfloat16().view(torch.int16)
    beside = [(coarse + step).view(torch.bfloat16).float() for step in (-1, 1)]
    largest = torch.cat([exact, above, below, beside[1], beside[0][:4]])
    largest = torch.cat([largest, largest.flip(0)])[: len(largest) // 4 * 4 + 4]
    parts = torch.cat([torch.ones(1), torch.linspace(-1, 1, FP4_TILE - 1)])
    return (largest[:, None] * parts).view(-1, 128)


def stored_case(name: str, rows: Tensor, options: Options) -> Case:
    """`finish_pooled` without its transformation: rows float32 [n, head_dim] to the cache, byte by byte."""
    count, dim = rows.shape
    page_size = 3
    pages = -(-count // page_size) + 1
    cache = torch.full((pages, page_bytes(options.record, dim, page_size)), POISON_BYTE, dtype=torch.uint8)
    slots = torch.randperm(pages * page_size, generator=torch.Generator().manual_seed(2))[:count]
    expected = cache.clone()
    store_rows(expected, page_size, slots, rows, options.record, options.quantizer())
    plan = torch.full((count, 4), 128, dtype=torch.int32)
    arguments: Arguments = {"pooled": rows, "plan": plan, "weight": torch.ones(dim), "cosines": torch.ones(1, 64)}
    arguments |= {"out_loc": slots, "cache": cache, "page_size": page_size, "ratio": 128, "decode": True}

    def judge(outputs: Tensors) -> None:
        check_exact(outputs["cache"], expected, name=f"{name} {options}: cache")

    return make_case(name, "finish_pooled", {**arguments, "transform": False, **options.keywords()}, ("cache",), judge)


def v41_edges() -> Tensor:
    """float32 [n, 512]: FP4 tiles of 16 whose scale is a tie of e4m3, its floor, its limit or beside them.

    Their codes are at ties under that scale; NaN, infinities and zeros come behind.
    """
    scales = torch.cat(
        [torch.tensor([2.0**-9, 2.0**-10, 2.0**-6, 448.0, 464.0, 1.0]), torch.arange(8, 17) / 8 + 1 / 16]
    )
    scales = torch.cat([scales, torch.arange(1, 8) * 2.0**-9 + 2.0**-10])
    above, below = (torch.nextafter(scales, torch.tensor(end)) for end in (1e9, 0.0))
    largest = 6 * torch.cat([scales, above, below, torch.zeros(2)])
    parts = torch.cat([torch.tensor([6.0]), torch.tensor(_TIES), -torch.tensor(_TIES[:7])]) / 6
    tiles = largest[:, None] * parts
    odd = torch.tensor([[torch.nan], [torch.inf], [-torch.inf], [-0.0]]) * torch.ones(4, 16)
    odd[0, 1:] = 1.5
    tiles = torch.cat([tiles, odd])
    return torch.cat([tiles, tiles[: -len(tiles) % 32]]).view(-1, 512)


def edge_cases() -> Iterator[Case]:
    """FP4 and V4.1 records at ties and floors, whatever a schedule draws."""
    for record in ("v41_288", "v41_528_inline"):
        for source in ("f32", "bf16"):
            yield stored_case(f"V4.1 scales of {source}", v41_edges(), Options(record=record, quant_source=source))
    for ties in ("even", "zero"):
        yield stored_case(f"FP4 ties to {ties}", fp4_ties(), Options(record="idx_fp4_68", fp4_ties=ties))
    for floor in ("amax_fp4", "amax_1e4"):
        for source in ("f32", "bf16"):
            options = Options(record="idx_fp4_68", floor=floor, quant_source=source)
            yield stored_case(f"FP4 about the floor {floor} of {source}", floor_edges(), options)
