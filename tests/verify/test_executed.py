"""`verify` sees planted defects, says what it did not run, and shares runs between targets with equal text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dsv4gen.base import paths
from dsv4gen.base.errors import ToolMissing
from dsv4gen.emit.build import make_plans
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.reference import topk_cases
from dsv4gen.spec import load_specs
from dsv4gen.target import TargetRecord, resolve_target
from dsv4gen.verify import executed
from dsv4gen.verify.executed import execute_all
from dsv4gen.verify.found import Found
from dsv4gen.verify.outcome import MACHINE_CODE
from dsv4gen.verify.progress import Lines
from dsv4gen.verify.simt import SimtFamily
from tests.tools import need_tool
from tests.topk.host import only

#: of what is planned here: compiling kernels of all modes takes a minute for each target
FEW_MODES = ("indices", "packed")


def plan(target: str) -> FamilyPlan:
    (made,) = make_plans(load_specs(paths.specs()), target, ["topk"])
    return only(made, [i.symbol for k in made.kernels for i in k.instances if i.options["mode"] in FEW_MODES])


def record(target: str) -> TargetRecord:
    return resolve_target(load_specs(paths.specs()), target)


def few_cases(*, full: bool) -> Iterator[topk_cases.Call]:  # noqa: ARG001
    cases = [case for case in topk_cases.covering_cases(["select"]) if case.mode in FEW_MODES]
    for case in cases[:6]:
        yield topk_cases.Call(case, topk_cases.build_problem(case))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topk_cases, "verification_cases", few_cases)


@pytest.mark.usefixtures("few")
def test_symbols_and_branches_that_no_case_reached_are_listed() -> None:
    found = execute_all([plan("gfx950")], full=False)
    assert found.findings == []
    assert found.not_executed
    assert all(str(gap).startswith("gfx950 topk topk_") for gap in found.not_executed)


@pytest.mark.usefixtures("few")
def test_a_planted_defect_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        executed, "SimtFamily", lambda plan, wave: SimtFamily(plan, wave, frozenset({"missing_validity"}))
    )
    found = execute_all([plan("gfx950")], full=False)
    assert found.findings
    assert "topk on gfx950" in found.findings[0].text
    assert (found.findings[0].target, found.findings[0].family) == ("gfx950", "topk")


@pytest.mark.usefixtures("few")
def test_targets_with_equal_text_and_wave_share_a_run() -> None:
    texts: list[str] = []
    plans = [plan("gfx90a"), plan("gfx942"), plan("gfx1201")]
    found = execute_all(plans, full=False, progress=Lines(texts.append, seconds=math.inf))
    running = [text for text in texts if text.startswith("running")]
    assert running == ["running topk for gfx90a on the SIMT host", "running topk for gfx1201 on the SIMT host"]
    rows = {row.target: row.cases for row in found.rows if row.symbol == "topk_indices_t256"}
    assert rows["gfx90a"] == rows["gfx942"]


@pytest.mark.usefixtures("few")
def test_kernels_of_a_compile_only_target_are_listed_with_the_reason() -> None:
    made = plan("gfx1250")
    found = execute_all([made], full=False, records={"gfx1250": record("gfx1250")})
    gaps = [gap for gap in found.not_executed if gap.oracle == MACHINE_CODE]
    assert [gap.symbol for gap in gaps] == [i.symbol for kernel in made.kernels for i in kernel.instances]
    assert {gap.reason for gap in gaps} == {"gfx1250 is compile-only: the emulator does not execute it"}


@pytest.mark.usefixtures("few")
def test_what_a_case_reached_on_the_host_build_is_also_run_as_machine_code() -> None:
    need_tool("clang++-22")
    found = execute_all([plan("gfx950")], full=False, records={"gfx950": record("gfx950")})
    host = {(row.symbol, row.row_paths) for row in found.rows if row.oracle != MACHINE_CODE}
    assert host == {(row.symbol, row.row_paths) for row in found.rows if row.oracle == MACHINE_CODE}
    gaps = [(gap.symbol, gap.row_path) for gap in found.not_executed if gap.oracle == MACHINE_CODE]
    assert gaps
    assert gaps == [(gap.symbol, gap.row_path) for gap in found.not_executed if gap.oracle != MACHINE_CODE]
    assert not any(gap.reason for gap in found.not_executed)


def test_what_a_triton_family_ships_is_listed_by_name() -> None:
    (made,) = make_plans(load_specs(paths.specs()), "gfx1250", ["sparse_decode"])
    found = Found()
    found.add_machine_code_gaps(made, "because")
    names = [gap.symbol for gap in found.not_executed]
    assert "attend_scopes reduce=last_arriver block_n=32 warps=8" in names
    assert "merge_parts warps=1" in names
    assert len(names) == len(set(names))


def test_a_missing_tool_is_the_reason_of_all_that_did_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise ToolMissing("no compiler")

    monkeypatch.setattr(executed, "SimtFamily", missing)
    found = execute_all([plan("sm_90")], full=False)
    assert [finding.text for finding in found.findings] == ["topk on sm_90 was not run: no compiler"]
    assert found.not_executed
    assert {gap.reason for gap in found.not_executed} == {"no compiler"}


def test_the_text_key_depends_on_the_body() -> None:
    made = plan("gfx950")
    other = replace(made, constants={**made.constants, "rank_limit": 32})
    assert executed._text_key(made) != executed._text_key(other)


def test_cases_that_run_as_machine_code_have_every_mode_and_order() -> None:
    cases = [call.case for call in topk_cases.verification_cases(full=False)][:: executed.MACHINE_CODE_STEP]
    assert {case.mode for case in cases} == set(topk_cases.MODES)
    pairs = {(case.mode, executed.ORDERS[number % len(executed.ORDERS)]) for number, case in enumerate(cases)}
    assert len(pairs) == len(topk_cases.MODES) * len(executed.ORDERS)


def test_machine_code_runs_each_case_that_reaches_something_new() -> None:
    step = executed.MACHINE_CODE_STEP
    reached = [{("a", "")}] * 5 + [{("a", ""), ("a", "wide")}] * step + [{("b", "")}, {("b", ""), ("a", "wide")}]
    assert executed._machine_code_cases(reached) == {0, 5, step, step + 5}
