"""Render a plan: the kernel source, the Python module that loads it, and its type stub."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import jinja2

from dsv4gen.base import extensions
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.prove import cpp_helpers
from dsv4gen.render.dialects import dialect_named, layer_context
from dsv4gen.render.environment import make_environment, render_template
from dsv4gen.render.launchers import Launcher, read_launchers
from dsv4gen.render.source_map import SourceMap, take_markers

#: every name a template may use, whatever its language
CONTEXT_NAMES = frozenset(
    {"plan", "facts", "target", "dialect", "layer", "body", "helpers", "mutations", "source", "launchers"}
    | {"wave", "dependent_launch", "remote_shared", "simds_per_unit", "max_waves_per_simd"}
)
BODY_MARK = "// ==== kernel body ===="

#: defects a test can plant in a shipped template, to prove that the oracles see them
Mutations = frozenset[str]


@dataclass(frozen=True)
class RenderedFile:
    """One output file: its name in the target's folder, text, dialect and source map."""

    name: str
    text: str
    dialect: str
    source_map: SourceMap

    @property
    def body(self) -> str:
        """The kernel body section and the entries, the same bytes in every dialect."""
        return self.text[self.text.index(BODY_MARK) :]


class Facts:
    """Target facts by attribute (`facts.cluster.remote_shared`); an unknown fact is an undefined name."""

    def __init__(self, facts: Mapping[str, object], prefix: str = "") -> None:
        self._facts = facts
        self._prefix = prefix

    def __getattr__(self, name: str) -> object:
        path = f"{self._prefix}{name}"
        if path in self._facts:
            return self._facts[path]
        if any(known.startswith(f"{path}.") for known in self._facts):
            return Facts(self._facts, f"{path}.")
        raise AttributeError(path)


def render_family(plan: FamilyPlan) -> list[RenderedFile]:
    """All files of one family on one target."""
    if plan.language == "triton":
        module = render_triton(plan)
        return [module, _stub(plan, launchers_in(module, plan))]
    return [render_source(plan), _module(plan), _stub(plan)]


def launchers_in(module: RenderedFile, plan: FamilyPlan) -> dict[str, Launcher]:
    """Op -> what its launcher in a rendered Triton module takes; other modules have none.

    Raises:
        LintError: a launcher is missing, or not of the form that the runtime calls.
    """
    if plan.language != "triton":
        return {}
    memory = {
        op.name: [*(part.name for part in op.tensors), *(space.name for space in op.workspaces)] for op in plan.ops
    }
    return read_launchers(module.name, module.text, module.source_map, memory)


def render_source(
    plan: FamilyPlan, dialect: str | None = None, *, wave: int | None = None, mutations: Mutations = frozenset()
) -> RenderedFile:
    """The HIP/CUDA source in its target's dialect, or in another one (`simt` for the host build).

    Raises:
        TemplateError: the template cannot be loaded or rendered.
    """
    chosen = dialect_named(dialect or plan.target.api)
    context = {
        **_context(plan, mutations),
        **layer_context(plan.target.facts, wave),
        "dialect": chosen.name,
        "layer": chosen.layer,
        "body": f"hip_cuda/{plan.template}",
        "helpers": cpp_helpers() if _needs_helpers(plan) else "",
    }
    return _render("hip_cuda/_file.cu.jinja", f"{plan.family}{chosen.suffix}", chosen.name, context)


def render_triton(plan: FamilyPlan, mutations: Mutations = frozenset()) -> RenderedFile:
    """The Triton module of a family, optionally with planted defects."""
    return _render(f"triton/{plan.template}", f"{plan.family}.py", "python", _context(plan, mutations))


def _needs_helpers(plan: FamilyPlan) -> bool:
    """Whether a row predicate prints a call, such as `ceil_div(...)`."""
    texts = [path.prefer.to_cpp() for kernel in plan.kernels for path in kernel.row_paths]
    return any(re.search(r"\w\(", text) for text in texts)


def _module(plan: FamilyPlan) -> RenderedFile:
    context = {**_context(plan), "source": f"{plan.family}{dialect_named(plan.target.api).suffix}"}
    return _render("module/hip_cuda.py.jinja", f"{plan.family}.py", "python", context)


def _stub(plan: FamilyPlan, launchers: Mapping[str, Launcher] | None = None) -> RenderedFile:
    context = {**_context(plan), "launchers": launchers or {}}
    return _render("module/stub.pyi.jinja", f"{plan.family}.pyi", "python", context)


def _context(plan: FamilyPlan, mutations: Mutations = frozenset()) -> dict[str, object]:
    return {"plan": plan, "facts": Facts(plan.target.facts), "target": plan.target, "mutations": mutations}


def _render(template: str, name: str, dialect: str, context: Mapping[str, object]) -> RenderedFile:
    marked = render_template(_environment(*extensions.template_folders()), template, context)
    text, source_map = take_markers(marked, name, template)
    return RenderedFile(name, text, dialect, source_map)


@lru_cache(maxsize=4)
def _environment(root: Path, *further: Path) -> jinja2.Environment:
    return make_environment(root, CONTEXT_NAMES, further)
