"""A whole specs folder: all files at once, names, positions, and what must change nothing."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dsv4gen.base import paths
from dsv4gen.base.errors import Problems
from dsv4gen.spec import load_specs
from tests.spec.samples import CHILD, FAMILY, PARENT, TUNING, damage, load_errors, write_specs


def test_the_shipped_specs_are_sound() -> None:
    specs = load_specs(paths.specs())
    assert "topk" in specs.families
    assert specs.families["topk"].file == "specs/families/topk.yaml"
    place = specs.families["topk"].place("ops", "select", "launch_paths", 0, "prefer")
    line = (paths.specs() / "families" / "topk.yaml").read_text().splitlines()[(place.line or 0) - 1]
    assert line[(place.column or 0) - 1 :].startswith('"')


def test_all_mistakes_of_all_files_in_one_report(tmp_path: Path) -> None:
    write_specs(
        tmp_path,
        family=damage(damage(FAMILY, "language: hip_cuda", "language: cuda"), "role: in, when", "rol: in, when"),
        parent=damage(PARENT, "launch: 32", "launch: yes"),
        child=damage(CHILD, "summary: A target for tests.\n", ""),
        tuning=damage(TUNING, "date: 2026-05-26", "date: today"),
    )
    with pytest.raises(Problems) as caught:
        load_specs(tmp_path)
    found = [(Path(error.place.file).name, error.place.line) for error in caught.value.errors if error.place]
    assert sorted(found) == [
        ("_base.yaml", 5),
        ("gfx1.yaml", 1),
        ("sample.yaml", 3),
        ("sample.yaml", 3),
        ("sample.yaml", 24),
        ("sample.yaml", 24),
    ]
    assert caught.value.exit_code == 2


def test_a_broken_file_does_not_hide_the_cross_references_of_others(tmp_path: Path) -> None:
    family = damage(FAMILY, "launches: [part, main]", "launches: [prt, main]")
    errors = load_errors(write_specs(tmp_path, family=family, child="target: [\n"))
    assert {Path(error.place.file).name for error in errors if error.place} == {"gfx1.yaml", "sample.yaml"}


def test_a_broken_parent_is_not_called_missing(tmp_path: Path) -> None:
    errors = load_errors(write_specs(tmp_path, parent="target: [\n", child=damage(CHILD, "  mark: read\n", "")))
    assert [Path(error.place.file).name for error in errors if error.place] == ["_base.yaml"]


def test_file_names_that_do_not_count(tmp_path: Path) -> None:
    write_specs(tmp_path)
    (tmp_path / "families" / "other.yml").write_text(FAMILY)
    (tmp_path / "families" / "notes.txt").write_text("free text")
    (error,) = load_errors(tmp_path)
    assert "only *.yaml files are read" in str(error) and "rename it to other.yaml" in str(error)


def test_a_folder_or_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert [error.message for error in load_errors(tmp_path)] == ["there is no such folder"] * 2
    write_specs(tmp_path)
    (tmp_path / "families" / "folder.yaml").mkdir()
    (error,) = load_errors(tmp_path)
    assert "cannot be read: Is a directory" in error.message
    (tmp_path / "families" / "folder.yaml").rmdir()
    (tmp_path / "families" / "circle.yaml").symlink_to("circle.yaml")
    os.mkfifo(tmp_path / "families" / "pipe.yaml")
    circle, pipe = load_errors(tmp_path)
    assert "circle.yaml" in str(circle) and "cannot be read: Too many levels of symbolic links" in circle.message
    assert "pipe.yaml" in str(pipe) and pipe.message == "cannot be read: Is a pipe"


def test_comments_line_endings_and_key_order_change_nothing(tmp_path: Path) -> None:
    plain = load_specs(write_specs(tmp_path / "plain")).families["sample"].model
    blocks = ["axes:", "constants:", "options:", "variants:", "ops:"]
    start = {name: FAMILY.index(f"\n{name}") + 1 for name in blocks}
    axes = FAMILY[start["axes:"] : start["constants:"]]
    moved = FAMILY.replace(axes, "").replace("\nkernels:", f"\n{axes}kernels:")
    swapped = damage(moved, "{threads: [64, 128], loads: [1, 2]}", "{loads: [1, 2], threads: [64, 128]}")
    commented = "# a comment\r\n" + swapped.replace("\n", "  # note\r\n")
    shuffled = load_specs(write_specs(tmp_path / "moved", family=commented)).families["sample"].model
    assert shuffled == plain
    assert list(shuffled.axes) == list(plain.axes)
    assert shuffled.model_dump_json() == plain.model_dump_json()


def test_files_outside_the_checkout_are_shown_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_specs(tmp_path / "specs", family=damage(FAMILY, "family: sample", "famly: sample"))
    monkeypatch.chdir(tmp_path)
    messages = [str(error).splitlines()[0] for error in load_errors(tmp_path / "specs")]
    assert messages == [
        "specs/families/sample.yaml:1:1: missing key 'family'",
        "specs/families/sample.yaml:1:1: unknown key 'famly' (did you mean 'family'?)",
    ]
