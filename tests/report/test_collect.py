"""States are honest: each one is shown by what makes it, and nothing old, missing or damaged passes for done."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dsv4gen.report.html import page
from dsv4gen.report.model import Cell, Report
from dsv4gen.verify.outcome import ExecutedRow, Finding, Gap
from dsv4gen.verify.results import keep, write_results
from tests.report import planted as plant
from tests.report.planted import Planted


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return plant.sound(tmp_path_factory.mktemp("sound"))


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return plant.all_failures(tmp_path_factory.mktemp("failing"))[1]


def states(cell: Cell) -> str:
    return " ".join(stage.state for stage in cell.stages)


def test_without_results_nothing_passes_for_verified_or_measured(planted: Planted) -> None:
    report = planted.collect()
    assert states(report.cell("gfx950", "topk")) == "yes yes no no never"
    assert states(report.cell("sm_90", "topk")) == "yes yes no no no"
    assert states(report.cell("gfx1250", "topk")) == "no yes no no never"
    assert report.cell("gfx950", "topk").headline == "proven"
    assert report.clean


def test_emulated_is_not_measured_and_host_runs_are_not_emulated(planted: Planted) -> None:
    write_results(plant.merge([plant.emulated(planted, "gfx950"), plant.outcome(planted, "sm_90")]), planted.results)
    report = planted.collect([planted.results])
    amd, nvidia = report.cell("gfx950", "topk"), report.cell("sm_90", "topk")
    assert (amd.headline, amd.state) == ("emulated", "yes")
    assert amd.stage("measured").text == "emulated, not measured"
    assert (nvidia.headline, nvidia.state) == ("host build", "no")
    assert amd.counters[0].counted.counters["vector"] == 105190


def test_what_only_ran_as_source_is_compile_only_where_nothing_runs_the_machine_code(planted: Planted) -> None:
    with planted.here():
        plant.build(plant.Request(("gfx1250",)))
    write_results(plant.outcome(planted, "gfx1250", oracle="SIMT wave 32"), planted.results)
    cell = planted.collect([planted.results]).cell("gfx1250", "topk")
    assert cell.headline == "compile-only"
    assert cell.stage("executed").state == "part"


def test_results_kept_by_verify_are_found_without_being_named(planted: Planted) -> None:
    with planted.here():
        keep(plant.emulated(planted, "gfx950"))
    report = planted.collect()
    assert report.cell("gfx950", "topk").headline == "emulated"
    assert report.inputs == ("1 results of verify kept on this machine, newest 2026-01-02T03:04:05+00:00",)


def test_the_newer_of_two_results_counts(planted: Planted, tmp_path: Path) -> None:
    good = plant.outcome(planted, "gfx950")
    bad = replace(good, findings=(Finding("gfx950", "topk", "run", "wrong"),), finished="2026-02-01T00:00:00+00:00")
    files = [tmp_path / "new.json", tmp_path / "old.json"]
    write_results(bad, files[0])
    write_results(good, files[1])
    assert planted.collect(files).cell("gfx950", "topk").stage("executed").text == "wrong results"


def test_an_oracle_that_ran_no_case_is_not_execution(planted: Planted) -> None:
    row = ExecutedRow("gfx950", "topk", "topk_t256", "SIMT wave 64", 0, ())
    write_results(replace(plant.outcome(planted, "gfx950"), executed=(row,)), planted.results)
    assert planted.collect([planted.results]).cell("gfx950", "topk").stage("executed").state == "no"


def test_what_could_not_be_executed_is_told_and_is_no_failure(planted: Planted) -> None:
    gap = Gap("gfx1250", "topk", "topk_t256", oracle="amdgcn emulator", reason="the emulator does not execute it")
    with planted.here():
        plant.build(plant.Request(("gfx1250",)))
    write_results(replace(plant.outcome(planted, "gfx1250"), not_executed=(gap, gap)), planted.results)
    cell = planted.collect([planted.results]).cell("gfx1250", "topk")
    stage = cell.stage("executed")
    assert stage.state == "part"
    assert "amdgcn emulator: 2 kernels not executed: the emulator does not execute it" in stage.reasons
    assert cell.gaps == (gap, gap)


def test_no_compiler_is_not_compiled(planted: Planted) -> None:
    found = replace(plant.outcome(planted, "gfx950"), kernels=(), notes=("nothing was compiled: no clang",))
    write_results(found, planted.results)
    stage = planted.collect([planted.results]).cell("gfx950", "topk").stage("compiled")
    assert (stage.state, stage.reasons) == ("no", ("nothing was compiled: no clang",))


def test_spills_within_the_budget_of_the_spec_are_a_reservation(planted: Planted) -> None:
    write_results(replace(plant.spilling(plant.outcome(planted, "gfx950")), findings=()), planted.results)
    stage = planted.collect([planted.results]).cell("gfx950", "topk").stage("compiled")
    assert (stage.state, stage.text) == ("part", "spills allowed")


@pytest.mark.parametrize(
    ("change", "state", "text"),
    [
        ({}, "yes", "H200"),
        ({"digests": {}}, "part", "H200"),
        ({"digests": {"topk": "0" * 64}}, "stale", "older times"),
        ({"machine": {"device": "NVIDIA H200", "target": "sm_80"}}, "no", "not measured"),
    ],
)
def test_times_belong_to_a_card_and_to_what_was_timed(
    planted: Planted, change: dict[str, object], state: str, text: str
) -> None:
    planted.times.write_text(json.dumps({**plant.times(planted), **change}), encoding="utf-8")
    stage = planted.collect((), [planted.times]).cell("sm_90", "topk").stage("measured")
    assert (stage.state, stage.text) == (state, text)


def test_shapes_that_could_not_be_timed_are_named(planted: Planted) -> None:
    data = plant.times(planted)
    data["rows"][0].update(problem="differs from the reference", times={})
    planted.times.write_text(json.dumps(data), encoding="utf-8")
    stage = planted.collect((), [planted.times]).cell("sm_90", "topk").stage("measured")
    assert (stage.state, stage.text) == ("failed", "1/12 shapes fail")
    assert stage.reasons[1].startswith("11 of 12 shapes on NVIDIA H200")
    assert stage.reasons[0] == "select batch=1 width=4096 k=512: differs from the reference"


@pytest.mark.parametrize(
    ("cell", "headline", "five"),
    [
        ("gfx90a/topk", "does not fit", "failed failed no no never"),
        ("gfx90a/gather_dequant", "out of date", "stale yes no no never"),
        ("gfx950/topk", "stale tuning", "failed failed yes failed never"),
        ("gfx950/gather_dequant", "older results", "yes yes stale stale never"),
        ("gfx1250/topk", "not built", "no yes no no never"),
        ("sm_90/topk", "spills", "yes yes failed yes yes"),
        ("sm_90/gather_dequant", "damaged", "failed yes yes failed no"),
    ],
)
def test_planted_failures(failing: Report, cell: str, headline: str, five: str) -> None:
    found = next(one for one in failing.cells if one.id == cell)
    assert (found.headline, states(found)) == (headline, five)
    assert not failing.clean


def test_unusable_inputs_are_named_once(failing: Report) -> None:
    first, second = failing.problems
    assert "gone.json: there is no such file" in first
    assert "other.json: not a result of dsv4gen bench schema 1" in second


def test_a_family_that_is_no_yaml_keeps_its_column(planted: Planted, tmp_path: Path) -> None:
    other = plant.sound(tmp_path)
    other.copy.edit("specs/families/topk.yaml", "language: hip_cuda", "langauge: hip_cuda")
    cell = other.collect().cell("gfx950", "topk")
    assert (cell.headline, states(cell)) == ("spec has mistakes", "failed failed no no never")
    assert "unknown key 'langauge' (did you mean 'language'?)" in cell.stage("proven").reasons[1]
    assert cell.proofs == planted.collect().cell("gfx950", "topk").proofs


def test_a_template_that_does_not_render_is_proven_and_not_built(tmp_path: Path) -> None:
    other = plant.sound(tmp_path)
    other.copy.edit("templates/hip_cuda/topk.cu.jinja", "{% from", "{{ no_such_name }}\n{% from")
    cell = other.collect().cell("gfx950", "topk")
    assert (cell.headline, states(cell)) == ("cannot be built", "failed yes no no never")
    assert "no_such_name" in cell.stage("built").reasons[0]


def test_rejected_paths_keep_their_reason_and_spec_key(planted: Planted) -> None:
    cell = planted.collect().cell("gfx950", "topk")
    cluster = next(path for path in cell.paths if path.name == "cluster")
    assert cluster.rejected == "requires cluster.remote_shared, but cluster.remote_shared is False"
    family = planted.collect().families[1]
    assert cluster.key in family.spec_lines
    assert {one.path for one in cell.decisions} == {"short", "single", "split"}
    assert all(one.because for one in cell.decisions)


def test_equal_inputs_give_equal_pages(planted: Planted) -> None:
    assert page(planted.collect()) == page(planted.collect())
