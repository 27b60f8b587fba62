"""What a kernel says of its tiles beside threads and shared memory is proven like those."""

from __future__ import annotations

import re

import pytest

from dsv4gen.base.errors import ProofError
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.plan.make import make_plan
from dsv4gen.spec import load_specs
from dsv4gen.target import resolve_target
from tests.specs import Copy

SPEC = "specs/families/compress.yaml"


def plan_compress(copy: Copy, target: str = "sm_90") -> FamilyPlan:
    """The compressor's plan by the edited specs."""
    specs = load_specs(copy.folder / "specs")
    return make_plan(specs.families["compress"], resolve_target(specs, target))


def test_tiles_that_would_read_past_a_window_are_refused(copy: Copy) -> None:
    """Eight times 32 rows of a window that has 128: on a card, an illegal access."""
    split = plan_compress(copy).kernel("decode_split")
    wrong = {"num_warps": 4, "num_stages": 1, "lane_elements": 4, "dims": 16, "unroll": 8, "release": 2}
    reasons = [reason for tile, reason in split.refused_tiles if tile == wrong]
    assert len(reasons) == 1
    assert re.match(r"rows does not fit at .*= 256 rows, 128 over the limit of 128", reasons[0])
    for kernel in plan_compress(copy).kernels:
        if "unroll" in kernel.tiles[0] and "dims" in kernel.tiles[0]:
            assert max(tile["unroll"] * tile["num_warps"] * 128 // tile["dims"] for tile in kernel.tiles) == 128


def test_a_bucket_with_such_a_tile_is_an_error_at_its_formula(copy: Copy) -> None:
    copy.edit(SPEC, "dims: 16, unroll: 4, release: 2}}", "dims: 16, unroll: 8, release: 2}}")
    with pytest.raises(ProofError, match="rows does not fit") as caught:
        plan_compress(copy)
    assert caught.value.place is not None
    assert caught.value.place.file.endswith(SPEC)


def test_a_bound_that_reads_an_unknown_name_is_refused(copy: Copy) -> None:
    copy.edit(SPEC, 'lane_elements // dims", most: 128}', 'lane_elements // dimms", most: 128}')
    with pytest.raises(Exception, match="dimms"):
        plan_compress(copy)
