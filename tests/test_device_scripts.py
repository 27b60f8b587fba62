"""The scripts for a card, where there is none: each is named once in the list of all, and says that it needs one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkout import ROOT
from tests.device import run_all

SCRIPTS = sorted(path.stem for path in (ROOT / "tests" / "device").glob("run_*.py"))


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_without_a_card_a_script_says_so(name: str) -> None:
    done = _run(f"tests/device/{name}.py")
    assert (done.returncode, done.stderr) == (2, "needs a CUDA card: torch sees none on this machine\n")


def test_the_list_of_all_names_every_script_and_every_family(tmp_path: Path) -> None:
    commands = [" ".join(part.command) for part in run_all.parts(tmp_path)]
    for name in set(SCRIPTS) - {"run_all"}:
        assert any(f"{name}.py" in command for command in commands)
    for family in (path.stem for path in (ROOT / "specs" / "families").glob("*.yaml")):
        assert any(f"bench {family} " in command for command in commands)
    assert len({part.name for part in run_all.parts(tmp_path)}) == len(commands)
    assert "topk-race" in _run("tests/device/run_all.py", "--list", "--only", "topk").stdout


def test_a_part_is_right_wrong_or_stopped(tmp_path: Path) -> None:
    outcomes = {
        "print(1)": "right",
        "raise SystemExit(3)": "exit status 3",
        "import time; time.sleep(60)": "stopped after 1 s",
    }
    for number, (text, outcome) in enumerate(outcomes.items()):
        assert run_all.run(run_all.Part(f"p{number}", ("-c", text), 1), tmp_path, 1) == outcome
    assert (tmp_path / "p0.log").read_text() == "1\n"
