"""Cells are checked before they are timed, and one that fails does not end the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from dsv4gen.base.errors import UsageError
from dsv4gen.bench import peers
from dsv4gen.bench.peers import PeerCalls, open_peers, plain_torch
from dsv4gen.bench.result import Result
from dsv4gen.bench.show import show
from dsv4gen.reference.workload import Call, Request
from tests.bench.fakes import RATES, Altered, Clock, make_bench, reference, small_cells


def test_a_cell_is_timed_in_every_way_over_rotated_inputs() -> None:
    clock = Clock(lambda number: 5.0 + number)
    (row,) = make_bench(clock).run(small_cells())
    assert row.problem == ""
    assert {way: timing.us for way, timing in row.times.items()} == {"chained": 5.0, "isolated": 6.0, "eager": 7.0}
    assert [way for way, _ in clock.log] == ["chained", "isolated", "eager"]
    assert {sets for _, sets in clock.log} == {64}
    assert row.floor_us == pytest.approx((4 * 2 * 600 + 4 * 2 * 16) / 1e12 * 1e6)


def spoil(values: Mapping[str, Any]) -> None:
    """Select one score twice."""
    values["out"][1, 3] = values["out"][1, 4]


def test_a_wrong_result_is_never_timed() -> None:
    clock = Clock()
    bench = make_bench(clock, lambda family, **options: Altered(reference(family, **options), spoil))
    (row,) = bench.run(small_cells())
    assert "twice" in row.problem
    assert not row.times and not clock.log


def test_results_are_checked_on_copies() -> None:
    seen: list[int] = []
    bench = make_bench(
        Clock(), lambda family, **o: Altered(reference(family, **o), lambda v: seen.append(v["out"].data_ptr()))
    )
    bench.run(small_cells())
    assert seen[0] not in seen[1:]


def test_a_failing_cell_does_not_end_the_others() -> None:
    rows = make_bench(Clock()).run([*small_cells(k=2048, width=1), *small_cells(), *small_cells(batch=1)])
    assert [bool(row.problem) for row in rows] == [False, False, False]
    broken = make_bench(Clock(), lambda *_, **__: (_ for _ in ()).throw(RuntimeError("out of memory\nsecond line")))
    rows = broken.run([*small_cells(), *small_cells()])
    assert [row.problem for row in rows] == ["RuntimeError: out of memory"] * 2


def test_an_interrupt_keeps_what_was_timed_and_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(after: int) -> Clock:
        def us(number: int) -> float:
            if number >= 3 * after:
                raise KeyboardInterrupt
            return 5.0

        return Clock(us)

    cells = [*small_cells(), *small_cells(batch=1)]
    rows = make_bench(interrupt(1)).run(cells)
    assert [row.cell for row in rows] == cells[:1]
    show(Result("2026-01-02", {"device": "a card"}, RATES, tuple(rows), untimed=len(cells) - len(rows)))
    assert "interrupted: 1 of 2 cells were timed" in capsys.readouterr().out
    with pytest.raises(KeyboardInterrupt):
        make_bench(interrupt(0)).run(cells)


class OtherPeer:
    """A peer whose result is what a test wants."""

    def __init__(self, change: Any = None) -> None:
        self.change = change

    def version(self) -> str:
        """Any."""
        return "1"

    def prepare(self, request: Request, sets: Sequence[Sequence[Call]]) -> PeerCalls | None:
        """torch's calls, whose result is altered."""
        found = plain_torch.prepare(request, sets)
        assert found is not None

        def written() -> Mapping[str, Any]:
            values = dict(found.written())
            self.change(values)
            return values

        return PeerCalls(found.calls, written)


def test_peers_are_checked_and_timed_beside_ours() -> None:
    clock = Clock()
    (row,) = make_bench(clock, peers={"torch": plain_torch}).run(small_cells())
    assert set(row.peers["torch"].times) == {"chained", "isolated"}
    assert row.peers["torch"].problem == ""


def test_a_wrong_peer_is_not_timed_but_ours_is() -> None:
    (row,) = make_bench(Clock(), peers={"other": OtherPeer(spoil)}).run(small_cells())
    assert row.times
    assert row.peers["other"].problem.startswith("wrong: ")
    assert not row.peers["other"].times


def test_whatever_a_peer_raises_is_its_problem() -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError("inside")

    (row,) = make_bench(Clock(), peers={"other": OtherPeer(fail)}).run(small_cells())
    assert row.times
    assert row.peers["other"].problem == "ZeroDivisionError: inside"


def test_a_missing_peer_is_a_line_and_an_unknown_one_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(peers.OWN, "sglang", "no_such_package_here.peer")
    found, versions, missing = open_peers(["torch", "sglang"])
    assert list(found) == ["torch"] == list(versions)
    assert "no_such_package_here" in missing["sglang"]
    with pytest.raises(UsageError, match="did you mean 'torch'"):
        open_peers(["troch"])


def test_a_distribution_adds_a_peer_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("mine", "tests.bench.own_peer", peers.GROUP)
    monkeypatch.setattr(peers, "entry_points", lambda group: [entry] if group == peers.GROUP else [])
    found, versions, missing = open_peers(["mine"])
    assert versions == {"mine": "7"} and not missing
    (row,) = make_bench(Clock(), peers=found).run(small_cells())
    assert row.peers["mine"].times
