"""Families as a copy of the specs has them, planned."""

from __future__ import annotations

from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.plan.make import make_plan
from dsv4gen.spec import load_specs
from dsv4gen.target import resolve_target
from tests.specs import Copy

SPEC = "specs/families/topk.yaml"


def plan(copy: Copy, target: str = "gfx950", family: str = "topk") -> FamilyPlan:
    """The plan for a target.

    Raises:
        DsvError: the edited specs are wrong.
    """
    specs = load_specs(copy.folder / "specs")
    return make_plan(specs.families[family], resolve_target(specs, target))
