"""The guides, done word by word in a copy of the checkout."""

from __future__ import annotations

from pathlib import Path

from tests.checkout import ROOT, copy_checkout
from tests.scaffold.guide import run_guide


def guide(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_adding_a_target(tmp_path: Path) -> None:
    assert run_guide(guide("adding-a-target.md"), copy_checkout(tmp_path)) == 9


def test_adding_a_family(tmp_path: Path) -> None:
    checkout = copy_checkout(tmp_path)
    assert run_guide(guide("adding-a-family.md"), checkout) == 15
    assert not [path for path in tmp_path.rglob("*scratch*") if ".cache" not in path.parts], "a family taken back"
    stub = (tmp_path / "generated" / "gfx950" / "argmax.pyi").read_text(encoding="utf-8")
    assert "def argmax(" in stub and "values: Any,  # f32 [rows, width]" in stub
    targets = {path.stem for path in (ROOT / "specs" / "platforms").glob("[!_]*.yaml")}
    assert {path.parent.name for path in (tmp_path / "generated").glob("*/argmax.py")} == targets
