"""Tuning files: comments stay, what is written loads, and it reaches plan and digest; nothing else of it does."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from dsv4gen.base.errors import DsvError, Problems, ProofError, SpecError
from dsv4gen.emit.build import make_plans
from dsv4gen.emit.manifest import family_json
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.spec import load_specs
from dsv4gen.tune.choose import Choice
from dsv4gen.tune.journal import Entry, Head
from dsv4gen.tune.write import tuned_text, write_tuning
from tests.checkout import ROOT

HEAD = Head("sparse_decode", "sm_90", "time", "2026-01-02", {"device": "a card", "torch": "2.11"}, {})
TILE = {"columns": 256, "num_warps": 2, "num_stages": 1}
ENTRY = Entry("attend", {}, {"tokens": 1, "heads": 16}, "merge", TILE, "true", 7.127, True)
CHOICES = {"merge": [Choice("tokens <= 16", TILE, (ENTRY,)), Choice("true", {**TILE, "columns": 128})]}


@pytest.fixture
def specs(tmp_path: Path) -> Path:
    """A copy of the specs without tuning files."""
    shutil.copytree(ROOT / "specs", tmp_path / "specs", ignore=shutil.ignore_patterns("tuning"))
    return tmp_path / "specs"


def tuned(specs: Path, text: str) -> FamilyPlan:
    """The plan with this tuning file."""
    path = specs / "tuning" / "sm_90" / "sparse_decode.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return make_plans(load_specs(specs), "sm_90", ["sparse_decode"])[0]


def test_what_is_written_replaces_the_buckets_of_its_kernels(specs: Path) -> None:
    plain = make_plans(load_specs(specs), "sm_90", ["sparse_decode"])[0]
    plan = tuned(specs, tuned_text("", HEAD, "median", CHOICES))
    assert [(str(b.when), b.tile["columns"], b.origin) for b in plan.kernel("merge").buckets] == [
        ("tokens <= 16", 256, "tuning.kernels.merge[0]"),
        ("true", 128, "tuning.kernels.merge[1]"),
    ]
    assert {i.tile["columns"] for i in plan.kernel("merge").instances} == {256, 128}
    assert plan.kernel("split") == plain.kernel("split")


def test_only_predicate_and_tile_enter_the_digest(specs: Path) -> None:
    text = tuned_text("", HEAD, "median", CHOICES)
    digest = family_json(tuned(specs, text))["digest"]
    other = tuned_text(text, replace(HEAD, date="2027-01-01", machine={"device": "another"}), "mean", CHOICES)
    other = "# a comment\n" + other.replace("7.13", "9.99").replace("tokens: 1", "tokens: 2")
    assert other != text
    assert family_json(tuned(specs, other))["digest"] == digest
    assert family_json(tuned(specs, text.replace("columns: 256", "columns: 512")))["digest"] != digest


def test_comments_and_other_kernels_stay(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.yaml"
    write_tuning(path, HEAD, "median", CHOICES)
    text = path.read_text(encoding="utf-8")
    assert 'date: "2026-01-02"' in text and "microseconds: 7.13" in text
    head, _, rest = text.partition("measured:")
    text = f"{head}# who measured\nmeasured:{rest}".replace("7.13", "7.13  # odd, but true")
    text += "  fused:   # by hand\n    - {when: true, tile: {block_h: 16}}\n"
    path.write_text(text, encoding="utf-8")
    faster = replace(ENTRY, value=6.0)
    again = write_tuning(
        path, HEAD, "median", {"merge": [replace(CHOICES["merge"][0], entries=(faster,)), CHOICES["merge"][1]]}
    )
    assert "# who measured" in again and "# odd, but true" in again and "# by hand" in again
    assert "microseconds: 6.0" in again and "7.13" not in again
    assert "when: true, tile: {block_h: 16}" in again
    assert write_tuning(path, HEAD, "median", {}) == again
    assert "merge" not in write_tuning(path, HEAD, "median", {"merge": []})


def test_a_damaged_file_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: [", encoding="utf-8")
    with pytest.raises(SpecError, match="cannot be read"):
        write_tuning(path, HEAD, "median", CHOICES)
    assert path.read_text(encoding="utf-8") == "a: ["


def test_stale_rows_are_refused_all_at_once_with_their_places(specs: Path) -> None:
    """Rows that were legal until the spec, or what a tile needs, changed."""
    text = tuned_text("", HEAD, "median", CHOICES)
    family = specs / "families" / "sparse_decode.yaml"
    whole = family.read_text(encoding="utf-8")
    before, rest = whole.split("  merge:\n    symbol")
    family.write_text(
        before + "  merge:\n    symbol" + rest.replace('shared_bytes: "0"', 'shared_bytes: "2000 * columns"', 1),
        "utf-8",
    )
    with pytest.raises(Problems) as caught:
        tuned(specs, text)
    stale = [error for error in caught.value.errors if "tuning" in str(error.place)]
    first = next(number for number, line in enumerate(text.splitlines(), 1) if "tokens <= 16" in line)
    assert [error.place.line for error in stale if error.place] == [first + 1, first + 5]
    assert all(isinstance(error, ProofError) and "stale row" in error.message for error in stale)
    assert all("dsv4gen tune sparse_decode --target sm_90" in error.remedy for error in stale)
    family.write_text(whole.replace("tiles: {columns: [64, 128, 256, 512]", "tiles: {columns: [64, 128]"), "utf-8")
    with pytest.raises(DsvError, match=r"tuning/sm_90/sparse_decode.yaml:14:\d+.*256 is not among the tiles 64, 128"):
        tuned(specs, text)


def test_rows_that_leave_a_gap_or_are_dead_are_refused(specs: Path) -> None:
    dead = {"merge": [Choice("tokens <= 16", TILE), Choice("tokens <= 8", TILE), Choice("true", TILE)]}
    with pytest.raises(ProofError, match="tuning/sm_90"):
        tuned(specs, tuned_text("", HEAD, "median", dead))
