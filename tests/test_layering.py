"""Stages import only stages to their left, and importing the package stays light (design: pipeline = folders)."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "dsv4gen"

#: folder -> folders it may import from (itself always)
ALLOWED = {
    "base": set(),
    "spec": {"base"},
    "target": {"base", "spec"},
    "prove": {"base"},
    "plan": {"base", "spec", "target", "prove"},
    "render": {"base", "plan", "prove"},
    "lint": {"base", "render"},
    "emit": {"base", "spec", "target", "plan", "prove", "render", "lint", "toolchain"},
    "runtime": {"base", "reference"},
    "toolchain": {"base", "target"},
    "interpret": {"base"},
    "emulate": {"base", "toolchain", "interpret"},
    "reference": {"base"},
    "compat": {"base", "runtime"},
}
FREE = {"verify", "bench", "tune", "report", "scaffold", "commands"}
HEAVY = ("torch", "triton", "numpy", "sympy", "z3", "jinja2", "pydantic", "ruamel", "click", "rich")


def imported(path: Path) -> set[str]:
    """Folders of the package that a module imports, function-level imports included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        found |= {name.split(".")[1] for name in names if name.startswith("dsv4gen.")}
    return {name for name in found if (PACKAGE / name).is_dir()}


def test_every_folder_has_a_rule() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir() and list(path.glob("*.py"))}
    assert folders <= set(ALLOWED) | FREE


@pytest.mark.parametrize("folder", sorted(ALLOWED))
def test_a_stage_imports_only_stages_to_its_left(folder: str) -> None:
    wrong = {
        f"{path.relative_to(PACKAGE)} imports {name}"
        for path in (PACKAGE / folder).rglob("*.py")
        for name in imported(path) - ALLOWED[folder] - {folder}
    }
    assert not wrong


def test_no_layer_is_circular() -> None:
    order = list(ALLOWED)
    for folder, allowed in ALLOWED.items():
        assert all(folder not in ALLOWED[other] for other in allowed), folder
    assert len(order) == len(set(order))


@pytest.mark.parametrize("module", ["dsv4gen", "dsv4gen.runtime", "dsv4gen.base.manifest"])
def test_importing_is_light(module: str) -> None:
    script = f"import sys, {module}; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
