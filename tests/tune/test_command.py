"""The steps together: words that fit nothing, counts where no card is, journals shared by processes."""

from __future__ import annotations

import importlib
import json
from multiprocessing import get_context
from pathlib import Path

import pytest
from click.testing import CliRunner

from dsv4gen.base.errors import UsageError, VerifyError
from dsv4gen.bench.cells import Cell, Wanted, cells_of
from dsv4gen.cli import main
from dsv4gen.plan.make import make_plan
from dsv4gen.tune import command, counts
from dsv4gen.tune.asked import Asked, Sweeping
from dsv4gen.tune.candidates import spec_of, with_tile
from dsv4gen.tune.command import run
from dsv4gen.tune.journal import BASE, Entry, Head, Journal, read_journal
from dsv4gen.tune.show import exit_status, gain, show, to_json
from dsv4gen.tune.workers import _classes
from tests.tools import need_tool

HEAD = Head("topk", "sm_90", "time", "2026-01-02", {"device": "a card"}, {})


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the specs without tuning files, in use."""
    import shutil

    from tests.checkout import ROOT

    shutil.copytree(ROOT / "specs", tmp_path / "specs", ignore=shutil.ignore_patterns("tuning"))
    monkeypatch.setenv("DSV4GEN_SPECS_DIR", str(tmp_path / "specs"))
    return tmp_path / "specs"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["tune"], 2, "no family given"),
        (["tune", "--pack", "a", "--measure", "b"], 2, "exclude each other"),
        (["tune", "topk"], 3, "no GPU number 0"),
        (["tune", "topk", "--tile", "x=y"], 2, "is no number"),
        (["tune", "topk", "--near", "0"], 2, "is not in the range"),
        (["tune", "--measure", "a", "--near", "1"], 2, "--measure takes no --near"),
        (["tune", "--measure", "/no/such/pack"], 2, "no pack of candidates"),
        (["tune", "--apply", "/no/such/journal"], 2, "no journal"),
        (["tune", "topk", "--target", "sm_90", "--pack", "a.pack", "--kernel", "slect"], 2, "did you mean 'select'"),
        (["tune", "topk", "--target", "sm_120"], 2, "no card of sm_120 is here"),
        (["tune", "sparse_decode", "--target", "gfx950"], 2, "no calls by shape"),
    ],
)
def test_words(words: list[str], status: int, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(tmp_path))
    done = CliRunner().invoke(main, words)
    assert done.exit_code == status and message in done.output
    assert "Traceback" not in done.output


def test_counts_are_marked_and_leave_out_what_is_wrong(
    specs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def executed(plan: object, _: object, cell: Cell, __: object) -> int:
        tile = plan.kernel("short").buckets[-1].tile  # type: ignore[attr-defined]
        if tile["row_vectors"] == 1:
            raise VerifyError("out differs")
        return 1000 * int(tile["block_threads"]) + cell.shape["k"]

    monkeypatch.setattr(counts, "executed", executed)
    monkeypatch.setattr(command, "_card_runs", lambda *_: False)
    how = Sweeping(Wanted((), {"batch": 2, "width": 600, "k": 64}, {"mode": "indices"}))
    asked = Asked("topk", "gfx950", ["short"], {"coarse_bits": 12}, tmp_path / "a.jsonl")
    done = run(asked, how)
    head, entries = read_journal(tmp_path / "a.jsonl")
    assert head.kind == "emulated" and head.machine == {"device": "emulated gfx950"}
    wrong = [e.tile for e in entries if e.problem == "out differs"]
    assert wrong and all(tile["row_vectors"] == 1 for tile in wrong)
    text = (specs / "tuning" / "gfx950" / "topk.yaml").read_text(encoding="utf-8")
    assert "kind: emulated" in text and "instructions: 256064" in text and "microseconds" not in text
    assert "not time" in text
    assert done.outcome is not None
    ratio = gain(done.outcome)
    assert ratio is not None and ratio < 1
    show(done)
    assert exit_status(done) == 0
    assert to_json(done)["kernels"]["short"][-1]["when"] == "true"
    assert "instructions, emulated" in capsys.readouterr().out


def test_a_sweep_that_did_not_end_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = command.Done(tmp_path / "a.jsonl", False)
    show(done)
    assert exit_status(done) == 1
    assert "the same command goes on" in capsys.readouterr().out


def _add(path: Path, number: int) -> None:
    journal = Journal.open(path, HEAD)
    for k in range(100):
        journal.add(Entry("select", {}, {"k": k, "batch": number}, "select", {"block_threads": 64 * number}, value=1.0))


def test_processes_share_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    Journal.open(path, HEAD)
    pool = [get_context("spawn").Process(target=_add, args=(path, number)) for number in (1, 2)]
    for process in pool:
        process.start()
    for process in pool:
        process.join()
    assert [process.exitcode for process in pool] == [0, 0]
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len([json.loads(line) for line in lines]) == 201
    assert len({entry.key for entry in read_journal(path)[1]}) == 200


def test_shapes_of_one_class_are_compiled_once() -> None:
    op = {
        "params": {"fields": [["width", "u32", 0], ["heads", "u32", 4]]},
        "tensors": [{"shape": [{"tree": "tokens"}, {"tree": "width"}]}],
    }
    one = _classes(op, {"tokens": 1, "width": 128, "heads": 16, "page_size": 64})
    assert _classes(op, {"tokens": 99, "width": 640, "heads": 64, "page_size": 64}) == one
    assert _classes(op, {"tokens": 1, "width": 129, "heads": 16, "page_size": 64}) != one
    assert _classes(op, {"tokens": 1, "width": 1, "heads": 16, "page_size": 64}) != one
    assert _classes(op, {"tokens": 1, "width": 128, "heads": 16, "page_size": 2}) != one


def test_apply_refuses_a_journal_of_a_family_that_is_gone(specs: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    Journal.open(tmp_path / "a.jsonl", replace(HEAD, family="topq"))
    with pytest.raises(UsageError, match="did you mean 'topk'"):
        run(Asked(None, apply=tmp_path / "a.jsonl"), Sweeping())
    assert not (specs / "tuning").exists()


def test_apply_refuses_a_journal_without_any_kernels_tile(specs: Path, tmp_path: Path) -> None:
    Journal.open(tmp_path / "a.jsonl", HEAD).add(Entry("select", {}, {"k": 4}, BASE, {}, value=3.0, final=True))
    with pytest.raises(UsageError, match="no kernel's tile was measured"):
        run(Asked(None, apply=tmp_path / "a.jsonl"), Sweeping())
    assert not (specs / "tuning").exists()


def test_apply_leaves_the_specs_as_they_were_where_a_tile_is_no_longer_legal(specs: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    head = replace(HEAD, family="gather_dequant", axes={"dual": ["tokens"]})
    entry = Entry("gather_dual", {}, {"tokens": 2}, "dual", {"rows": 4}, "true", 3.0, True)
    Journal.open(tmp_path / "a.jsonl", head).add(entry)
    with pytest.raises(UsageError, match="no value for 'num_stages'"):
        run(Asked(None, apply=tmp_path / "a.jsonl"), Sweeping())
    assert not list(specs.rglob("tuning/*/*.yaml"))


def test_the_emulator_counts_what_the_machine_code_executes() -> None:
    need_tool("clang-22")
    loaded, record, _ = spec_of("topk", "gfx950")
    cases = importlib.import_module("dsv4gen.reference.topk_cases")
    counting = counts.Counting("topk", "gfx950")
    (cell,) = cells_of("topk", counting.entry, Wanted((), {"batch": 2, "width": 600, "k": 64}, {"mode": "indices"}))
    found = {}
    for threads, vectors in ((256, 1), (1024, 4)):
        tile = {"block_threads": threads, "row_vectors": vectors, "coarse_bits": 12, "tie_capacity": 1024}
        plan = make_plan(with_tile(loaded, "short", tile), record)
        found[threads] = counts.executed(plan, record, cell, cases)
    assert 0 < found[256] < found[1024]
