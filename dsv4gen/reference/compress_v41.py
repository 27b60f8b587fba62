"""Records of V4.1: whole rows of 512 quantised, rotated part included.

    v41_528   512 e4m3 codes, and 16 UE8M0 scales of 32 values each
    v41_288   256 pairs of e2m1 codes, the even dimension low, and 32 e4m3fn scales of 16 values each

Scales lie behind a page's data, pages padded to 512 or 256 bytes; in records called `_inline` behind their token's own,
without padding. Upstream rounds a row to bf16 when it is normalised and again when it is rotated; `twice` here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dsv4gen.reference import fp8

if TYPE_CHECKING:
    from dsv4gen.reference.compress_store import Quantizer

HEAD_DIM = 512
#: the largest scale of a tile of FP4; the smallest is 2^-9, the smallest number of e4m3fn
FP4_LARGEST_SCALE, FP4_SMALLEST_SCALE = 448.0, 2.0**-9


@dataclass(frozen=True)
class Layout:
    """Bytes of one token: `data` codes, `scales` of `tile` values each; `inline` scales follow their own codes."""

    data: int
    scales: int
    inline: bool

    @property
    def tile(self) -> int:
        """Values that share a scale."""
        return HEAD_DIM // self.scales

    @property
    def of_fp4(self) -> bool:
        """Two codes a byte."""
        return self.data < HEAD_DIM

    @property
    def size(self) -> int:
        """Bytes of a token."""
        return self.data + self.scales

    def page_bytes(self, page_size: int) -> int:
        """Bytes of a page."""
        raw = self.size * page_size
        return raw if self.inline else -(-raw // self.data) * self.data

    def places(self, row: Tensor, page_size: int) -> tuple[Tensor, Tensor]:
        """First data byte and first scale byte of rows of a page."""
        if self.inline:
            return row * self.size, row * self.size + self.data
        return row * self.data, page_size * self.data + row * self.scales


LAYOUTS = {
    "v41_528": Layout(512, 16, False),
    "v41_528_inline": Layout(512, 16, True),
    "v41_288": Layout(256, 32, False),
    "v41_288_inline": Layout(256, 32, True),
}


def encode_rows(rows: Tensor, record: str, quant: Quantizer) -> tuple[Tensor, Tensor]:
    """Data bytes and scale bytes of float rows [n, 512], uint8 [n, data] and [n, scales]."""
    layout = LAYOUTS[record]
    tiles = quant.prepared(rows).view(len(rows), layout.scales, layout.tile)
    scales = encode_scales(tiles.abs().amax(-1), layout, quant)
    codes = encode_codes(tiles, decode_scales(scales, layout), layout, quant).view(len(rows), HEAD_DIM)
    return (codes[:, 0::2] | codes[:, 1::2] << 4 if layout.of_fp4 else codes), scales


def encode_scales(largest: Tensor, layout: Layout, quant: Quantizer) -> Tensor:
    """Scale bytes of tiles with these absolute maxima."""
    wanted = quant.scale(largest)
    return fp8.encode(wanted.clamp(max=FP4_LARGEST_SCALE), fp8.E4M3FN) if layout.of_fp4 else fp8.encode_scale(wanted)


def decode_scales(scales: Tensor, layout: Layout) -> Tensor:
    """Scales of their bytes, float32."""
    return fp8.decode(scales, fp8.E4M3FN) if layout.of_fp4 else fp8.decode_scale(scales)


def encode_codes(tiles: Tensor, scales: Tensor, layout: Layout, quant: Quantizer) -> Tensor:
    """Codes of prepared tiles [n, scales, tile] under their scales, one a byte."""
    return (quant.fp4_codes if layout.of_fp4 else quant.codes)(tiles, scales.unsqueeze(-1))


def judge(
    data: Tensor, scales: Tensor, candidates: list[Tensor], record: str, quant: Quantizer
) -> tuple[Tensor, Tensor]:
    """Which scales [n, scales] and codes [n, scales, tile] a row within rounding errors may have.

    Args:
        data, scales: what was stored.
        candidates: float64 [n, 512] each, what the rows may have been.
    """
    layout = LAYOUTS[record]
    codes = torch.stack([data & 15, data >> 4], -1) if layout.of_fp4 else data
    codes = codes.reshape(len(data), layout.scales, layout.tile)
    tiled = [quant.prepared(rows).view(codes.shape) for rows in candidates]
    used = decode_scales(scales, layout)
    allowed = torch.stack([decode_scales(encode_scales(t.abs().amax(-1), layout, quant), layout) for t in tiled])
    right = (used >= allowed.amin(0)) & (used <= allowed.amax(0)) | (torch.isnan(used) & torch.isnan(allowed).any(0))
    wanted = torch.stack([encode_codes(tiles, used, layout, quant) for tiles in tiled])
    return right, (wanted == codes).any(0) | torch.isnan(tiled[0])


def rounded_either_way(normed: Tensor, slack: Tensor, rope: int) -> list[Tensor]:
    """bf16 roundings of a normalised row known up to `slack`: even and odd rotated dimensions each down, plain or up.

    Args:
        normed, slack: float64 [n, 512].
        rope: dimensions at the end that will be rotated, in interleaved pairs.
    """
    rounded = [(normed + sign * slack).float().bfloat16().double() for sign in (-1, 0, 1)]
    found = []
    for even in rounded:
        for odd in rounded:
            row = even.clone()
            row[:, -rope + 1 :: 2] = odd[:, -rope + 1 :: 2]
            found.append(row)
    return found
