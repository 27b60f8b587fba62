"""Instances and row paths that no launch reaches are not planned; a spec that launches them has them back."""

from __future__ import annotations

import pytest

from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.prove import Axis, Expr, reach
from dsv4gen.prove.search import Undecided
from dsv4gen.render import render_source
from tests.plan.planned import SPEC, plan
from tests.specs import Copy

STREAMED = "if (!(seq_len <= "


def short(made: FamilyPlan) -> dict[str, tuple[str, ...]]:
    """Row paths of the kernels of short rows, by symbol."""
    return {instance.symbol: instance.row_paths for instance in made.kernel("short").instances}


@pytest.mark.parametrize("target", ["gfx950", "sm_90"])
def test_a_mode_that_no_path_launches_has_no_instance(copy: Copy, target: str) -> None:
    made = plan(copy, target)
    assert {one.options["mode"] for one in made.kernel("short").instances} == {"indices", "page_table", "dual"}
    assert "short2_ragged" not in render_source(made).text
    assert set(short(made).values()) == {("trivial", "short")}
    for kernel in made.kernels:
        if kernel.name != "short":
            assert {one.row_paths for one in kernel.instances} == {tuple(path.name for path in kernel.row_paths)}


def test_a_path_that_launches_more_brings_it_back(copy: Copy) -> None:
    copy.edit(SPEC, "mode != 'ragged' and mode != 'packed' and width <= (4096", "mode != 'ragged' and width <= (4096")
    assert "topk_short2_packed_t512" in short(plan(copy))


def test_a_path_that_may_stand_in_for_more_brings_it_back(copy: Copy) -> None:
    copy.edit(SPEC, "prefer: *held", "prefer: \"mode == 'indices' and width <= 4096\"")
    copy.edit(SPEC, "domain: &held \"mode != 'ragged' and", 'domain: &held "')
    assert "topk_short2_ragged_t512" in short(plan(copy))


def test_a_tile_that_does_not_hold_every_row_streams(copy: Copy) -> None:
    """One bucket's rows become a column longer than its registers: that tile's launches alone reach the path."""
    assert STREAMED not in render_source(plan(copy)).text
    copy.edit(SPEC, "8192 if batch > units else 16384)", "8192 if batch > units else 16385)")
    made = plan(copy)
    longer = {symbol for symbol, paths in short(made).items() if "long" in paths}
    assert longer == {f"topk_short4_{mode}_t1024" for mode in ("indices", "page_table", "dual")}
    assert STREAMED in render_source(made).text


def test_what_the_solver_cannot_tell_counts_as_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    axes = [Axis(name, Expr.of(0), Expr.of(100)) for name in ("rows", "columns")]
    never = [reach.first_of([Expr.parse("rows > 200")], {})]
    assert not reach.some_shape(axes, never)

    def undecided(*_: object) -> bool:
        raise Undecided

    monkeypatch.setattr(reach, "exists", undecided)
    assert reach.some_shape(axes, never)


def test_an_earlier_row_hides_a_later_one() -> None:
    axes, table = [Axis("rows", Expr.of(0), Expr.of(100))], [Expr.parse("rows <= limit"), Expr.parse("rows > 7")]
    assert not reach.some_shape(axes, [reach.first_of(table, {"limit": 100})])
    assert reach.some_shape(axes, [reach.first_of(table, {"limit": 99})])
    assert reach.some_shape(axes, [reach.first_of([], {})])
