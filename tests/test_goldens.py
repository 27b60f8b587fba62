"""The committed folders of `generated/` are what the specs make; a difference shows in review as a diff."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GENERATED = Path(__file__).parent.parent / "generated"
GOLDENS = ("gfx950", "gfx1201", "sm_90", "sm_120")


@pytest.mark.parametrize("target", GOLDENS)
def test_the_committed_folder_is_current(target: str) -> None:
    assert (GENERATED / target / "manifest.json").is_file()
    command = [sys.executable, "-m", "dsv4gen", "build", "--check", "--target", target, "--out", str(GENERATED)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run: dsv4gen build --target {target}\n{done.stdout}{done.stderr}"


def test_only_these_folders_are_committed() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "generated"], cwd=GENERATED.parent, capture_output=True, text=True, check=False
    )
    if listed.returncode == 0 and listed.stdout:
        assert {line.split("/")[1] for line in listed.stdout.splitlines()} == set(GOLDENS)
