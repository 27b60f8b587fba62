"""Generated indexer_logits modules for tests: any target, any planted defect."""

from __future__ import annotations

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

FAMILY = "indexer_logits"
_INTERPRETED = "NATIVE = not triton.knobs.runtime.interpret"


@lru_cache(maxsize=1)
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="dsv4gen-test-"))


@lru_cache
def plan(target: str) -> FamilyPlan:
    """The family's plan."""
    specs = load_specs(paths.specs())
    return make_plan(specs.families[FAMILY], resolve_target(specs, target))


@lru_cache
def module(target: str, *mutations: str, native: bool = False) -> Path:
    """The rendered module's file; it has passed the lint. `native`: converts natively under the interpreter too."""
    chosen = plan(target)
    rendered = render_triton(chosen, frozenset(mutations))
    assert not check_file(rendered, chosen.target.facts)
    text = rendered.text
    if native:
        assert _INTERPRETED in text
        text = text.replace(_INTERPRETED, "NATIVE = True")
    folder = _folder() / f"{target}-{'-'.join(mutations)}-{native}"
    folder.mkdir(exist_ok=True)
    path = folder / rendered.name
    path.write_text(text, encoding="utf-8")
    return path
