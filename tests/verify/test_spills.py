"""A spilled register is refused but in the modes and on the targets that a spec's allowance names."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dsv4gen.base import paths
from dsv4gen.emit.build import make_plans
from dsv4gen.emit.select import known_targets
from dsv4gen.spec import load_specs
from dsv4gen.target import TargetRecord, resolve_target
from dsv4gen.toolchain import CodeObject, KernelResources
from dsv4gen.verify.compiled import Job, compile_all


def _spilling(text: str, record: TargetRecord, *, symbols: Sequence[str], **_: object) -> CodeObject:  # noqa: ARG001
    """What a compiler would give if every kernel spilled one register."""
    used = [KernelResources(symbol, 64, 0, 0, 1, 0, 4, 0, 0, 1024, 32) for symbol in symbols]
    return CodeObject(record.device, "planted", "1", b"", None, tuple(used))


@pytest.mark.parametrize("target", known_targets())
def test_only_windows_of_topk_on_nvidia_may_spill(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsv4gen.verify.compiled.compile_source", _spilling)
    specs = load_specs(paths.specs())
    record = resolve_target(specs, target)
    plans = make_plans(specs, target, ["topk"])
    found = compile_all([Job(plan, record) for plan in plans])
    refused = {finding.text.split()[0] for finding in found.findings if "1 spilled vector registers" in finding.text}
    allowed = {row.symbol for row in found.rows} - refused
    assert len([symbol for symbol in refused if "page_table" in symbol]) >= 5
    assert all("_packed_" in symbol or "_ragged_" in symbol for symbol in allowed)
    assert bool(allowed) == (record.detect.api == "cuda")
