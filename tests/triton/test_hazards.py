"""Hazards do what their names say, and poisoned buffers see stray writes."""

from __future__ import annotations

import pytest
import torch

from dsv4gen.base.errors import ArgumentError, VerifyError
from dsv4gen.base.hazard_names import HAZARD_NAMES
from dsv4gen.reference import hazards

SEED = 5


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(SEED)


def test_specs_may_list_every_hazard_and_no_other() -> None:
    assert set(HAZARD_NAMES) == set(hazards.HAZARDS)
    assert len(HAZARD_NAMES) == len(hazards.HAZARDS)


def test_every_hazard_keeps_shape_and_dtype_and_can_be_replayed() -> None:
    inputs = {
        "scores": torch.ones(8, 32),
        "lengths": torch.full((64,), 100, dtype=torch.int32),
        "indices": torch.arange(256, dtype=torch.int32).view(8, 32),
        "codes": torch.ones(8, 448, dtype=torch.uint8),
        "scales": torch.full((8, 7), 127, dtype=torch.uint8),
        "layout": torch.ones(4),
    }
    for hazard in hazards.HAZARDS.values():
        tensor = inputs[hazard.kind]
        spoiled = hazard.apply(tensor, 100, generator())
        assert (spoiled.shape, spoiled.dtype) == (tensor.shape, tensor.dtype), hazard.name
        assert torch.equal(spoiled.nan_to_num(), hazard.apply(tensor, 100, generator()).nan_to_num())
        if hazard.kind != "layout" and hazard.name != "equal_values":
            assert not torch.equal(spoiled, tensor), hazard.name


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("index_minus_one", {-1}),
        ("index_negative", {-2, -(2**31)}),
        ("index_past_end", {1000, 1001}),
        ("index_garbage", {2143289344, 2147483647}),
    ],
)
def test_index_hazards_only_add_what_they_name(name: str, allowed: set[int]) -> None:
    indices = torch.zeros(16, 16, dtype=torch.int32)
    spoiled = hazards.hazard(name).apply(indices, 1000, generator())
    assert set(spoiled.unique().tolist()) == allowed | {0}


def test_lengths_past_int32_saturate() -> None:
    lengths = torch.full((64,), 7, dtype=torch.int32)
    spoiled = hazards.hazard("length_above_width").apply(lengths, 10, generator())
    assert set(spoiled.unique().tolist()) == {7, 11, hazards.INT32_MAX}


def test_unknown_hazard_names_the_nearest() -> None:
    with pytest.raises(ArgumentError, match="did you mean 'index_minus_one'"):
        hazards.hazard("index_minus_on")


def test_hazards_of_filters_by_kind_in_order() -> None:
    chosen = hazards.hazards_of("lengths", ["nan", "length_zero", "strided", "length_below_k"])
    assert [hazard.name for hazard in chosen] == ["length_zero", "length_below_k"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.bool, torch.int32, torch.float32])
def test_poisoned_sees_writes_around_and_between_rows(dtype: torch.dtype) -> None:
    padded = hazards.poisoned((3, 4), dtype, row_padding=2, offset=1)
    assert padded.tensor.stride() == (6, 1)
    padded.tensor.zero_()
    padded.check_surroundings("out")
    for position in (-1, 4, 5, 10, 16):
        spoiled = hazards.poisoned((3, 4), dtype, row_padding=2, offset=1)
        item = spoiled.tensor.element_size()
        spoiled.raw[(spoiled.tensor.storage_offset() + position) * item] = 0
        with pytest.raises(VerifyError, match=f"first at element {position}"):
            spoiled.check_surroundings("out")


def test_poisoned_takes_empty_shapes_and_misaligns() -> None:
    assert hazards.poisoned((0, 5), torch.float32).tensor.numel() == 0
    aligned, moved = (hazards.poisoned((4,), torch.float32, offset=offset) for offset in (0, 1))
    assert moved.tensor.storage_offset() - aligned.tensor.storage_offset() == 1


def test_poisoned_again_has_the_same_geometry_and_is_whole() -> None:
    first = hazards.poisoned((2, 3), torch.bfloat16, row_padding=5, offset=1)
    first.tensor.zero_()
    second = first.again()
    assert (second.tensor.shape, second.tensor.stride()) == (first.tensor.shape, first.tensor.stride())
    assert second.raw.eq(hazards.POISON_BYTE).all()
    second.tensor.zero_()
    second.check_surroundings("out")
