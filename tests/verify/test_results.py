"""Outcomes on disk: read back as they were, kept per target and family; other files are refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dsv4gen.base.errors import OutputError, ResultsError
from dsv4gen.base.manifest import Manifest
from dsv4gen.verify.outcome import Counted, CounterRow, ExecutedRow, Finding, Gap, KernelRow, Outcome
from dsv4gen.verify.results import keep, kept, read_results, write_results


def outcome() -> Outcome:
    return Outcome(
        targets=("gfx950", "sm_90"),
        kernels=(
            KernelRow("gfx950", "topk", "gfx950", "topk_t256", "clang", 82, 0, 90, 0, 0, 17696, 163840, 5),
            KernelRow("sm_90", "topk", "sm_90", "topk_t256", "nvrtc", 40, 0, 0, 3, 12, 17696, 49152, 2),
        ),
        executed=(ExecutedRow("gfx950", "topk", "topk_t256", "SIMT wave 64", 264, ("register2", "trivial")),),
        not_executed=(
            Gap("gfx950", "topk", "topk_t256", "streaming"),
            Gap("sm_90", "gather", "scope", "", "an oracle", "why"),
        ),
        findings=(Finding("sm_90", "topk", "compile", "topk_t256 spills 3 registers"),),
        notes=("a note",),
        seconds={"compile": 1.5},
        counters=(CounterRow("gfx950", "topk", "topk_t256", Counted("normal", (4, 1, 1), 256, 1000, {"valu": 700})),),
        digests={"gfx950": {"topk": "a"}, "sm_90": {"topk": "b", "gather": "c"}},
        finished="2026-01-01T00:00:00+00:00",
    )


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    write_results(outcome(), tmp_path / "deep" / "results.json")
    assert read_results(tmp_path / "deep" / "results.json") == outcome()
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["results.json"]


def test_each_target_and_family_is_kept_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(tmp_path))
    keep(outcome())
    parts = {path.name: read_results(path) for path in kept()}
    assert set(parts) == {"gfx950.topk.json", "sm_90.topk.json", "sm_90.gather.json"}
    part = parts["sm_90.topk.json"]
    assert [row.device for row in part.kernels] == ["sm_90"]
    assert (part.executed, part.counters, part.not_executed) == ((), (), ())
    assert part.findings == outcome().findings
    assert part.digests == {"sm_90": {"topk": "b"}}


def test_an_unwritable_cache_is_no_error_and_an_unwritable_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", "/dev/null/cache")
    keep(outcome())
    with pytest.raises(OutputError, match="cannot write /dev/null"):
        write_results(outcome(), Path("/dev/null/results.json"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "not readable as JSON"),
        ("[]", "not results of dsv4gen verify: kind is None"),
        ('{"kind": "dsv4gen bench"}', "not results of dsv4gen verify: kind is 'dsv4gen bench'"),
        ('{"kind": "dsv4gen verify", "schema": 99}', "results of schema 99; this dsv4gen reads schema 1"),
        ('{"kind": "dsv4gen verify", "schema": 1}', "targets: field required"),
    ],
)
def test_other_files_are_named(tmp_path: Path, text: str, expected: str) -> None:
    (tmp_path / "f.json").write_text(text, encoding="utf-8")
    with pytest.raises(ResultsError, match=expected):
        read_results(tmp_path / "f.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="there is no such file"):
        read_results(tmp_path / "f.json")


def test_a_row_of_another_shape_is_named(tmp_path: Path) -> None:
    data = outcome().to_json()
    data["kernels"][0]["registers"] = "many"
    (tmp_path / "f.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ResultsError, match=r"kernels\.0\.registers: input should be a valid integer"):
        read_results(tmp_path / "f.json")


def test_the_digest_of_a_family_follows_its_plan_and_its_files_only() -> None:
    mine = ("topk.hip", "topk.py", "maps/topk.hip.json", "plans/topk.json")
    others = ("gather.py", "plans/gather.json", "__init__.py")
    outputs = {name: str(number) for number, name in enumerate((*mine, *others))}

    def digest(**changed: str) -> str:
        return Manifest({"outputs": {**outputs, **changed}}, {}).family_digest("topk")

    assert {name for name in outputs if digest() != digest(**{name: "9"})} == set(mine)
