"""Paged FP8 caches on a device for calls that are timed, and a few of their tokens on the CPU for the reference."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from dsv4gen.reference import fp8
from dsv4gen.reference.gather_dequant import V4

#: tokens drawn at a time
_CHUNK = 1 << 16
#: rows are a tenth of a normal distribution, as the contract's test of attention has them: scales 2^-5 to 2^-2
_SCALES, _TENTH = (122, 126), 0.1


def random_pool(pages: int, page_size: int, dialect: str, device: str) -> Tensor:
    """uint8 [pages, page_bytes]: finite codes, scales below 1, bf16 parts."""
    pool = torch.zeros(pages, V4.page_bytes(page_size), dtype=torch.uint8, device=device)
    data = pool[:, : page_size * V4.data_row].view(pages, page_size, V4.data_row)
    codes = fp8.encode(torch.randn(_CHUNK), fp8.dialect_of(dialect)).to(device)
    for first in range(0, pages, step := max(1, _CHUNK // page_size)):
        part = data[first : first + step]
        count = part.shape[0] * page_size
        drawn = torch.randint(0, _CHUNK, (count, V4.codes), device=device)
        part[..., : V4.codes] = codes[drawn].view(*part.shape[:2], V4.codes)
        rope = (_TENTH * torch.randn(count, V4.rope, device=device)).bfloat16().view(torch.uint8)
        part[..., V4.codes :] = rope.view(*part.shape[:2], 2 * V4.rope)
    scales = pool[:, page_size * V4.data_row : page_size * (V4.data_row + V4.scale_row)]
    scales.copy_(torch.randint(*_SCALES, scales.shape, device=device, dtype=torch.uint8))
    return pool


def random_slots(tokens: int, width: int, slots: int, device: str) -> Tensor:
    """int32 [tokens, width]: any slots of the cache, as an indexer selects them."""
    return torch.randint(0, slots, (tokens, width), device=device, dtype=torch.int32)


def window_slots(tokens: int, width: int, slots: int, device: str) -> Tensor:
    """int32 [tokens, width]: `width` neighbours from a random slot on, as a sliding window has them."""
    start = torch.randint(0, max(1, slots - width + 1), (tokens, 1), device=device)
    return (start + torch.arange(width, device=device)).to(torch.int32)


def few_tokens(count: int, most: int = 4) -> list[int]:
    """Numbers of a few of `count` tokens or rows: the ends and some between."""
    return sorted({round(position * (count - 1) / max(1, most - 1)) for position in range(most)}) if count else []


def page_of(pool: Tensor, page_size: int, slots: Iterable[int]) -> Tensor:
    """uint8 [1, page_bytes] on the CPU: one page that holds the tokens of some slots, in that order."""
    chosen = torch.tensor(list(slots), dtype=torch.int64, device=pool.device)
    page, row = chosen // page_size, chosen % page_size
    made = torch.zeros(1, V4.page_bytes(len(chosen)), dtype=torch.uint8)
    middle = len(chosen) * V4.data_row
    data = pool[page[:, None], row[:, None] * V4.data_row + torch.arange(V4.data_row, device=pool.device)]
    first = page_size * V4.data_row + row[:, None] * V4.scale_row
    scales = pool[page[:, None], first + torch.arange(V4.scale_row, device=pool.device)]
    made[0, :middle] = data.flatten().cpu()
    made[0, middle : middle + len(chosen) * V4.scale_row] = scales.flatten().cpu()
    return made


def tokens_of(pool: Tensor, page_size: int, indices: Tensor) -> tuple[Tensor, Tensor]:
    """A page on the CPU with just the slots that valid indices name, and the indices into it."""
    slots, inverse = torch.unique(indices.cpu().long(), return_inverse=True)
    return page_of(pool, page_size, slots.tolist()), inverse.to(torch.int32)
