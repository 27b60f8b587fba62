"""Planted defects: each is rejected by the checks named here, so the checks see what they claim to see."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from dsv4gen.base import paths
from dsv4gen.base.errors import EmulationError, VerifyError
from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference.compress_case import Case
from dsv4gen.reference.compress_cases import verification_cases
from tests.compress import checks
from tests.compress.host import online_plans
from tests.compress.modules import module
from tests.compress.readers import round_trip
from tests.compress.v1 import adapted_plans

CHECKS = {**checks.CHECKS, "round_trip": round_trip, "online_plans": online_plans, "adapted_plans": adapted_plans}
#: planted defect -> checks that must each reject it; with the report that it stands for. B13, a launch that does not
#: wait for the one before, shows in compiled code only: tests/triton/test_dependent_launch.py
MUTATIONS = {
    "no_infinity_guard": ("infinite_scores", "pooling"),  # B1, B16, BL-18
    "zero_over_zero": ("nan_scores", "pooling"),  # B1, BL-19
    "write_slot_zero": ("invalid_decode",),  # B2, BL-22
    "sentinel_scores": ("pooling",),  # B3, BL-19
    "boundary_stored": ("invalid_decode",),  # B4
    "unchecked_slot": ("invalid_decode",),  # B4, B14, BL-22
    "pad_missing": ("plan_builders",),  # B5
    "tail_not_filled": ("plan_builders",),  # B6
    "uniform_extends": ("plan_builders",),  # B7
    "empty_extend_refused": ("online_plans",),  # B8
    "pages_of_ring_start": ("plan_builders",),  # B9
    "wrong_store_dialect": ("quantizer_bytes", "option_choices"),  # B10
    "negative_zero": ("quantizer_bytes",),  # B10
    "early_saturation": ("quantizer_bytes",),  # B11
    "round_half_up": ("quantizer_bytes",),  # B11
    "fp4_ties_up": ("quantizer_bytes",),
    "fp4_floor_doubled": ("quantizer_bytes",),
    "v41_rounded_once": ("records_of_v41",),
    "v41_split_always": ("quantizer_bytes", "records_of_v41"),
    "v41_scale_unrounded": ("quantizer_bytes", "records_of_v41"),
    "swapped_nibbles": ("quantizer_bytes",),
    "scale_rounded_down": ("quantizer_bytes", "first_group"),
    "logical_slots": ("plan_builders",),  # B12
    "invalid_plan_as_row": ("split_pooling",),  # B14
    "ragged_unchecked": ("ragged_bounds",),  # B15
    "half_row_kept": ("schedules_four", "schedules_many"),  # B17
    "rope_in_place": ("pooled_input", "first_group"),  # B18
    "rope_negated": ("pooled_input",),
    "half_hadamard": ("schedules_paged",),  # B18
    "clamp_page": ("invalid_decode",),  # B19, BL-22
    "stride_of_shape": ("plan_builders",),  # B20
    "write_before_read": ("schedules_four", "schedules_many"),  # B21
    "offset_32bit": ("far_rows",),  # BL-21
    "slot_offset_32bit": ("far_rows",),  # BL-21
    "flat_scales": ("first_group", "round_trip"),  # BL-25
    "pad_row_compressed": ("invalid_decode",),
    "unmasked_overlap": ("first_group",),
    "wrong_bias_row": ("first_group",),
    "bias_twice": ("option_choices",),
    "norm_without_eps": ("nan_scores",),
    "stale_online": ("online_prefill_and_decode",),
    "shared_past_batch": ("shared_groups",),
    "shared_too_many": ("shared_groups",),
    "shared_own_page": ("shared_groups",),
    "shared_one_part": ("shared_groups",),
    "v1_invalid_kept": ("adapted_plans",),
    "v1_batch_unchecked": ("adapted_plans",),
    "v1_load_page": ("adapted_plans",),
    "v1_write_page": ("adapted_plans",),
    "v1_page_zero": ("adapted_plans",),  # B2
    "v1_ring_page": ("adapted_plans",),
}
#: what takes gigabytes to show, and a plan builder on the host: the checks above see these, cases do not
UNSEEN = ("empty_extend_refused", "offset_32bit", "slot_offset_32bit")
TEMPLATES = (
    "triton/compress.py.jinja", "triton/compress_pool.py.jinja", "triton/compress_rows.py.jinja",
    "triton/compress_plan.py.jinja", "triton/compress_v1.py.jinja", "triton/compress_calls.py.jinja",
    "triton/compress_host.py.jinja",
    "macros/pool.py.jinja", "macros/norm.py.jinja", "macros/rope.py.jinja", "macros/store.py.jinja",
    "macros/store_fp4.py.jinja", "macros/store_v41.py.jinja",
)  # fmt: skip


def target_of(mutation: str) -> str:
    """A target whose module has the text that is spoiled and runs it: programs share where launches overlap."""
    return "sm_90" if mutation.startswith("shared_") else "gfx950"


@pytest.mark.parametrize(
    ("mutation", "check"), [(mutation, check) for mutation, found in MUTATIONS.items() for check in found]
)
def test_defect_is_rejected(worker: InterpreterWorker, mutation: str, check: str) -> None:
    with pytest.raises((VerifyError, EmulationError)):
        CHECKS[check](worker, module(target_of(mutation), mutation))


def test_verification_cases_reject_all_but_far_offsets(worker: InterpreterWorker) -> None:
    """What `verify` runs sees every defect of a kernel or its launch that takes no gigabytes to show."""
    cases = [[0.0, number, case] for number, case in enumerate(verification_cases(full=False))]
    assert not [mutation for mutation in MUTATIONS if mutation not in UNSEEN and _all_pass(worker, cases, mutation)]


def _all_pass(worker: InterpreterWorker, cases: list[Any], mutation: str) -> bool:
    """Run cases until one rejects, those that took least time so far first: most defects show in a cheap one."""
    for entry in sorted(cases, key=lambda entry: entry[:2]):
        started = time.perf_counter()
        right = _passes(worker, entry[2], mutation)
        entry[0] = time.perf_counter() - started
        if not right:
            return False
    return True


def _passes(worker: InterpreterWorker, case: Case, mutation: str) -> bool:
    call = case.fresh()
    try:
        worker.call(module(target_of(mutation), mutation), call.op, **dict(call.arguments))  # type: ignore[arg-type]
        call.check()
    except (VerifyError, EmulationError):
        return False
    return True


def test_every_switch_of_the_templates_is_tried() -> None:
    text = "".join((paths.templates() / name).read_text(encoding="utf-8") for name in TEMPLATES)
    assert set(re.findall(r"'(\w+)' (?:not )?in mutations", text)) == set(MUTATIONS)
