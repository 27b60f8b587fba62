"""The FP8 reference against torch's own types and against the values published with the bug reports."""

from __future__ import annotations

import pytest
import torch

from dsv4gen.base.errors import ArgumentError
from dsv4gen.reference import fp8
from dsv4gen.reference.compare import check_exact

TORCH_TYPES = [
    pytest.param(fp8.E4M3FN, torch.float8_e4m3fn, id="e4m3fn"),
    pytest.param(fp8.E4M3FNUZ, torch.float8_e4m3fnuz, id="e4m3fnuz"),
]
ALL_CODES = torch.arange(256, dtype=torch.uint8)


def codes_of(values: list[float], dialect: fp8.Dialect) -> list[int]:
    return fp8.encode(torch.tensor(values), dialect).tolist()


@pytest.mark.parametrize(("dialect", "dtype"), TORCH_TYPES)
def test_decode_equals_torch_on_all_codes(dialect: fp8.Dialect, dtype: torch.dtype) -> None:
    check_exact(fp8.decode(ALL_CODES, dialect), ALL_CODES.view(dtype).float(), name="decode")


@pytest.mark.parametrize(("dialect", "dtype"), TORCH_TYPES)
def test_encode_equals_torch_within_the_range(dialect: fp8.Dialect, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    spread = torch.exp2(torch.rand(1 << 16, generator=generator) * 24 - 14)
    values = spread * torch.randn(1 << 16, generator=generator).sign()
    ties = fp8.decode_table(dialect)[:-1].nan_to_num() + torch.tensor([0.0009765625])
    values = torch.cat([values, ties, torch.tensor([0.0, -0.0, 1e-30, -1e-30])])
    expected = values.clamp(-dialect.limit, dialect.limit).to(dtype).view(torch.uint8)
    check_exact(fp8.encode(values, dialect), expected, name="encode")


@pytest.mark.parametrize("dialect", fp8.DIALECTS.values(), ids=fp8.DIALECTS)
def test_encode_inverts_decode(dialect: fp8.Dialect) -> None:
    encoded = fp8.encode(fp8.decode(ALL_CODES, dialect), dialect)
    expected = ALL_CODES.clone()
    expected[list(dialect.nan_codes)] = dialect.nan_codes[0]
    check_exact(encoded, expected, name="codes")


def test_bl14_dialects_differ_by_two_and_at_the_special_codes() -> None:
    fn, fnuz = fp8.decode_table(fp8.E4M3FN), fp8.decode_table(fp8.E4M3FNUZ)
    comparable = torch.isfinite(fn) & torch.isfinite(fnuz) & (fn != 0)
    assert comparable.sum() == 252
    assert torch.equal(fnuz[comparable] / fn[comparable], torch.full((252,), 0.5))
    assert torch.isnan(fn).nonzero().flatten().tolist() == [0x7F, 0xFF]
    assert torch.isnan(fnuz).nonzero().flatten().tolist() == [0x80]
    assert (fn[~fn.isnan()].max().item(), fnuz[~fnuz.isnan()].max().item()) == (448.0, 240.0)
    assert fnuz[0x7F].item() == 240.0
    assert (fn[1].item(), fnuz[1].item()) == (2.0**-9, 2.0**-10)


def test_bl14_small_negatives_never_become_nan() -> None:
    assert codes_of([-1e-4, -0.0], fp8.E4M3FN) == [0x80, 0x80]
    assert codes_of([-1e-4, -0.0], fp8.E4M3FNUZ) == [0x00, 0x00]
    assert codes_of([-(2.0**-10)], fp8.E4M3FN) == [0x80]
    assert codes_of([-(2.0**-10)], fp8.E4M3FNUZ) == [0x81]
    assert codes_of([240.0, -240.0, 448.0, -448.0], fp8.E4M3FN) == [0x77, 0xF7, 0x7E, 0xFE]
    assert codes_of([240.0, -240.0, 448.0, -448.0], fp8.E4M3FNUZ) == [0x7F, 0xFF, 0x7F, 0xFF]


def test_bl16_scale_bytes() -> None:
    scales = fp8.decode_scale(torch.tensor([0, 1, 126, 127, 128, 254, 255], dtype=torch.uint8))
    expected = torch.tensor([2.0**-127, 2.0**-126, 0.5, 1.0, 2.0, 2.0**127, float("nan")])
    check_exact(scales, expected, name="scales")
    check_exact(fp8.encode_scale(fp8.decode_scale(ALL_CODES)), ALL_CODES, name="scale bytes")


def test_bl16_scales_between_powers_round_up() -> None:
    scales = torch.tensor([1.5, 1.0000001, 3e38, float("inf"), 0.0, float("nan")])
    assert fp8.encode_scale(scales).tolist() == [128, 128, 254, 254, 0, 255]


@pytest.mark.parametrize("dialect", fp8.DIALECTS.values(), ids=fp8.DIALECTS)
def test_bl16_extreme_tiles_keep_finite_scales(dialect: fp8.Dialect) -> None:
    tiles = torch.tensor([0.0, 1e-30, 1e30, float("inf")])[:, None].expand(4, 64)
    codes, scales = fp8.quantize_tiles(tiles, dialect)
    assert scales.max() <= fp8.SCALE_MAX
    assert codes[:2].eq(0).all()
    decoded = fp8.decode(codes, dialect) * fp8.decode_scale(scales)[:, None]
    assert torch.equal(decoded[0], torch.zeros(64))
    assert torch.allclose(decoded[2], tiles[2], rtol=1 / 16)
    assert not torch.isnan(decoded).any()


@pytest.mark.parametrize(("dialect", "smallest"), [(fp8.E4M3FN, 105), (fp8.E4M3FNUZ, 106)])
def test_smallest_scale_byte_of_the_writers(dialect: fp8.Dialect, smallest: int) -> None:
    _, scales = fp8.quantize_tiles(torch.zeros(1, 64), dialect)
    assert scales.tolist() == [smallest]


def test_quantized_values_are_within_half_a_step() -> None:
    values = torch.randn(256, 64, generator=torch.Generator().manual_seed(2)) * 3
    codes, scales = fp8.quantize_tiles(values, fp8.E4M3FN)
    decoded = fp8.decode(codes, fp8.E4M3FN) * fp8.decode_scale(scales)[:, None]
    step = torch.maximum(values.abs() / 16, fp8.decode_scale(scales)[:, None] * 2.0**-10)
    assert ((decoded - values).abs() <= step).all()


def test_unknown_dialect_names_the_nearest() -> None:
    with pytest.raises(ArgumentError, match="did you mean 'e4m3fn'"):
        fp8.dialect_of("e4m3nf")
