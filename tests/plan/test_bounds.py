"""What a kernel says of its tiles beside threads and shared memory is proven like those."""

from __future__ import annotations

import re

import pytest

from dsv4gen.base.errors import DsvError, ProofError
from dsv4gen.plan.ir import FamilyPlan
from tests.plan.planned import plan
from tests.specs import Copy

SPEC = "specs/families/compress.yaml"


def plan_compress(copy: Copy, target: str = "sm_90") -> FamilyPlan:
    """The compressor's plan by the edited specs."""
    return plan(copy, target, "compress")


def test_tiles_that_would_read_past_a_window_are_refused(copy: Copy) -> None:
    """Eight times 32 rows of a window that has 128: on a card, an illegal access."""
    split = plan_compress(copy).kernel("decode_split")
    wrong = {"num_warps": 4, "num_stages": 1, "lane_elements": 4, "dims": 16, "unroll": 8, "release": 2, "share": 1}
    reasons = [reason for tile, reason in split.refused_tiles if tile == wrong]
    assert len(reasons) == 1
    assert re.match(r"rows does not fit at .*= 256 rows, 128 over the limit of 128", reasons[0])
    for kernel in plan_compress(copy).kernels:
        if "unroll" in kernel.tiles[0] and "dims" in kernel.tiles[0]:
            assert max(tile["unroll"] * tile["num_warps"] * 128 // tile["dims"] for tile in kernel.tiles) == 128


def test_a_bound_depends_on_the_waves_of_a_target(copy: Copy) -> None:
    """Heads of 128 dimensions: 16 warps of 64 lanes read 32 rows, and eight times as many are no window."""
    wide = {"num_warps": 16, "num_stages": 1, "lane_elements": 4, "unroll": 8, "release": 1}
    for target, fits in (("sm_90", True), ("gfx950", False)):
        assert (wide in plan_compress(copy, target).kernel("decode_many").tiles) == fits


def test_a_bucket_with_such_a_tile_is_an_error_at_its_formula(copy: Copy) -> None:
    copy.edit(SPEC, "dims: 16, unroll: 4, release: 2, share: 1}}", "dims: 16, unroll: 8, release: 2, share: 1}}")
    with pytest.raises(ProofError, match="rows does not fit") as caught:
        plan_compress(copy)
    assert caught.value.place is not None
    assert caught.value.place.file.endswith(SPEC)


def test_a_bound_that_reads_an_unknown_name_is_refused(copy: Copy) -> None:
    copy.edit(SPEC, 'lane_elements // dims", most: 128}', 'lane_elements // dimms", most: 128}')
    with pytest.raises(DsvError, match="dimms"):
        plan_compress(copy)
