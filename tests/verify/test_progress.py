"""`verify` says what it does while it works: on standard error, and nothing where a program reads."""

from __future__ import annotations

import io
import json
from typing import Any

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from dsv4gen.cli import main
from dsv4gen.verify import progress, run
from dsv4gen.verify.outcome import Outcome
from dsv4gen.verify.progress import Lines, Live, Progress, shown

NOTHING = Outcome((), (), (), (), (), (), {})


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def staged(*_: object, progress: Progress, **__: object) -> Outcome:
    with progress.stage("compiling", 2) as step:
        step()
        step()
    with progress.stage("running"):
        return NOTHING


def test_without_a_terminal_each_stage_is_a_line() -> None:
    lines: list[str] = []
    staged(progress=Lines(lines.append))
    assert lines == ["compiling (2)", "running"]


def test_without_a_terminal_a_long_stage_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    clock = iter([0.0, 8.0, 11.0, 11.0, 15.0, 22.0, 22.0, 0.0, 30.0, 30.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    shown = Lines(lines.append, seconds=10)
    with shown.stage("running", 9) as step:
        for _ in range(4):
            step()
    with shown.stage("looking") as step:
        step()
    assert lines == ["running (9)", "running: 2 of 9", "running: 4 of 9", "looking", "looking: 1 done"]


def test_a_terminal_shows_the_stages_that_run_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Terminal()
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=file, force_terminal=True, width=80))
    with Live() as live:
        with live.stage("compiling", 2) as step:
            step()
            live._bars.refresh()
            assert "1 of 2" in file.getvalue()
            with live.stage("running") as other:
                other()
                live._bars.refresh()
        assert live._bars.tasks == []
    shown_text = click.unstyle(file.getvalue())
    assert "compiling" in shown_text
    assert "running" in shown_text


def test_what_is_shown_depends_on_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    with shown() as found:
        assert isinstance(found, Live)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with shown() as found:
        assert isinstance(found, Lines)
    with shown(quiet=True) as found:
        assert found is progress.QUIET


@pytest.mark.parametrize(("flags", "stages"), [([], "compiling (2)\nrunning\n"), (["--json"], "")])
def test_the_command_shows_stages_but_not_to_programs(
    flags: list[str], stages: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(run, "verify", staged)
    result = CliRunner().invoke(main, ["verify", "--target", "gfx950", *flags])
    assert (result.exit_code, result.stderr) == (0, stages)
    assert json.loads(result.stdout)["passed"] if flags else result.stdout.startswith("verified: 0 targets")
