"""Planted defects: each is rejected by the checks named here, so the checks see what they claim to see."""

from __future__ import annotations

import re

import pytest

from dsv4gen.base import paths
from dsv4gen.base.errors import EmulationError, VerifyError
from dsv4gen.interpret import InterpreterWorker
from tests.indexer_logits.checks import CHECKS
from tests.indexer_logits.modules import module

#: planted defect -> checks that must each reject it
MUTATIONS = {
    "relu_dropped": ("ordinary",),
    "wrong_head": ("ordinary",),
    "scale_skipped": ("ordinary",),
    "wrong_dialect": ("ordinary",),
    "clamp_page": ("invalid_pages",),
    "one_sided_check": ("invalid_pages",),
    "off_by_one": ("lengths",),
    "last_row_lens": ("lengths",),
    "length_wraps": ("lengths",),
    "tail_scored": ("tails", "lengths"),
    "tail_kept": ("tails",),
    "first_request": ("shared_programs",),
    "offset_32bit": ("far_offsets",),
    "out_offset_32bit": ("far_offsets",),
}
TEMPLATES = ("triton/indexer_logits.py.jinja", "triton/indexer_logits_calls.py.jinja", "macros/fp8_half.py.jinja")


@pytest.mark.parametrize(
    ("mutation", "check"), [(mutation, check) for mutation, found in MUTATIONS.items() for check in found]
)
def test_defect_is_rejected(worker: InterpreterWorker, mutation: str, check: str) -> None:
    with pytest.raises((VerifyError, EmulationError)):
        CHECKS[check](worker, module("sm_90", mutation))


def test_every_switch_of_the_templates_is_tried() -> None:
    text = "".join((paths.templates() / name).read_text(encoding="utf-8") for name in TEMPLATES)
    assert set(re.findall(r"'(\w+)' (?:not )?in mutations", text)) == set(MUTATIONS)


def test_a_defect_changes_the_text_and_no_defect_does_not() -> None:
    clean = module("gfx950").read_text(encoding="utf-8")
    for mutation in MUTATIONS:
        assert module("gfx950", mutation).read_text(encoding="utf-8") != clean, mutation
