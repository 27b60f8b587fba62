"""JSON round trips; comparisons flag what noise does not explain, and look twice before they do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dsv4gen.base.errors import UsageError
from dsv4gen.bench.command import second_look
from dsv4gen.bench.compare import compare, suspects
from dsv4gen.bench.peers import plain_torch
from dsv4gen.bench.result import Result, Row, read_result
from dsv4gen.bench.show import family_table, show, show_comparison, summary
from dsv4gen.bench.stopwatch import Timing
from tests.bench.fakes import RATES, Clock, make_bench, small_cells

CELLS = [*small_cells(), *small_cells(batch=4), *small_cells(k=8)]


def result(*times: float, spread: float = 0.005, device: str = "card") -> Result:
    """Three cells with these times."""
    rows = tuple(
        Row(cell, 1.0, "single", ("kernel",), {"chained": Timing(us, spread)})
        for cell, us in zip(CELLS, times, strict=False)
    )
    return Result("2026-01-02", {"device": device}, RATES, rows, {"sglang": "not installed"})


def test_json_round_trip(tmp_path: Path) -> None:
    bench = make_bench(Clock(), peers={"torch": plain_torch})
    rows = tuple(bench.run([*CELLS, *small_cells(k=700)]))
    missing, digests, defaults = {"sglang": "not installed"}, {"topk": "0a"}, {"topk": {"mode": "page_table"}}
    found = Result("2026-01-02", {"device": "card"}, RATES, rows, missing, digests, defaults)
    found.write(tmp_path / "a.json")
    assert read_result(tmp_path / "a.json") == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no result of bench"),
        ("[]", "not a result"),
        ('{"kind": "dsv4gen bench", "schema": 99}', "not a result"),
        ('{"kind": "dsv4gen bench", "schema": 1, "rows": [{}]}', "damaged"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        read_result(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.update(machine=[]), "machine: an object expected, not []"),
        (lambda data: data.update(digests=None), "digests: an object expected"),
        (lambda data: data.update(date=5), "date: text expected, not 5"),
        (lambda data: data.update(hosts=[]), "hosts: no such key"),
        (lambda data: data.pop("rates"), "rates: missing"),
        (lambda data: data["rows"][1].update(peers=[]), "rows[1].peers: an object"),
        (lambda data: data["rows"][1].update(times=[1]), "rows[1].times: an object"),
        (lambda data: data["rows"][1].update(times={}), "rows[1].times: no 'chained'"),
        (lambda data: data["rows"][1]["times"].update(lazy={"us": 1.0, "spread": 0.0}), "no way of timing 'lazy'"),
        (
            lambda data: data["rows"][1]["times"]["chained"].update(us=float("nan")),
            "rows[1].times.chained.us: a finite",
        ),
        (lambda data: data["rows"][1]["times"]["chained"].update(us="fast"), "a number expected, not 'fast'"),
        (lambda data: data["rows"][1]["times"]["chained"].update(us=-2), "no time of a call"),
        (lambda data: data["rows"][1]["times"]["chained"].update(us=0), "no time of a call"),
        (lambda data: data["rows"][1]["cell"].update(shape={"batch": "x"}), "cell.shape.batch: a whole number"),
        (lambda data: data["rows"][1]["cell"].update(options=[]), "cell.options: an object"),
        (lambda data: data.update(rows="abc"), "rows: a list expected"),
    ],
)
def test_a_damaged_result_names_the_value(tmp_path: Path, change: Callable[[Any], object], message: str) -> None:
    data = json.loads(json.dumps(result(10, 20, 30).to_json()))
    change(data)
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(UsageError, match="damaged result: .*" + re.escape(message)) as raised:
        read_result(tmp_path / "a.json")
    assert raised.value.remedy


def test_a_slowed_kernel_is_flagged_and_noise_is_not() -> None:
    found = compare(result(10, 20, 30), result(10.2, 22, 24))
    assert [change.verdict for change in found.changes] == ["same", "slower", "faster"]
    assert not found.passed
    assert compare(result(10, 20, 30), result(10.2, 20.5, 29.5)).passed


def test_the_noise_of_both_sides_widens_the_bound() -> None:
    assert not compare(result(10, 20), result(10, 21.5)).passed
    assert compare(result(10, 20, spread=0.05), result(10, 21.5, spread=0.05)).passed
    assert compare(result(10, 20), result(10, 21.5), noise=0.1).passed
    assert compare(result(0.5), result(0.7)).passed


def test_what_broke_or_is_missing_is_named() -> None:
    old, new = result(10, 20, 30), result(10, 20)
    broken = replace(new, rows=(replace(new.rows[0], problem="wrong", times={}), new.rows[1]))
    found = compare(old, broken)
    assert [row.cell for row in found.broken] == [CELLS[0]]
    assert found.missing == (CELLS[2],)
    assert not found.passed
    assert compare(new, old).added == (CELLS[2],)
    assert compare(old, result(10, 20, 30, device="other")).differences == (("device", "card", "other"),)


def without_option(found: Result, name: str) -> Result:
    """The result as a family without the option would have given it, in a file of before defaults were written."""
    rows = [
        replace(row, cell=replace(row.cell, options={key: v for key, v in row.cell.options.items() if key != name}))
        for row in found.rows
    ]
    return replace(found, rows=tuple(rows), defaults={})


def test_a_family_that_got_an_option_compares_with_times_of_before(tmp_path: Path) -> None:
    new = replace(result(10, 24, 30), defaults={"topk": {"tie_break": "none"}})
    without_option(result(10, 20, 30), "tie_break").write(tmp_path / "old.json")
    old = read_result(tmp_path / "old.json")
    found = compare(old, new)
    assert [change.verdict for change in found.changes] == ["same", "slower", "same"]
    assert found.missing == found.added == ()
    assert [row.cell for row in suspects(old, new.rows, defaults=new.defaults)] == [new.rows[1].cell]
    lost = compare(new, old)
    assert [change.verdict for change in lost.changes] == ["same", "faster", "same"]


def test_another_choice_of_a_new_option_is_another_cell() -> None:
    cells = [replace(row.cell, options={**row.cell.options, "tie_break": "small"}) for row in result(10, 20, 30).rows]
    rows = tuple(replace(row, cell=cell) for row, cell in zip(result(10, 20, 30).rows, cells, strict=True))
    new = replace(result(), rows=rows, defaults={"topk": {"tie_break": "none"}})
    found = compare(without_option(result(10, 20, 30), "tie_break"), new)
    assert (found.changes, len(found.missing), len(found.added)) == ((), 3, 3)


def test_slow_cells_are_timed_again_and_the_faster_time_counts() -> None:
    old = result(10, 20, 30)
    rows = list(result(10, 25, 30).rows)
    clock = Clock(lambda _: 20.1)
    again = second_look(make_bench(clock), old, rows, 0.03)
    assert [row.times["chained"].us for row in again] == [10, 20.1, 30]
    assert len(clock.log) == 3
    still = second_look(make_bench(Clock(lambda _: 26.0)), old, rows, 0.03)
    assert still[1].times["chained"].us == 25


def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    bench = make_bench(Clock(lambda number: 4.0 + number), peers={"torch": plain_torch})
    rows = bench.run(CELLS)
    head, cells = family_table(rows)
    assert head[:3] == ("list", "batch", "k")
    assert "torch us" in head and len({len(row) for row in cells}) == 1 and len(cells[0]) == len(head)
    assert "over 3 cells" in summary(rows)[0]
    found = Result("2026-01-02", {"device": "card"}, RATES, tuple(rows), {"sglang": "not installed"})
    show(found, markdown=True)
    out = capsys.readouterr().out
    assert "2026-01-02, card" in out and "| list | batch | k |" in out and "peer sglang: not here" in out
    show_comparison(compare(result(10, 20, 30), result(10, 30, 30)))
    assert "1 slower, 0 faster, 2 within noise" in capsys.readouterr().out


def test_json_is_sorted_and_holds_no_host(tmp_path: Path) -> None:
    result(1, 2, 3).write(tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n"
