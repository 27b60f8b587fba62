"""Generated gather_dequant modules for tests: any target, any planted defect, any spec constants."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path

from dsv4gen.base import paths
from dsv4gen.lint import check_file
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.plan.make import make_plan
from dsv4gen.render import RenderedFile
from dsv4gen.render.render import render_triton
from dsv4gen.spec import load_specs
from dsv4gen.target import resolve_target

FAMILY = "gather_dequant"
#: what a small test needs to reach the tiles and paths of large work
SMALL_THRESHOLDS = (("fused_rows: 150000", "fused_rows: 40"), ("few_rows: 12288", "few_rows: 20"))


@lru_cache(maxsize=1)
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="dsv4gen-test-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@lru_cache
def plan(target: str, edits: tuple[tuple[str, str], ...] = ()) -> FamilyPlan:
    """The family's plan, of the shipped spec or of one with textual edits."""
    root = paths.specs()
    if edits:
        root = _folder() / f"specs-{abs(hash(edits))}"
        shutil.copytree(paths.specs(), root, dirs_exist_ok=True)
        spec = root / "families" / f"{FAMILY}.yaml"
        text = spec.read_text(encoding="utf-8")
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        spec.write_text(text, encoding="utf-8")
    specs = load_specs(root)
    return make_plan(specs.families[FAMILY], resolve_target(specs, target))


@lru_cache
def rendered(target: str, *mutations: str, edits: tuple[tuple[str, str], ...] = ()) -> RenderedFile:
    """The rendered module; it has passed the lint."""
    chosen = plan(target, edits)
    file = render_triton(chosen, frozenset(mutations))
    assert not check_file(file, chosen.target.facts)
    return file


@lru_cache
def module(target: str, *mutations: str, edits: tuple[tuple[str, str], ...] = ()) -> Path:
    """The rendered module as a file."""
    file = rendered(target, *mutations, edits=edits)
    folder = _folder() / f"{target}-{'-'.join(mutations)}-{abs(hash(edits))}"
    folder.mkdir(exist_ok=True)
    path = folder / file.name
    path.write_text(file.text, encoding="utf-8")
    return path
