"""Charts have one line per way to do it, over the axis with most values, with everything else fixed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsv4gen.base.errors import UsageError
from dsv4gen.bench.stopwatch import Timing
from dsv4gen.report.benchmarks import charts, read_measured
from dsv4gen.report.model import Measurement


def row(
    us: float, peers: dict[str, float] | None = None, group: str = "decode", mode: str = "a", **shape: int
) -> Measurement:
    timed = {name: Timing(value, 0.0) for name, value in (peers or {}).items()}
    return Measurement(group, "op", {"mode": mode}, shape, "p", (), us / 2, {"chained": Timing(us, 0.0)}, timed, {}, "")


def test_one_chart_per_value_of_what_is_fixed() -> None:
    rows = [row(float(width), batch=batch, width=width) for batch in (1, 8) for width in (64, 16, 32)]
    first, second = charts(rows, "chained")
    assert (first.title, first.axis) == ("op decode batch=1", "width")
    assert second.title == "op decode batch=8"
    ours, floor = first.series
    assert ours.points == ((16, 16.0), (32, 32.0), (64, 64.0))
    assert floor.points == ((16, 8.0), (32, 16.0), (64, 32.0))


def test_what_follows_from_the_axis_is_not_fixed() -> None:
    rows = [row(1.0, batch=batch, pages=batch * 16, heads=64) for batch in (1, 2, 4)]
    (chart,) = charts(rows, "chained")
    assert (chart.title, len(chart.series[0].points)) == ("op decode", 3)


def test_options_separate_charts_too() -> None:
    rows = [row(1.0, mode=mode, width=width) for mode in ("a", "b") for width in (1, 2, 4)]
    assert [chart.title for chart in charts(rows, "chained")] == ["op decode mode=a", "op decode mode=b"]


def test_a_peer_has_points_where_it_ran() -> None:
    rows = [row(2.0, {"torch": 9.0}, width=16), row(3.0, width=32), row(4.0, {"torch": 11.0}, width=64)]
    (chart,) = charts(rows, "chained")
    assert chart.series[2].name == "torch"
    assert chart.series[2].points == ((16, 9.0), (64, 11.0))


def test_lists_of_one_shape_and_rows_without_times_make_no_chart() -> None:
    assert list(charts([row(1.0, width=16)], "chained")) == []
    assert list(charts([row(1.0, width=16), row(1.0, width=32)], "eager")) == []


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([], "not a result of dsv4gen bench schema 1"),
        ({"kind": "dsv4gen verify", "schema": 1}, "not a result of dsv4gen bench schema 1"),
        ({"kind": "dsv4gen bench", "schema": 7}, "not a result of dsv4gen bench schema 1"),
        ({"kind": "dsv4gen bench", "schema": 1}, "a damaged result: date: missing"),
    ],
)
def test_other_files_are_named(tmp_path: Path, data: Any, expected: str) -> None:
    (tmp_path / "f.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(UsageError, match=expected):
        read_measured(tmp_path / "f.json")
