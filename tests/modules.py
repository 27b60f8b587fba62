"""Generated Triton modules for tests: any family, any target, any planted defect."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cached_property, lru_cache
from pathlib import Path

from dsv4gen.base import paths
from dsv4gen.emit.build import make_plans
from dsv4gen.lint import check_file
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.render.render import render_triton
from dsv4gen.spec import load_specs

_INTERPRETED = "NATIVE = not triton.knobs.runtime.interpret"


class Modules:
    """Plans and rendered modules of one family, each made once."""

    def __init__(self, family: str) -> None:
        self._family = family
        self.plan = lru_cache(maxsize=None)(self._plan)
        self.module = lru_cache(maxsize=None)(self._module)

    @cached_property
    def folder(self) -> Path:
        """Where the modules are, until the process ends."""
        made = Path(tempfile.mkdtemp(prefix="dsv4gen-test-"))
        atexit.register(shutil.rmtree, made, ignore_errors=True)
        return made

    def write(self, variant: str, name: str, text: str) -> Path:
        """A file in the folder of a variant."""
        path = self.folder / variant / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def _plan(self, target: str) -> FamilyPlan:
        (made,) = make_plans(load_specs(paths.specs()), target, [self._family])
        return made

    def _module(self, target: str, *mutations: str, native: bool = False) -> Path:
        """The module's file; it has passed the lint. `native`: converts natively under the interpreter too."""
        chosen = self.plan(target)
        rendered = render_triton(chosen, frozenset(mutations))
        assert not check_file(rendered, chosen.target.facts)
        text = rendered.text
        if native:
            assert _INTERPRETED in text
            text = text.replace(_INTERPRETED, "NATIVE = True")
        return self.write("-".join((target, *mutations, *(["native"] * native))), rendered.name, text)
