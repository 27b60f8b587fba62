"""`explain`: the README's example is what the command prints, and every row path names its kernel."""

from __future__ import annotations

import shlex
from pathlib import Path

from dsv4gen.report.explain import explain_shape
from tests.specs import ROOT, copy_specs

INDENT = "    "


def _example() -> tuple[list[str], str]:
    """The README's command and its output, both without the indentation."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(f"{INDENT}$ dsv4gen explain"))
    end = next(number for number in range(start, len(lines)) if lines[number] and not lines[number].startswith(INDENT))
    shown = [line.removeprefix(INDENT) for line in lines[start + 1 : end]]
    return shlex.split(lines[start])[2:], "\n".join(shown).rstrip() + "\n"


def test_the_readme_shows_what_the_command_prints(tmp_path: Path) -> None:
    command, shown = _example()
    assert copy_specs(tmp_path).run(*command).stdout == shown


def test_row_paths_of_two_launches_name_their_kernels() -> None:
    made = explain_shape("topk", "gfx950", None, {"batch": 4, "width": 131072, "k": 512}, {})
    assert [row[:2] for row in made.row_paths] == [
        ("split_count", "alone"),
        ("split_count", "shared"),
        ("split_select", "trivial"),
        ("split_select", "alone"),
        ("split_select", "shared"),
    ]
    assert len(set(made.row_paths)) == len(made.row_paths)
