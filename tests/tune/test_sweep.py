"""Sweeps: wrong candidates are never accepted, interruptions lose nothing, choices follow the times."""

from __future__ import annotations

import json
import lzma
import time
from pathlib import Path
from typing import Any

import pytest

from dsv4gen.base.errors import DriverError, UsageError
from dsv4gen.base.extensions import spec_folders
from dsv4gen.emit.build import make_plans
from dsv4gen.spec import load_specs
from dsv4gen.tune.candidates import make_pack, proven_tiles
from dsv4gen.tune.journal import BASE, Journal, read_journal
from dsv4gen.tune.measure import FINALISTS
from dsv4gen.tune.pack import Pack, read_pack
from tests.bench.fakes import Clock
from tests.tune.conftest import Rig


def test_every_proven_tile_is_measured_on_every_shape(rig: Rig, pack: Pack) -> None:
    assert rig.sweep(2, 3)
    _, entries = read_journal(rig.journal)
    assert {tuple(sorted(e.tile.items())) for e in entries if e.kernel == "dual"} == {
        *(tuple(sorted(one.tile.items())) for one in pack.variants),
        tuple(sorted(entries[1].tile.items())),
    }
    assert {e.shape["tokens"] for e in entries} == {2, 3}
    assert sum(e.kernel == BASE for e in entries) == 2
    assert [tile for tile, _ in rig.timed].count({}) == 4
    assert all(e.final for e in entries if e.kernel == BASE)
    finals = [e for e in entries if e.kernel == "dual" and e.final and e.shape["tokens"] == 2]
    assert 1 < len(finals) <= FINALISTS + 1


def test_a_planted_wrong_candidate_is_never_timed_whatever_its_speed(rig: Rig) -> None:
    planted = [one.tile for one in rig.pack.variants[:3]]
    rig.wrong = lambda tile: tile in planted
    rig.speed = lambda tile, _: 1.0 if tile in planted else 5.0
    rig.sweep(2)
    _, entries = read_journal(rig.journal)
    wrong = [e for e in entries if e.tile in planted]
    assert wrong and all("differs from what the untuned kernel wrote" in e.problem for e in wrong)
    assert not [tile for tile, _ in rig.timed if tile in planted]


def test_the_lower_of_two_times_of_the_specs_tile_counts(rig: Rig) -> None:
    base: list[float] = [9.0, 5.0]
    rig.speed = lambda tile, _: base.pop(0) if not tile else 6.0
    rig.sweep(2)
    _, entries = read_journal(rig.journal)
    assert [e.value for e in entries if e.kernel == BASE] == [9.0, 5.0]
    own = [e for e in entries if e.kernel == "dual" and e.tile not in [dict(one.tile) for one in rig.pack.variants]]
    assert [e.value for e in own] == [9.0, 5.0]


def test_a_wrong_untuned_kernel_stops_the_shape(rig: Rig) -> None:
    rig.wrong = lambda tile: not tile
    rig.sweep(2)
    _, entries = read_journal(rig.journal)
    assert [e.kernel for e in entries] == [BASE] and entries[0].problem
    assert rig.timed == []


def test_an_interrupted_sweep_goes_on_and_loses_nothing(rig: Rig, tmp_path: Path) -> None:
    rig.stop_after = 7
    with pytest.raises(KeyboardInterrupt):
        rig.sweep(2, 3)
    _, before = read_journal(rig.journal)
    with rig.journal.open("a", encoding="utf-8") as file:
        file.write('{"op": "gather_dual", "sha')
    rig.stop_after, rig.timed = None, []
    assert rig.sweep(2, 3)
    _, after = read_journal(rig.journal)
    assert after[: len(before)] == before
    passing = [(e.shape["tokens"], tuple(sorted(e.tile.items()))) for e in after if e.kernel == "dual" and not e.final]
    assert len(passing) == len(set(passing))
    whole = Rig(rig.pack, tmp_path / "b.jsonl", rig.speed)
    whole.sweep(2, 3)
    assert {e.key: e.value for e in read_journal(whole.journal)[1]} == {e.key: e.value for e in after}
    rig.timed = []
    assert rig.sweep(2, 3)
    assert rig.timed == []


