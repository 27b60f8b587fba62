"""A spilled register is refused but in the modes and on the targets that a spec's allowance names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from dsv4gen.base import paths
from dsv4gen.emit.build import make_plans
from dsv4gen.emit.select import known_targets
from dsv4gen.plan.ir import Spills
from dsv4gen.prove import Expr
from dsv4gen.spec import load_specs
from dsv4gen.target import TargetRecord, resolve_target
from dsv4gen.toolchain import CodeObject, KernelResources
from dsv4gen.verify import run
from dsv4gen.verify.builds import build_words, option_builds
from dsv4gen.verify.compiled import Compiled, Job, compile_all
from dsv4gen.verify.found import Found


def _spilling(text: str, record: TargetRecord, *, symbols: Sequence[str], **_: object) -> CodeObject:  # noqa: ARG001
    """What a compiler would give if every kernel spilled one register."""
    used = [KernelResources(symbol, 64, 0, 0, 1, 0, 4, 0, 0, 1024, 32) for symbol in symbols]
    return CodeObject(record.device, "planted", "1", b"", None, tuple(used))


@pytest.mark.parametrize("target", known_targets())
def test_what_topk_may_spill(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where waves have 64 lanes, rows of one block; on NVIDIA clusters and such rows, but no short ones where they were
    tuned. Nothing else."""
    monkeypatch.setattr("dsv4gen.verify.compiled.compile_source", _spilling)
    specs = load_specs(paths.specs())
    record = resolve_target(specs, target)
    plans = make_plans(specs, target, ["topk"])
    found = compile_all([Job(plan, record) for plan in plans])
    refused = {finding.text.split()[0] for finding in found.findings if "1 spilled vector registers" in finding.text}
    allowed = {row.symbol for row in found.rows} - refused
    assert allowed == {row.symbol for row in found.rows if _may_spill(row.symbol, record)}
    assert len([symbol for symbol in refused if "page_table" in symbol]) >= 3
    assert bool(allowed) == (record.detect.api == "cuda" or record.wave.launch == 64)


def _may_spill(symbol: str, record: TargetRecord) -> bool:
    kind = next((kind for kind in ("short", "cluster", "split", "v1") if symbol.startswith(f"topk_{kind}")), "select")
    if record.wave.launch == 64:
        return kind in ("short", "select")
    tuned = record.name == "sm_90"
    one_block = kind == "select" or (kind == "short" and not tuned)
    return record.detect.api == "cuda" and (kind == "cluster" or one_block)


def _findings(target: str, when: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a build with these options is refused for, where `select` may spill as `when` says."""
    monkeypatch.setattr("dsv4gen.verify.compiled.compile_source", _spilling)
    specs = load_specs(paths.specs())
    (plan,) = make_plans(specs, target, ["topk"])
    spills = Spills(1, Expr.parse(when), "because")
    kernels = tuple(replace(kernel, spills=spills) for kernel in plan.kernels)
    found = compile_all([Job(replace(plan, kernels=kernels), resolve_target(specs, target), options)])
    assert all(row.symbol.endswith(build_words(options)) for row in found.rows)
    return [finding.text for finding in found.findings if "spilled" in finding.text]


def test_an_allowance_may_be_for_what_an_option_makes_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    low = {"tie_break": "low"}
    assert _findings("gfx950", "tie_break == 'low'", low, monkeypatch) == []
    assert _findings("gfx950", "tie_break == 'low'", {}, monkeypatch)
    refused = _findings("gfx950", "tie_break == 'none'", low, monkeypatch)
    assert refused and all(text.endswith("(with tie_break=low)") for text in refused)


def test_builds_have_every_choice_alone_and_all_at_once() -> None:
    specs = load_specs(paths.specs())
    gather, topk = sorted(make_plans(specs, "gfx950", ["topk", "gather_dequant"]), key=lambda plan: plan.family)
    builds = option_builds(topk)
    choices = {o.name: set(o.choices) - {o.default} for o in topk.options if o.name != "mode"}
    alone = {(name, choice) for build in builds if len(build) == 1 for name, choice in build.items()}
    assert alone == {(name, choice) for name, found in choices.items() for choice in found}
    assert [set(build) for build in builds if len(build) > 1] == [set(choices)]
    assert option_builds(gather) == []


def test_the_flag_compiles_them(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[Job] = []
    monkeypatch.setattr(run, "compile_all", lambda given, _: jobs.extend(given) or Compiled((), ()))
    monkeypatch.setattr(run, "execute_all", lambda *_, **__: Found())
    run.verify(["gfx950"], ["topk"])
    assert [dict(job.options) for job in jobs] == [{}]
    jobs.clear()
    run.verify(["gfx950"], ["topk"], builds=True)
    assert [dict(job.options) for job in jobs][1:] == option_builds(jobs[0].plan)
