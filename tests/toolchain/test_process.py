"""How an ended program is described, and what it may see of the caller."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dsv4gen.toolchain import process


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("exit 3", "exit status 3"),
        ("exit 139", "killed by signal 11 (SIGSEGV)"),
        ("kill -SEGV $$", "killed by signal 11 (SIGSEGV)"),
        ("kill -KILL $$", "killed by signal 9 (SIGKILL, often for lack of memory)"),
        ("echo 'clang: error: unable to execute command: Killed'; exit 1", "killed by signal 9"),
        ("echo \"nvcc error   : 'cicc' died due to signal 11 \"; exit 1", "killed by signal 11"),
    ],
)
def test_the_end_is_told_in_words(tmp_path: Path, body: str, reason: str) -> None:
    outcome = process.run(["/bin/sh", "-c", body], tmp_path)
    assert not outcome.succeeded
    assert outcome.reason.startswith(reason)


def test_success_is_not_a_signal_whatever_was_printed(tmp_path: Path) -> None:
    outcome = process.run(["/bin/sh", "-c", "echo died due to signal 11"], tmp_path)
    assert outcome.succeeded
    assert outcome.signal_number is None


def test_a_program_and_its_children_are_stopped_at_the_limit(tmp_path: Path) -> None:
    outcome = process.run(["/bin/sh", "-c", "sleep 60 & sleep 60"], tmp_path, timeout_s=0.2)
    assert not outcome.succeeded
    assert outcome.seconds < 30
    assert "did not end within" in outcome.reason


def test_stray_variables_do_not_reach_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CPATH", "/nowhere")
    monkeypatch.setenv("NVCC_APPEND_FLAGS", "-DSURPRISE")
    script = "import os; print(sorted(os.environ)); print(os.environ['TMPDIR'])"
    outcome = process.run([sys.executable, "-c", script], tmp_path)
    assert "CPATH" not in outcome.output
    assert "NVCC_APPEND_FLAGS" not in outcome.output
    assert outcome.output.endswith("\n.\n")


def test_the_shown_command_can_be_pasted(tmp_path: Path) -> None:
    outcome = process.run(["/bin/echo", "a b", "$(touch x)"], tmp_path)
    assert outcome.shown_command == "echo 'a b' '$(touch x)'"
    assert outcome.output == "a b $(touch x)\n"
