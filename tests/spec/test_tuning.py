"""Tuning files: rows are checked against the family as it is now."""

# ruff: noqa: E501 - one mistake per line

from __future__ import annotations

from pathlib import Path

import pytest

from dsv4gen.spec import load_specs
from tests.spec.samples import TUNING, damage, load_errors, write_specs


def test_rows_in_order(tmp_path: Path) -> None:
    tuning = load_specs(write_specs(tmp_path, tuning=TUNING)).tuning["gfx1", "sample"].model
    rows = tuning.kernels["main"]
    assert [(row.when, dict(row.tile), row.microseconds) for row in rows] == [
        ("width <= 64", {"loads": 2, "threads": 64}, 3.0),
        ("true", {"loads": 2, "threads": 128}, 4.5),
    ]
    assert tuning.measured.date == "2026-05-26"


MISTAKES = [
    ("threads: 64, loads: 2", "threads: 32, loads: 2", "kernels.main[0].tile.threads: 32 is not among the tiles 64, 128"),
    ("threads: 128, loads: 2", "threads: 128, loads: 4", "kernels.main[1].tile.loads: 4 is not among the tiles 1, 2"),
    ("threads: 128, loads: 2", "threads: 128", "kernels.main[1].tile: no value for 'loads'"),
    ("  main:", "  man:", "kernels.man: 'man' is no kernel of the family (did you mean 'main'?)"),
    ("family: sample", "family: samples", "family: 'samples' is no family (did you mean 'sample'?)"),
    ("family: sample", "family: samples", "family is 'samples' but the file is named 'sample.yaml'"),
    ("target: gfx1", "target: _base", "target: '_base' is no target"),
    ("target: gfx1", "target: gfx2", "target is 'gfx2' but the folder is named 'gfx1'"),
    ("when: true", "when: \"width < 9\"", "kernels.main[1].when: the last row must always hold"),
    ("width: 4096}", "widht: 4096}", "kernels.main[1].shape.widht: 'widht' is no axis (did you mean 'width'?)"),
    ("microseconds: 4.5", "microseconds: 0", "kernels.main[1].microseconds: input should be greater than 0"),
    ("date: 2026-05-26", "date: 26 May", "measured.date: string should match pattern"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), MISTAKES, ids=[row[2] for row in MISTAKES])
def test_mistake(tmp_path: Path, old: str, new: str, expected: str) -> None:
    errors = load_errors(write_specs(tmp_path, tuning=damage(TUNING, old, new)))
    assert any(expected in error.message for error in errors), [str(error) for error in errors]
    assert all("tuning/gfx1/sample.yaml" in error.place.file for error in errors if error.place)


def test_all_stale_rows_are_listed(tmp_path: Path) -> None:
    stale = TUNING.replace("threads: 64", "threads: 96").replace("threads: 128", "threads: 192")
    assert len(load_errors(write_specs(tmp_path, tuning=stale))) == 2
