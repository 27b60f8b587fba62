"""`build --jobs`: the number of processes changes neither bytes nor messages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dsv4gen.base.errors import DsvError, OutputError
from dsv4gen.emit.build import Request, make_trees
from dsv4gen.emit.parallel import run_forked
from tests.specs import Copy, copy_specs

TARGETS = ("gfx950", "gfx1201", "sm_90")


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copy:
    copied = copy_specs(tmp_path)
    for name, value in copied.environment().items():
        monkeypatch.setenv(name, value)
    return copied


@pytest.mark.usefixtures("copy")
def test_bytes_are_the_same() -> None:
    alone, together = (make_trees(Request(TARGETS, ("topk",), jobs=jobs)) for jobs in (1, 3))
    assert list(alone) == list(together) == list(TARGETS)
    for target in TARGETS:
        assert alone[target].files == together[target].files
        assert alone[target].manifest.to_text() == together[target].manifest.to_text()


def test_messages_are_the_same(copy: Copy) -> None:
    copy.edit("specs/families/topk.yaml", "grid: [batch, ", "grid: [btach, ")
    found = []
    for jobs in (1, 2):
        with pytest.raises(DsvError) as caught:
            make_trees(Request(TARGETS, ("topk",), jobs=jobs))
        found.append(str(caught.value))
    assert found[0] == found[1]
    assert "topk.yaml:" in found[0] and "did you mean 'batch'?" in found[0] and "remedy" in found[0]


def test_results_come_in_order_and_from_other_processes() -> None:
    results = list(run_forked(lambda item: (item, os.getpid()), range(6), 2))
    assert [item for item, _ in results] == list(range(6))
    assert os.getpid() not in {process for _, process in results}
    assert {process for _, process in run_forked(lambda item: (item, os.getpid()), range(3), 1)} == {os.getpid()}


def test_a_process_that_dies_is_named() -> None:
    with pytest.raises(OutputError, match="a build process died"):
        list(run_forked(lambda _: os._exit(9), range(4), 2))
