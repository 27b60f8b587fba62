"""Generated qk_norm_rope modules for tests: any target, any planted defect."""

from __future__ import annotations

import re
import tempfile
from functools import lru_cache
from pathlib import Path

from dsv4gen.base import paths
from dsv4gen.lint import check_file
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.plan.make import make_plan
from dsv4gen.render.render import render_triton
from dsv4gen.spec import load_specs
from dsv4gen.target import resolve_target

FAMILY = "qk_norm_rope"


@lru_cache(maxsize=1)
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="dsv4gen-test-"))


@lru_cache
def plan(target: str) -> FamilyPlan:
    """The family's plan on a target."""
    specs = load_specs(paths.specs())
    return make_plan(specs.families[FAMILY], resolve_target(specs, target))


@lru_cache
def module(target: str, *mutations: str) -> Path:
    """The rendered module's file; it has passed the lint."""
    chosen = plan(target)
    rendered = render_triton(chosen, frozenset(mutations))
    assert not check_file(rendered, chosen.target.facts)
    folder = _folder() / "-".join((target, *mutations))
    folder.mkdir(exist_ok=True)
    path = folder / rendered.name
    path.write_text(rendered.text, encoding="utf-8")
    return path


@lru_cache
def tiled_module(target: str, rows: int, steps: int, warps: int) -> Path:
    """The module of a target with one tile of heads for every shape, so that small shapes reach those of large ones."""
    shipped = module(target)
    wanted = {"num_stages": 1, "num_warps": warps, "rows": rows, "steps": steps}
    text, count = re.subn(
        r'return \{"num_stages": 1, "num_warps": \d+, "rows": \d+, "steps": \d+\}',
        f"return {wanted}".replace("'", '"'),
        shipped.read_text(encoding="utf-8"),
    )
    assert count >= 3
    folder = _folder() / f"{target}-r{rows}-s{steps}-w{warps}"
    folder.mkdir(exist_ok=True)
    path = folder / shipped.name
    path.write_text(text, encoding="utf-8")
    return path
