"""Shipped Triton families as machine code: every case that `verify` runs, on any target."""

from __future__ import annotations

from functools import lru_cache

from dsv4gen.base import paths
from dsv4gen.plan.make import make_plan
from dsv4gen.spec import Specs, load_specs
from dsv4gen.target import resolve_target
from dsv4gen.verify.runs import Run, run_triton_machine
from tests.tools import need_module

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")


@lru_cache(maxsize=1)
def _specs() -> Specs:
    return load_specs(paths.specs())


def run_family(family: str, target: str) -> Run:
    """All cases of a family on a target."""
    need_module("triton")
    record = resolve_target(_specs(), target)
    return run_triton_machine(make_plan(_specs().families[family], record), record, full=False)


def require_clean(run: Run) -> None:
    """Every case agrees with the reference, and everything that ships was run."""
    assert run.findings == []
    assert [name for name in run.names if not run.cases.get(name)] == []
    assert run.names
