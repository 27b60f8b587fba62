"""Planted defects: each is rejected by the checks named here, so the checks see what they claim to see."""

from __future__ import annotations

import re

import pytest

from dsv4gen.base import paths
from dsv4gen.base.errors import EmulationError, VerifyError
from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference.qk_norm_rope_case import Case
from dsv4gen.reference.qk_norm_rope_cases import verification_cases
from tests.qk_norm_rope.checks import CHECKS
from tests.qk_norm_rope.modules import module

#: planted defect -> checks that must each reject it
MUTATIONS = {
    "norm_without_eps": ("norm", "queries", "keys"),
    "eps_beside_root": ("norm", "queries", "keys"),
    "one_eps": ("fused",),
    "weight_after_rotation": ("queries", "keys"),
    "rope_halves": ("queries", "keys"),
    "rope_negated": ("queries", "keys"),
    "rope_in_place": ("queries", "keys"),
    "rope_table_mixed": ("queries", "keys"),
    "reread_after_store": ("queries", "keys", "fused"),
    "position_unchecked": ("queries", "keys"),
    "heads_unmasked": ("fused",),
    "last_split_dropped": ("fused",),
    "unchecked_slot": ("keys", "fused"),
    "locations_unchecked": ("keys", "fused"),
    "offset_32bit": ("far_rows",),
    "slot_offset_32bit": ("far_rows",),
    "flat_scales": ("keys", "fused"),
    "scale_rounded_down": ("keys", "fused"),
    "wrong_store_dialect": ("keys", "fused"),
    "early_saturation": ("keys", "fused"),
    "round_half_up": ("keys",),
    "negative_zero": ("keys",),
}
TEMPLATES = (
    "triton/qk_norm_rope.py.jinja", "triton/qk_norm_rope_rows.py.jinja", "triton/qk_norm_rope_calls.py.jinja",
    "triton/qk_norm_rope_ahead.py.jinja", "macros/heads.py.jinja", "macros/store.py.jinja",
)  # fmt: skip


@pytest.mark.parametrize(
    ("mutation", "check"), [(mutation, check) for mutation, found in MUTATIONS.items() for check in found]
)
def test_defect_is_rejected(worker: InterpreterWorker, mutation: str, check: str) -> None:
    with pytest.raises((VerifyError, EmulationError)):
        CHECKS[check](worker, module("gfx950", mutation))


def test_verification_cases_reject_all_but_far_offsets(worker: InterpreterWorker) -> None:
    """What `verify` runs sees every defect that takes no gigabytes to show."""
    cases = list(verification_cases(full=False))
    passed = [mutation for mutation in MUTATIONS if all(_passes(worker, case, mutation) for case in cases)]
    assert passed == ["offset_32bit", "slot_offset_32bit"]


def _passes(worker: InterpreterWorker, case: Case, mutation: str) -> bool:
    call = case.fresh()
    try:
        worker.call(module("gfx950", mutation), call.op, **dict(call.arguments))
        call.check()
    except (VerifyError, EmulationError):
        return False
    return True


def test_every_switch_of_the_templates_is_tried() -> None:
    text = "".join((paths.templates() / name).read_text(encoding="utf-8") for name in TEMPLATES)
    assert set(re.findall(r"'(\w+)' (?:not )?in mutations", text)) == set(MUTATIONS)
