"""What `verify` prints: every row names its family, and what was not executed says where and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dsv4gen.verify.outcome import MACHINE_CODE, ExecutedRow, Gap, KernelRow, Outcome

FOUND = Outcome(
    targets=("gfx950",),
    kernels=(KernelRow("gfx950", "logits", "gfx950", "decode", "triton", 82, 0, 90, 0, 0, 17696, 163840, 5),),
    executed=(ExecutedRow("gfx950", "logits", "decode", "interpreter", 264, ()),),
    not_executed=(),
    findings=(),
    notes=(),
    seconds={"compile": 1.5},
)
IMPOSSIBLE = Gap("gfx1250", "logits", "decode", oracle=MACHINE_CODE, reason="compile-only")
UNREACHED = Gap("gfx950", "logits", "prefill", oracle=MACHINE_CODE)


def printed(outcome: Outcome, capsys: pytest.CaptureFixture[str]) -> list[str]:
    outcome.show()
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_both_tables_name_the_family(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(FOUND, capsys)
    assert lines[0].startswith("target family kernel compiler regs")
    assert lines[1].startswith("gfx950 logits decode triton 82")
    assert lines[3:5] == ["target family kernel or op oracle cases row paths", "gfx950 logits decode interpreter 264"]
    assert lines[-1] == "verified: 1 target, 1 kernels compiled, 264 cases executed, 0 findings (compile 1.5 s)"


def test_what_cannot_run_is_listed_with_its_reason_and_fails_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    found = replace(FOUND, not_executed=(IMPOSSIBLE,))
    lines = printed(found, capsys)
    assert "target family not executed on because" in lines
    assert "gfx1250 logits decode amdgcn emulator compile-only" in lines
    assert "1 not executed" in lines[-1]
    assert found.passed


def test_what_no_case_reached_fails(capsys: pytest.CaptureFixture[str]) -> None:
    found = replace(FOUND, not_executed=(IMPOSSIBLE, UNREACHED))
    assert "not executed: gfx950 logits prefill on amdgcn emulator: no case reached it" in printed(found, capsys)
    assert not found.passed


def test_reasons_are_in_the_json() -> None:
    data = replace(FOUND, not_executed=(IMPOSSIBLE,)).to_json()
    assert data["not_executed"][0]["reason"] == "compile-only"
    assert data["not_executed"][0]["oracle"] == MACHINE_CODE
