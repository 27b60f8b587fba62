"""Planted defects: each is rejected by the checks named here, so the checks see what they claim to see."""

from __future__ import annotations

import re

import pytest

from dsv4gen.base import paths
from dsv4gen.base.errors import EmulationError, VerifyError
from dsv4gen.interpret import InterpreterWorker
from tests.sparse_decode.checks import CHECKS
from tests.sparse_decode.modules import module

#: planted defect -> checks that must each reject it
MUTATIONS = {
    "one_sided_check": ("invalid_indices",),
    "clamp_invalid": ("invalid_indices",),
    "drop_length": ("short_lengths",),
    "offset_32bit": ("far_pages",),
    "shared_dialect": ("two_scopes",),
    "shared_page_size": ("two_scopes",),
    "sink_in_parts": ("splits",),
    "sink_in_lse": ("sinks",),
    "naive_sink": ("sinks",),
    "empty_lse_negative": ("empty_rows",),
    "lose_last_block": ("splits",),
    "keep_counters": ("last_arriver",),
    "merge_reads_empty": ("splits", "merge"),
    "merge_unguarded": ("splits", "merge"),
    "rows_unmasked": ("gathered",),
    "unguarded_maximum": ("masked_blocks", "gathered"),
    "unmasked_logits": ("invalid_indices", "gathered"),
    "unmasked_rows": ("invalid_indices",),
    "scale_by_shift": ("scales",),
    "wrong_dialect": ("ordinary",),
}
TEMPLATES = (
    "triton/sparse_decode.py.jinja",
    "triton/sparse_decode_calls.py.jinja",
    "macros/attention.py.jinja",
    "macros/softmax.py.jinja",
)
#: defects in text that differs between the ways to decode
OF_THE_DECODER = ("unmasked_rows", "scale_by_shift", "wrong_dialect")


@pytest.mark.parametrize(
    ("mutation", "check"), [(mutation, check) for mutation, found in MUTATIONS.items() for check in found]
)
def test_defect_is_rejected(worker: InterpreterWorker, mutation: str, check: str) -> None:
    for target in ("sm_90", "gfx950", "gfx1250") if mutation in OF_THE_DECODER else ("sm_90",):
        with pytest.raises((VerifyError, EmulationError)):
            CHECKS[check](worker, module(target, mutation))


def test_every_switch_of_the_templates_is_tried() -> None:
    text = "".join((paths.templates() / name).read_text(encoding="utf-8") for name in TEMPLATES)
    assert set(re.findall(r"'(\w+)' (?:not )?in mutations", text)) == set(MUTATIONS)


def test_a_defect_changes_the_text_and_no_defect_does_not() -> None:
    clean = module("gfx950").read_text(encoding="utf-8")
    for mutation in MUTATIONS:
        assert module("gfx950", mutation).read_text(encoding="utf-8") != clean, mutation
