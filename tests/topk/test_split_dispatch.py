"""When rows are split, over how many blocks, in which order on the dies, and with how much memory."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import pytest

from dsv4gen.base.manifest import Manifest
from dsv4gen.emit.build import make_plans
from dsv4gen.emit.manifest import make_manifest, plan_files
from dsv4gen.report.explain import explain_shape
from dsv4gen.runtime.dispatch import Decision, decide, usual_facts, with_dies
from tests.topk.host import topk_specs

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250", "sm_80", "sm_89", "sm_120")


DEFAULT: Mapping[str, str] = {}
OPTIONS = ({"tie_break": "low"}, {"sorted": "index"}, {"tie_break": "high", "sorted": "index", "nan_policy": "drop"})


@lru_cache(maxsize=16)
def manifest(target: str) -> Manifest:
    plans = make_plans(topk_specs(), target, ["topk"])
    return make_manifest(plans[0].target, ["topk"], plan_files(plans))


def decision(target: str, batch: int, width: int, options: Mapping[str, str] = DEFAULT, **facts: int) -> Decision:
    made = manifest(target)
    shape = {"units": 256, "xcds": 1, **facts, "batch": batch, "width": width, "k": 512}
    return decide("topk", made.families["topk"], target, "select", shape, {"mode": "indices", **options}, {})


@pytest.mark.parametrize("target", TARGETS)
def test_long_rows_are_split_where_blocks_share_no_memory(target: str) -> None:
    assert decision(target, 8, 40961).path == "split"
    assert decision(target, 64, 114689).path == "split"
    for batch, width in ((8, 40960), (9, 49152), (17, 65536), (33, 114688), (65, 1 << 20)):
        assert decision(target, batch, width).path != "split", (batch, width)


def test_clusters_keep_what_they_do_faster() -> None:
    taken = {
        (1, 131072): "cluster",
        (4, 131073): "cluster",
        (4, 262145): "split",
        (8, 262144): "cluster",
        (8, 524288): "split",
    }
    taken |= {(16, 196608): "cluster", (16, 262144): "split", (32, 65536): "cluster", (33, 131072): "split"}
    taken |= {(34, 98304): "cluster", (34, 98305): "single", (64, 1 << 20): "single", (67, 98304): "single"}
    for (batch, width), path in taken.items():
        assert decision("sm_90", batch, width, units=132).path == path, (batch, width)


@pytest.mark.parametrize("mode", ["indices", "page_table", "dual"])
def test_short_rows_have_kernels_of_their_own(mode: str) -> None:
    """Up to what registers hold, or where clusters take over; windows, which begin anywhere, have none."""
    for batch, columns in ((1, 8192), (9, 16384), (132, 16384), (133, 8192), (528, 8192), (529, 4096)):
        fits, longer = (decision("sm_90", batch, columns + more, {"mode": mode}, units=132) for more in (0, 1))
        assert fits.path == "short" and longer.path in ("single", "cluster"), (batch, columns)
        (launch,) = fits.launches
        assert 4 * launch.tile["row_vectors"] * launch.block >= columns
        for windows in ("ragged", "packed"):
            assert decision("sm_90", batch, columns, {"mode": windows}, units=132).path == "single"


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_options_take_the_path_that_the_shape_takes_without_them(target: str, options: dict[str, str]) -> None:
    """At each border of the dispatch, one column and one row off it."""
    borders = [(8, 40960), (16, 49152), (32, 65536), (64, 114688)]
    shapes = [(batch + more, width + step) for batch, width in borders for more in (-1, 0, 1) for step in (-1, 0, 1)]
    for batch, width in [*shapes, (1, 1), (256, 16384), (300, 1 << 20)]:
        assert decision(target, batch, width, options).path == decision(target, batch, width).path, (batch, width)


@pytest.mark.parametrize("options", OPTIONS)
def test_options_keep_clusters_where_they_are_faster(options: dict[str, str]) -> None:
    for batch, width in ((1, 16384), (1, 16385), (1, 131072), (1, 131073), (34, 131072), (66, 131072), (67, 131072)):
        plain = decision("sm_90", batch, width, units=132).path
        assert decision("sm_90", batch, width, options, units=132).path == plain, (batch, width)


def test_blocks_of_a_row_stay_on_one_die() -> None:
    """Blocks go to dies in turn, x first: the grid's columns are rows, and a multiple of the dies in number."""
    for batch, columns in ((1, 8), (3, 8), (8, 8), (9, 16)):
        launches = decision("gfx942", batch, 131072, units=304, xcds=8).launches
        assert {launch.grid[0] for launch in launches} == {columns}
        assert launches[0].grid[1:] == (16, 1)
    assert decision("gfx942", 1, 1 << 20, units=304, xcds=8).launches[0].grid == (1, 128, 1)


def test_dies_follow_from_the_units_that_a_device_reports() -> None:
    made = manifest("gfx942")
    for units, xcds in ((304, 8), (152, 4), (76, 2), (38, 1), (80, 4), (20, 1), (100, 1), (0, 1)):
        assert with_dies(made.target, {"units": units, "xcds": 1})["xcds"] == xcds, units
    assert usual_facts(manifest("gfx950").target) == {"units": 256, "xcds": 8}
    assert usual_facts(manifest("sm_90").target) == {"units": 132, "xcds": 1}


def test_grids_are_never_too_high_and_an_empty_batch_has_none() -> None:
    assert decision("gfx950", 0, 1 << 22).launches[0].grid[0] == 0
    for units in (1, 48, 1024):
        for batch in (1, units // 4 or 1):
            launches = decision("sm_80", batch, 1 << 22, units=units).launches
            assert all(1 <= launch.grid[1] <= 2048 for launch in launches)


def test_explain_says_what_memory_a_call_needs() -> None:
    shape = {"width": 131072, "k": 512}
    (line,) = explain_shape("topk", "gfx950", None, {**shape, "batch": 3}, {"mode": "indices"}).workspaces
    assert line.startswith("workspace: 98,688 bytes of the caller's, batch * 32896; zero before")
    assert "per stream" in line
    assert explain_shape("topk", "gfx950", None, {**shape, "batch": 99}, {"mode": "indices"}).workspaces == ()
