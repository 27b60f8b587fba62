"""Facts that contradict each other are refused; each rule with the edit that breaks it."""

# ruff: noqa: E501 - one contradiction per line

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dsv4gen.base import paths
from dsv4gen.base.errors import DsvError, Problems
from dsv4gen.spec import load_specs
from dsv4gen.target import resolve_target
from tests.spec.samples import damage

BROKEN = [
    ("sm_90", "  block: 232448", "  block: 233472", "sm_90: shared.block = 233472 and the reserve exceed shared.unit"),
    ("sm_90", "  threads: 2048", "  threads: 512", "sm_90: block.threads = 1024 is larger than unit.threads"),
    ("sm_90", "  threads: 2048", "  threads: 2049", "sm_90: unit.threads = 2049 is not a multiple of the wave"),
    ("sm_90", "  maximum: 16", "  maximum: 4", "sm_90: cluster.portable = 8 is larger than cluster.maximum"),
    ("gfx950", "  static: 163840", "  static: 163841", "gfx950: shared.static = 163841 is larger than shared.block"),
    ("gfx1250", "  launch: 32", "  launch: 64", "gfx1250: wave.launch = 64 is not among wave.sizes"),
    ("gfx1250", "arch: gfx1250, wave: 32", "arch: gfx1250, wave: 64", "compile.triton.wave = 64 differs from wave.launch"),
    ("gfx1250", "  supported: true", "  supported: false", "cluster.use = probe needs clusters, which it lacks"),
    ("gfx1250", "  vector: 1024", "  vector: 1025", "regs.vector = 1025 is larger than regs.per_thread"),
    ("sm_80", "block: 101376", "block: 10137", "sm_86: shared.static = 49152 is larger than shared.block"),
    ("gfx950", "evidence: emulated\n", "", "gfx950 is a target and needs 'evidence'"),
    ("gfx950", "evidence: emulated", "evidence: emulated\ndefaults: {topk: v3}", "defaults.topk is 'v3', which is no variant of topk"),
    ("_hip", "defaults: {topk: v2}", "defaults: {topk: v3}", "defaults.topk is 'v3', which is no variant of topk"),
    ("_hip", "defaults: {topk: v2}", "defaults: {}", "gfx950 has no default for 'topk', which the family topk asks for"),
]  # fmt: skip


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(paths.specs(), tmp_path / "specs"))


@pytest.mark.parametrize(("name", "old", "new", "expected"), BROKEN, ids=[row[3] for row in BROKEN])
def test_contradiction(copied: Path, name: str, old: str, new: str, expected: str) -> None:
    file = copied / "platforms" / f"{name}.yaml"
    file.write_text(damage(file.read_text(), old, new))
    with pytest.raises(DsvError) as caught:
        resolve_target(load_specs(copied), "gfx950" if name == "_hip" else name)
    error = caught.value
    found = error.errors if isinstance(error, Problems) else (error,)
    matching = [one for one in found if expected in one.message]
    assert len(matching) == 1
    assert matching[0].place is not None and matching[0].place.line is not None
    if "v3" in new:
        assert matching[0].place.file.endswith(f"/{name}.yaml")
        line = file.read_text().splitlines()[matching[0].place.line - 1]
        assert line[(matching[0].place.column or 0) - 1 :].startswith("v3")
