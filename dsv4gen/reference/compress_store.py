"""Cache records of compressed tokens: quantise, store, and judge what a kernel stored.

    v4_584       448 e4m3 codes with one UE8M0 scale per 64, and 64 bf16 values; scales lie behind a page's data
    uniform_fp8  512 e4m3 codes with unit scale
    idx_fp8_132  128 e4m3 codes with one float32 scale, which is no power of two; scales lie behind a page's codes
    idx_fp4_68   64 pairs of e2m1 codes, the even dimension low, with one UE8M0 scale per 32 dimensions behind them
    bf16         head_dim bf16 values
    v41_*        see `compress_v41`

Rows whose slot is negative or past the pool are skipped, never redirected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4gen.base.errors import ArgumentError, VerifyError, did_you_mean
from dsv4gen.reference import compress_v41, fp8
from dsv4gen.reference.compress import ROPE
from dsv4gen.reference.gather_dequant import V4
from dsv4gen.reference.pages import require_room

#: values of e2m1 codes 0-7, and the largest
FP4_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
FP4_MAXIMUM, FP4_TILE = 6.0, 32
#: the floor of DeepSeek's and vLLM's FP4 writers, under which the scale would be below the smallest normal number
FP4_FLOOR = 6.0 * 2.0**-126
#: records with UE8M0 scales
_POWERS_OF_TWO = ("v4_584", "idx_fp4_68")
#: relative distance from a rounding tie within which float32 arithmetic may land on either side
TIE = 4e-6
#: the same in terms of the largest element of the row, for elements that nearly cancel
TIE_OF_ROW = 5e-7


@dataclass(frozen=True)
class Quantizer:
    """How a cache's writer makes codes.

    Attributes:
        dialect: encoding of the cache.
        maximum: what the largest element of a tile is scaled to at most.
        floor: smallest absolute maximum of a tile, or smallest scale where `floor_of_scale`.
        source: `bf16` rounds values to bf16 before they are quantised; `f32` does not.
        fp4_ties: `even`, or `zero` for ties toward zero without -0; for FP4 codes only.
    """

    dialect: fp8.Dialect
    maximum: float
    floor: float = 1e-4
    floor_of_scale: bool = False
    source: str = "bf16"
    fp4_ties: str = "even"

    def scale(self, largest: Tensor) -> Tensor:
        """Wanted scale of tiles with these absolute maxima, float32."""
        if self.floor_of_scale:
            return (largest.float() / self.maximum).clamp(min=self.floor)
        return largest.float().clamp(min=self.floor) / self.maximum

    def prepared(self, values: Tensor) -> Tensor:
        """What is quantised: float32, rounded to bf16 first where the cache asks for it."""
        values = values.float()
        return values.bfloat16().float() if self.source == "bf16" else values

    def codes(self, values: Tensor, scales: Tensor) -> Tensor:
        """Codes of prepared values under float32 scales, uint8."""
        scaled = (values / scales).clamp(-self.maximum, self.maximum)
        return fp8.encode(scaled, self.dialect)

    def fp4_codes(self, values: Tensor, scales: Tensor) -> Tensor:
        """e2m1 codes of prepared values under float32 scales, uint8: the nearest value; NaN becomes 0."""
        scaled = (values / scales).double()
        table = torch.tensor(FP4_VALUES, dtype=torch.float64)
        distance = (scaled.abs().clamp(max=FP4_MAXIMUM).unsqueeze(-1) - table).abs()
        # The first of two equally near codes is the one toward zero; codes of even values are even numbers.
        preferred = torch.arange(8) % 2 if self.fp4_ties == "even" else torch.arange(8)
        nearest = distance == distance.amin(-1, keepdim=True)
        code = torch.where(nearest, preferred, 99).argmin(-1)
        keeps_sign = (code > 0) | (self.fp4_ties == "even")
        signed = code | torch.where(torch.signbit(scaled) & keeps_sign, 8, 0)
        return torch.where(torch.isnan(scaled), 0, signed).to(torch.uint8)


def quantizer(
    dialect: str, *, maximum: str = "writer", floor: str = "record", source: str = "bf16", record: str = "v4_584"
) -> Quantizer:
    """A quantiser by the names of the spec's options; `record` has a floor of its own.

    Raises:
        ArgumentError: no such name.
    """
    chosen = fp8.dialect_of(dialect)
    floors = {"amax_1e4": (1e-4, False), "amax_1e8": (1e-8, False), "amax_1e12": (1e-12, False)}
    floors |= {"amax_fp4": (FP4_FLOOR, False), "scale_1e4": (1e-4, True)}
    if record in compress_v41.LAYOUTS and floor == "record":
        of_fp4 = compress_v41.LAYOUTS[record].of_fp4
        floors["record"] = (compress_v41.FP4_SMALLEST_SCALE, True) if of_fp4 else floors["scale_1e4"]
    else:
        floors["record"] = floors["amax_1e4"]
    if floor not in floors:
        raise ArgumentError(f"unknown floor {floor!r}{did_you_mean(floor, floors)}")
    if maximum not in ("writer", "limit"):
        raise ArgumentError(f"unknown maximum {maximum!r}")
    value, of_scale = floors[floor]
    return Quantizer(chosen, chosen.divisor if maximum == "writer" else chosen.limit, value, of_scale, source)


def record_bytes(record: str, head_dim: int) -> int:
    """Bytes of one token.

    Raises:
        ArgumentError: no such record, or one of another head dimension.
    """
    sizes = {("v4_584", 512): 584, ("uniform_fp8", 512): 512, ("bf16", head_dim): 2 * head_dim}
    sizes |= {("idx_fp8_132", 128): 132, ("idx_fp4_68", 128): 68}
    sizes |= {(name, compress_v41.HEAD_DIM): layout.size for name, layout in compress_v41.LAYOUTS.items()}
    if (record, head_dim) not in sizes:
        raise ArgumentError(f"no record {record!r} for head dimension {head_dim}")
    return sizes[record, head_dim]


def page_bytes(record: str, head_dim: int, page_size: int) -> int:
    """Bytes of a page, padded as the engines do it."""
    raw = record_bytes(record, head_dim) * page_size
    if record in compress_v41.LAYOUTS:
        return compress_v41.LAYOUTS[record].page_bytes(page_size)
    return V4.page_bytes(page_size) if record == "v4_584" else raw


def encode_rows(rows: Tensor, record: str, quant: Quantizer) -> tuple[Tensor, Tensor]:
    """Data bytes [n, data] and scale bytes [n, scale] of float rows [n, head_dim]; the pad byte is 0."""
    count = rows.shape[0]
    if record == "bf16":
        return rows.float().bfloat16().contiguous().view(torch.uint8), torch.zeros(count, 0, dtype=torch.uint8)
    if record in compress_v41.LAYOUTS:
        return compress_v41.encode_rows(rows, record, quant)
    if record == "uniform_fp8":
        return quant.codes(quant.prepared(rows), torch.ones(1)), torch.zeros(count, 0, dtype=torch.uint8)
    if record == "idx_fp4_68":
        tiles = quant.prepared(rows).view(count, -1, FP4_TILE)
        scale_bytes = fp8.encode_scale(quant.scale(tiles.abs().amax(-1)))
        codes = quant.fp4_codes(tiles, fp8.decode_scale(scale_bytes).unsqueeze(-1)).view(count, -1, 2)
        return codes[..., 0] | codes[..., 1] << 4, scale_bytes
    if record == "idx_fp8_132":
        values = quant.prepared(rows)
        scales = quant.scale(values.abs().amax(-1))
        scales = torch.where(torch.isnan(scales), torch.nan, scales)
        return quant.codes(values, scales[:, None]), scales[:, None].contiguous().view(torch.uint8)
    tiles = quant.prepared(rows[:, : V4.codes]).view(count, V4.tiles, V4.tile)
    scale_bytes = fp8.encode_scale(quant.scale(tiles.abs().amax(-1)))
    codes = quant.codes(tiles, fp8.decode_scale(scale_bytes).unsqueeze(-1)).view(count, V4.codes)
    rope = rows[:, -ROPE:].float().bfloat16().contiguous().view(torch.uint8)
    return torch.cat([codes, rope], 1), torch.cat([scale_bytes, torch.zeros(count, 1, dtype=torch.uint8)], 1)


def addresses(slots: Tensor, page_size: int, record: str, head_dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Page, first data byte in the page, first scale byte in the page; int64 [n] each."""
    page, row = slots.to(torch.int64) // page_size, slots.to(torch.int64) % page_size
    if record in compress_v41.LAYOUTS:
        return page, *compress_v41.LAYOUTS[record].places(row, page_size)
    scale = {"v4_584": V4.scale_row, "idx_fp8_132": 4, "idx_fp4_68": 4}.get(record, 0)
    data = record_bytes(record, head_dim) - scale
    return page, row * data, page_size * data + row * scale


