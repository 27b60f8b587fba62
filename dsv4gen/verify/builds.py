"""What options make of a HIP/CUDA source beside the generated text: builds that the runtime compiles on demand."""

from __future__ import annotations

from collections.abc import Mapping

from dsv4gen.base.choices import stated_choices
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.render import render_source


def option_builds(plan: FamilyPlan) -> list[dict[str, str]]:
    """Every choice of every option that the text states in a line, by itself, and all of them at once.

    Resources of other combinations lie between these by experience, not by proof.
    """
    if plan.language != "hip_cuda":
        return []
    usual = stated_choices(render_source(plan).text)
    others = {
        option.name: [choice for choice in option.choices if choice != usual[option.name]]
        for option in plan.options
        if option.name in usual
    }
    alone = [{name: choice} for name, choices in others.items() for choice in choices]
    together = {name: choices[0] for name, choices in others.items() if choices}
    return [*alone, together] if len(together) > 1 else alone


def build_words(options: Mapping[str, str]) -> str:
    """The options of a build behind a symbol: ` tie_break=low`."""
    return "".join(f" {name}={choice}" for name, choice in options.items())