def test_finalists_of_an_interrupted_sweep_are_timed_at_length_later(rig: Rig) -> None:
    rig.sweep(2)
    lines = rig.journal.read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines) if number > 3 and '"final": true' in line)
    rig.journal.write_text("\n".join(lines[:first]) + "\n", encoding="utf-8")
    rig.timed = []
    assert rig.sweep(2)
    assert len(rig.timed) == 2 + FINALISTS


def test_a_candidate_that_takes_the_device_down_ends_the_run_and_is_skipped_next_time(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    fatal = dict(rig.pack.variants[4].tile)

    def synchronize(_: Clock) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    rig.wrong = lambda tile: dict(tile) == fatal
    with monkeypatch.context() as patch:
        patch.setattr(Clock, "synchronize", synchronize)
        with pytest.raises(DriverError, match=r"left the device unusable.*illegal memory"):
            rig.sweep(2)
    before = len(read_journal(rig.journal)[1])
    assert rig.sweep(2)
    _, entries = read_journal(rig.journal)
    assert [dict(e.tile) for e in entries if e.problem] == [fatal]
    assert len(entries) > before


def test_the_deadline_ends_a_sweep_between_candidates(rig: Rig) -> None:
    assert not rig.sweep(2, deadline=time.monotonic() - 1)
    assert rig.timed == []


def test_a_changed_candidate_is_measured_again(rig: Rig) -> None:
    rig.sweep(2)
    rig.timed = []
    first = rig.pack.variants[0]
    changed = type(first)(first.kernel, first.tile, first.entry, {**first.files, "gather_dequant.py": "# other\n"})
    rig.pack = Pack(**{**vars(rig.pack), "variants": [changed, *rig.pack.variants[1:]]})
    rig.sweep(2)
    assert {tuple(tile.items()) for tile, _ in rig.timed} <= {tuple(changed.tile.items()), ()}
    assert rig.timed


def test_a_journal_of_something_else_is_refused(rig: Rig, tmp_path: Path) -> None:
    rig.sweep(2)
    for change, message in (({"target": "sm_120"}, "of target sm_90"), ({"machine": {"device": "other"}}, "device")):
        head = type(rig.head())(**{**vars(rig.head()), **change})
        with pytest.raises(UsageError, match=message):
            Journal.open(rig.journal, head)
    (tmp_path / "c.jsonl").write_text("{}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="not a journal"):
        read_journal(tmp_path / "c.jsonl")


@pytest.mark.parametrize(
    ("line", "key", "value", "message"),
    [
        (0, "head", None, "head: an object expected"),
        (0, "head", {"family": "topk"}, "head.target: missing"),
        (1, "value", float("nan"), "entry 1.value: a finite number"),
        (1, "value", -1.0, "entry 1.value: -1.0 is no measurement"),
        (1, "value", 0, "is no measurement"),
        (1, "value", "x", "entry 1.value: a number expected"),
        (2, "tile", None, "entry 2.tile: an object"),
        (2, "speed", 3, "entry 2.speed: no such key"),
    ],
)
def test_a_damaged_journal_names_the_value(rig: Rig, line: int, key: str, value: object, message: str) -> None:
    rig.sweep(2)
    lines = [json.loads(text) for text in rig.journal.read_text(encoding="utf-8").splitlines()]
    lines[line][key] = value
    rig.journal.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with pytest.raises(UsageError, match="damaged journal: ") as raised:
        read_journal(rig.journal)
    assert message in str(raised.value) and raised.value.remedy


def test_a_line_cut_off_does_not_swallow_the_next(rig: Rig) -> None:
    rig.sweep(2)
    whole = rig.journal.read_bytes()
    _, entries = read_journal(rig.journal)
    rig.journal.write_bytes(whole[:-20])
    Journal.open(rig.journal, rig.head()).add(entries[-1])
    assert read_journal(rig.journal)[1] == entries


@pytest.mark.parametrize("change", [{"variants": []}, {"variants": None}, {"axes": 3}, {"manifest": None}])
def test_a_damaged_pack_is_refused(pack: Pack, tmp_path: Path, change: dict[str, Any]) -> None:
    pack.write(tmp_path / "a.pack")
    data = {**json.loads(lzma.decompress((tmp_path / "a.pack").read_bytes())), **change}
    (tmp_path / "a.pack").write_bytes(lzma.compress(json.dumps(data).encode()))
    with pytest.raises(UsageError, match="damaged pack"):
        read_pack(tmp_path / "a.pack")


def test_packs_round_trip_and_are_small(pack: Pack, tmp_path: Path) -> None:
    pack.write(tmp_path / "a.pack")
    again = read_pack(tmp_path / "a.pack")
    assert [one.digest for one in again.variants] == [one.digest for one in pack.variants]
    assert again.base.entry == json.loads(json.dumps(pack.base.entry))
    assert (tmp_path / "a.pack").stat().st_size < 100_000
    folder = again.unpack(again.variants[0], tmp_path / "root")
    from dsv4gen.base.manifest import read_manifest, require_intact

    manifest = read_manifest(folder)
    require_intact(manifest, folder)
    assert manifest.families["gather_dequant"] == again.base.entry
    (tmp_path / "b.pack").write_bytes(b"no")
    with pytest.raises(UsageError, match="no pack"):
        read_pack(tmp_path / "b.pack")


def test_candidates_are_the_tiles_that_the_plan_has_proven() -> None:
    (plan,) = make_plans(load_specs(*spec_folders()), "sm_90", ["sparse_decode"])
    made = make_pack("sparse_decode", "sm_90", ["merge"], {"num_warps": 2})
    proven = [dict(tile) for tile in plan.kernel("merge").tiles if tile["num_warps"] == 2]
    assert [dict(one.tile) for one in made.variants] == proven
    for one in made.variants:
        (bucket,) = one.entry["kernels"]["merge"]["buckets"]
        assert bucket["tile"] == one.tile
        (instance,) = one.entry["kernels"]["merge"]["instances"]
        assert instance["tile"] == one.tile
    assert len({one.digest for one in made.variants}) == len(proven)


def test_candidates_are_narrowed_to_what_is_near_the_specs_tiles_or_held_as_there() -> None:
    (plan,) = make_plans(load_specs(*spec_folders()), "sm_90", ["topk"])
    kernel = plan.kernel("select")
    own = [dict(bucket.tile) for bucket in kernel.buckets]
    every = [dict(tile) for _, tile in proven_tiles(plan, ["select"], {})]
    assert every == [dict(tile) for tile in kernel.tiles]

    def apart(tile: dict[str, int], one: dict[str, int]) -> int:
        return sum(tile[name] != one[name] for name in one)

    for near in (1, 2):
        found = [dict(tile) for _, tile in proven_tiles(plan, ["select"], {}, near)]
        assert found == [tile for tile in every if min(apart(tile, one) for one in own) <= near]
        assert len(own) < len(found) < len(every)
    held = [dict(t) for _, t in proven_tiles(plan, ["select"], {"coarse_bits": "spec", "tie_capacity": "spec"})]
    pairs = {(one["coarse_bits"], one["tie_capacity"]) for one in own}
    assert held == [tile for tile in every if (tile["coarse_bits"], tile["tie_capacity"]) in pairs]
    both = [dict(tile) for _, tile in proven_tiles(plan, ["select"], {"block_threads": "spec"}, 1)]
    assert all(any(apart(t, o) <= 1 and t["block_threads"] == o["block_threads"] for o in own) for t in both) and both


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("gather_dequant", "sm_90", ["daul"]), "did you mean 'dual'"),
        (("gather_dequnt", "sm_90"), "did you mean 'gather_dequant'"),
        (("gather_dequant", "sm_90", ["dual"], {"num_wraps": 1}), "did you mean 'num_warps'"),
    ],
)
def test_words_that_fit_no_candidate(words: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_pack(*words)