def store_rows(pool: Tensor, page_size: int, slots: Tensor, rows: Tensor, record: str, quant: Quantizer) -> Tensor:
    """Write rows into a pool uint8 [pages, bytes] and return the bytes written, bool of the pool's shape.

    Raises:
        ArgumentError: pages that do not hold as many records.
    """
    require_room(pool, page_size, record_bytes(record, rows.shape[1]))
    keep = (slots >= 0) & (slots < pool.shape[0] * page_size)
    data, scales = encode_rows(rows[keep], record, quant)
    page, data_start, scale_start = addresses(slots[keep], page_size, record, rows.shape[1])
    written = torch.zeros_like(pool, dtype=torch.bool)
    for bytes_, start in ((data, data_start), (scales, scale_start)):
        place = (page[:, None], start[:, None] + torch.arange(bytes_.shape[1]))
        pool[place] = bytes_
        written[place] = True
    return written


def check_stored(
    pool: Tensor,
    before: Tensor,
    page_size: int,
    slots: Tensor,
    rows: Tensor,
    record: str,
    quant: Quantizer,
    name: str,
    alternatives: Sequence[Tensor] = (),
) -> None:
    """What a kernel stored for float64 `rows`, whose own arithmetic was float32, and nothing else.

    `alternatives` are rows that a rounding in between, at a tie's distance, would have given instead.

    A byte is right if the quantiser gives it for the row's value or for one at a rounding tie's distance; for bf16 the
    same holds per value. Everything outside the slots must be as in `before`.

    Raises:
        VerifyError: a byte differs by more, or lies where nothing should be written.
    """
    scratch = before.clone()
    written = store_rows(scratch, page_size, slots, rows.float(), record, quant)
    if not torch.equal(pool[~written], before[~written]):
        raise VerifyError(f"{name}: {int((pool != before)[~written].sum())} bytes written outside the stored slots")
    keep = (slots >= 0) & (slots < pool.shape[0] * page_size)
    page, data_start, scale_start = addresses(slots[keep], page_size, record, rows.shape[1])
    widths = [part.shape[1] for part in encode_rows(rows[:1].float(), record, quant)]
    data, scales = (
        pool[page[:, None], start[:, None] + torch.arange(width)]
        for start, width in zip((data_start, scale_start), widths, strict=True)
    )
    kept = [candidate[keep].double() for candidate in (rows, *alternatives)]
    if record in compress_v41.LAYOUTS:
        candidates = [near for candidate in kept for near in _near(candidate)]
        for part, right in zip(
            ("scales", "codes"), compress_v41.judge(data, scales, candidates, record, quant), strict=True
        ):
            _require(right, f"{name}: {part}")
        return
    _check_rows(data, scales, kept[0], record, quant, name)


