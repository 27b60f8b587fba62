"""Gather and dequantise rows of a paged FP8 KV cache: the definition of right, in plain torch on the CPU.

A page holds all its data rows, then all its scale rows, then padding. A data row is 448 e4m3 codes followed
by 64 bf16 values; a scale row is 7 UE8M0 bytes, one per 64 codes, and a pad byte that is never read.
Tensor shapes of such caches are not honest (`[pages, page_size, 1, 584]` over split pages), so everything
here works on the raw `[pages, page_bytes]` bytes and computes addresses itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4gen.base.errors import ArgumentError
from dsv4gen.reference import fp8
from dsv4gen.reference.pages import require_room


@dataclass(frozen=True)
class CacheLayout:
    """Bytes of one token and of one page; pages are padded to a multiple of `page_unit` bytes."""

    name: str
    codes: int
    rope: int
    tile: int
    scale_row: int
    page_unit: int

    @property
    def tiles(self) -> int:
        """Scales per token."""
        return self.codes // self.tile

    @property
    def width(self) -> int:
        """Elements of a dequantised row."""
        return self.codes + self.rope

    @property
    def data_row(self) -> int:
        """Bytes of a data row."""
        return self.codes + 2 * self.rope

    def page_bytes(self, page_size: int) -> int:
        """Bytes between pages that hold `page_size` tokens."""
        raw = page_size * (self.data_row + self.scale_row)
        return -(-raw // self.page_unit) * self.page_unit

    def data_offset(self, slot: int, page_size: int, page_stride: int) -> int:
        """Byte offset of a token's data row; Python integers, so it never wraps."""
        return slot // page_size * page_stride + slot % page_size * self.data_row

    def scale_offset(self, slot: int, page_size: int, page_stride: int) -> int:
        """Byte offset of a token's scale row."""
        in_page = page_size * self.data_row + slot % page_size * self.scale_row
        return slot // page_size * page_stride + in_page


#: the layout FlashMLA calls MODEL1
V4 = CacheLayout("v4", codes=448, rope=64, tile=64, scale_row=8, page_unit=576)
LAYOUTS = {V4.name: V4}


def store_tokens(
    pool: Tensor,
    page_size: int,
    slots: Tensor,
    codes: Tensor,
    scales: Tensor,
    rope: Tensor,
    layout: CacheLayout = V4,
) -> None:
    """Write tokens into a pool; rows whose slot is outside the pool are skipped, never redirected.

    Args:
        pool: uint8 [pages, page_bytes], written in place.
        page_size: tokens per page.
        slots: integer [n].
        codes: uint8 [n, 448].
        scales: uint8 [n, 7].
        rope: bfloat16 [n, 64].
    """
    slots = slots.to(torch.int64)
    keep = (slots >= 0) & (slots < pool.shape[0] * page_size)
    page, row = slots[keep] // page_size, slots[keep] % page_size
    data = torch.cat([codes[keep], rope[keep].contiguous().view(torch.uint8)], dim=1)
    pool[page[:, None], row[:, None] * layout.data_row + torch.arange(layout.data_row)] = data
    scale_start = page_size * layout.data_row + row[:, None] * layout.scale_row
    pool[page[:, None], scale_start + torch.arange(layout.tiles)] = scales[keep]


def load_tokens(pool: Tensor, page_size: int, slots: Tensor, dialect: fp8.Dialect, layout: CacheLayout = V4) -> Tensor:
    """Dequantised rows of valid slots, bfloat16 [n, 512].

    A product is exact where bfloat16 can hold it, rounds to nearest even among bfloat16's subnormals, and is
    infinite above its range; the rope part keeps its bits.

    Raises:
        ArgumentError: pages that do not hold as many tokens.
    """
    require_room(pool, page_size, layout.data_row + layout.scale_row)
    slots = slots.to(torch.int64)
    page, row = slots // page_size, slots % page_size
    data = pool[page[:, None], row[:, None] * layout.data_row + torch.arange(layout.data_row)]
    scale_start = page_size * layout.data_row + row[:, None] * layout.scale_row
    scale_bytes = pool[page[:, None], scale_start + torch.arange(layout.tiles)]
    values = fp8.decode(data[:, : layout.codes], dialect).double()
    scales = fp8.decode_scale(scale_bytes).double().repeat_interleave(layout.tile, dim=1)
    rope = data[:, layout.codes :].contiguous().view(torch.bfloat16)
    return torch.cat([(values * scales).to(torch.bfloat16), rope], dim=1)


def valid_entries(indices: Tensor, slots: int, lengths: Tensor | None, queries_per_batch: int) -> Tensor:
    """Which entries count: 0 <= index < slots and column < length of the batch row; bool [tokens, width]."""
    valid = (indices >= 0) & (indices.to(torch.int64) < slots)
    if lengths is not None:
        batch = torch.arange(indices.shape[0]) // queries_per_batch
        columns = torch.arange(indices.shape[1])
        valid &= columns[None, :] < lengths.to(torch.int64)[batch][:, None]
    return valid


def gather_dequant(
    pool: Tensor,
    indices: Tensor,
    out: Tensor,
    mask: Tensor,
    *,
    page_size: int,
    dialect: str,
    lengths: Tensor | None = None,
    queries_per_batch: int = 1,
    k_offset: int = 0,
    layout: CacheLayout = V4,
) -> None:
    """Write columns [k_offset, k_offset + width) of `out` and `mask`; all other columns keep what they hold.

    Args:
        pool: uint8 [pages, page_bytes].
        indices: int32 [tokens, width], global token slots; anything outside the pool is invalid.
        out: bfloat16 [tokens, columns, 512]; zeros where invalid.
        mask: bool [tokens, columns]; True where invalid.
        page_size: tokens per page, any positive number.
        dialect: `e4m3fn` or `e4m3fnuz`, of this cache.
        lengths: int32 [tokens / queries_per_batch], entries that count per batch row.
        queries_per_batch: tokens that share one batch row.
        k_offset: first column to write.

    Raises:
        ArgumentError: the columns do not fit into `out`, or the dialect is unknown.
    """
    tokens, width = indices.shape
    if k_offset < 0 or k_offset + width > out.shape[1]:
        raise ArgumentError(f"columns {k_offset}..{k_offset + width} do not fit into out's {out.shape[1]}")
    valid = valid_entries(indices, pool.shape[0] * page_size, lengths, queries_per_batch)
    rows = torch.zeros(tokens, width, layout.width, dtype=torch.bfloat16)
    rows[valid] = load_tokens(pool, page_size, indices[valid], fp8.dialect_of(dialect), layout)
    out[:, k_offset : k_offset + width] = rows
    mask[:, k_offset : k_offset + width] = ~valid
