"""`build --watch`: every save builds, mistakes are survived, an interrupt is a clean end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from queue import Queue

import pytest

from dsv4gen.base.errors import UsageError
from dsv4gen.emit.build import Request
from dsv4gen.emit.watch import Rebuilt, watch
from tests.specs import Copy, copy_specs

SPEC = "specs/families/topk.yaml"
TEMPLATE = "templates/hip_cuda/topk.cu.jinja"
WAIT_S = 30.0


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copy:
    copied = copy_specs(tmp_path)
    for name, value in copied.environment(DSV4GEN_EXTENSIONS="none").items():
        monkeypatch.setenv(name, value)
    return copied


@pytest.fixture
def events(copy: Copy) -> Iterator[Queue[Rebuilt]]:
    """What a watch over gfx950's topk reports, until the test ends."""
    found: Queue[Rebuilt] = Queue()
    stop = threading.Event()

    def run() -> None:
        for event in watch(lambda: Request(("gfx950",), ("topk",), copy.generated), stop):
            found.put(event)

    thread = threading.Thread(target=run)
    thread.start()
    yield found
    stop.set()
    thread.join(WAIT_S)
    assert not thread.is_alive()


def files(event: Rebuilt) -> set[str]:
    return {name for built in event.built for name in built.changed}


def test_saves_mistakes_and_repairs(copy: Copy, events: Queue[Rebuilt]) -> None:
    first = events.get(timeout=WAIT_S)
    assert first.saved == () and "topk.hip" in files(first)
    time.sleep(0.3)  # the watcher begins after the first build

    copy.edit(SPEC, "rank_limit: 128", "rank_limit: 64")
    changed = events.get(timeout=WAIT_S)
    assert [Path(name).name for name in changed.saved] == ["topk.yaml"]
    assert files(changed) == {"manifest.json", "plans/topk.json", "topk.hip"}

    copy.edit(SPEC, "rank_limit: 64", "rank_limit: many")
    broken = events.get(timeout=WAIT_S)
    assert "rank_limit" in str(broken.errors[0]) and files(broken) == set()

    copy.edit(SPEC, "rank_limit: many", "rank_limit: 128")
    assert files(events.get(timeout=WAIT_S)) == {"manifest.json", "plans/topk.json", "topk.hip"}

    copy.edit(TEMPLATE, "constexpr u32 kSign", "// saved\nconstexpr u32 kSign")
    saved = events.get(timeout=WAIT_S)
    assert "topk.hip" in files(saved), "a template saved in a running process is read again"
    assert "// saved" in (copy.generated / "gfx950" / "topk.hip").read_text(encoding="utf-8")

    (copy.folder / "specs" / "notes.txt").write_text("not an input")
    copy.edit(SPEC, "family: topk", "# a comment\nfamily: topk")
    assert files(events.get(timeout=WAIT_S)) == set()


def test_a_request_that_cannot_be_made_is_no_watch() -> None:
    def refuse() -> Request:
        raise UsageError("no target given")

    with pytest.raises(UsageError):
        next(watch(refuse))


def test_an_interrupt_ends_it_cleanly(copy: Copy) -> None:
    command = [sys.executable, "-m", "dsv4gen", "build", "--watch", "--target", "gfx950", "--family", "topk"]
    with subprocess.Popen(
        command,
        env=copy.environment(),
        cwd=copy.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs of a shell ignore it
    ) as child:
        assert child.stdout is not None
        line = child.stdout.readline()
        assert line.startswith("wrote gfx950 ") and line.rstrip().endswith("s)")
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        out, errors = child.communicate(timeout=WAIT_S)
    assert (child.returncode, out, errors) == (0, "", "")