def slack_of(rows: Tensor) -> Tensor:
    """How far float32 arithmetic may be off, by element."""
    return TIE * rows.abs() + TIE_OF_ROW * rows.nan_to_num(0, 0, 0).abs().amax(-1, keepdim=True)


def _near(rows: Tensor) -> list[Tensor]:
    slack = slack_of(rows)
    return [rows, rows - slack, rows + slack]


def _check_rows(data: Tensor, scales: Tensor, rows: Tensor, record: str, quant: Quantizer, name: str) -> None:
    exact, low, high = _near(rows)
    candidates = [low, exact, high]
    if record == "bf16":
        _check_bf16(data, candidates, name)
        return
    if record == "v4_584":
        _check_bf16(data[:, V4.codes :], [rows[:, -ROPE:] for rows in candidates], f"{name}: rotated part")
        tiled = [rows[:, : V4.codes].reshape(-1, V4.tiles, V4.tile) for rows in candidates]
        codes, count = data[:, : V4.codes].reshape(-1, V4.tiles, V4.tile), V4.tiles
        if bool(scales[:, count:].any()):
            raise VerifyError(f"{name}: the pad byte behind the scales is not 0")
        used = fp8.decode_scale(scales[:, :count])
    elif record == "uniform_fp8":
        tiled, codes = candidates, data
        used = torch.ones(len(data))
    elif record == "idx_fp4_68":
        tiled = [rows.view(len(rows), -1, FP4_TILE) for rows in candidates]
        codes = torch.stack([data & 15, data >> 4], -1).view(tiled[0].shape)
        used = fp8.decode_scale(scales)
    else:
        tiled, codes = [rows.unsqueeze(1) for rows in candidates], data.unsqueeze(1)
        used = scales.contiguous().view(torch.float32)
    if record != "uniform_fp8":
        _check_scales(used, tiled[1], record, quant, name)
    encode = quant.fp4_codes if record == "idx_fp4_68" else quant.codes
    wanted = [encode(quant.prepared(values), used.unsqueeze(-1)) for values in tiled]
    _require((torch.stack(wanted) == codes).any(0) | torch.isnan(tiled[1]), f"{name}: codes")


def _check_scales(used: Tensor, tiles: Tensor, record: str, quant: Quantizer, name: str) -> None:
    largest = quant.prepared(tiles).abs().amax(-1).double()
    near = [largest * (1 + sign * (2.0**-8 if quant.source == "bf16" else TIE)) for sign in (-1, 0, 1)]
    exact = quant.scale(largest)
    if record in _POWERS_OF_TWO:
        tie = [fp8.decode_scale(fp8.encode_scale(quant.scale(value))) for value in near]
        right = used == fp8.decode_scale(fp8.encode_scale(exact))
        # A maximum whose bf16 rounding is a tie may step over a power of two only if it is that close to one.
        right |= ((used == tie[0]) | (used == tie[2])) & _at_tie(tiles, quant)
        right |= torch.isnan(used) & torch.isnan(exact)
    else:
        low, high = quant.scale(near[0]), quant.scale(near[2])
        close = (used.double() / exact.double() - 1).abs() <= TIE
        right = (
            close | ((used >= low) & (used <= high) & _at_tie(tiles, quant)) | (torch.isnan(used) & torch.isnan(exact))
        )
    _require(right, f"{name}: scales")


def _at_tie(tiles: Tensor, quant: Quantizer) -> Tensor:
    """Whether the largest element's rounding, or the comparison with a power of two, is within a tie's distance."""
    values = tiles.abs().amax(-1)
    down, up = (quant.scale(quant.prepared(values * (1 + sign * TIE))) for sign in (-1, 1))
    return (down != up) & ~torch.isnan(values)


def _check_bf16(data: Tensor, candidates: list[Tensor], name: str) -> None:
    values = data.contiguous().view(torch.bfloat16).float()
    low, exact, high = (candidate.float().bfloat16().float() for candidate in candidates)
    _require(((values >= low) & (values <= high)) | (torch.isnan(values) & torch.isnan(exact)), name)


def _require(right: Tensor, name: str) -> None:
    if not bool(right.all()):
        wrong = (~right).nonzero()
        raise VerifyError(f"{name}: {len(wrong)} of {right.numel()} are wrong; first at {wrong[0].tolist()}")
