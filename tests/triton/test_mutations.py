"""Planted defects: each is rejected by the checks named here, so the checks see what they claim to see."""

from __future__ import annotations

import re

import pytest

from dsv4gen.base import paths
from dsv4gen.base.errors import EmulationError, VerifyError
from dsv4gen.interpret import InterpreterWorker
from tests.triton.checks import CHECKS
from tests.triton.modules import module

#: planted defect -> checks that must each reject it
MUTATIONS = {
    "clamp_invalid": ("invalid_indices", "short_lengths"),
    "drop_valid": ("short_lengths", "two_scopes"),
    "one_sided_check": ("invalid_indices",),
    "offset_32bit": ("far_pages",),
    "skip_invalid_rows": ("invalid_indices", "short_lengths"),
    "drop_k_offset": ("column_offset",),
    "shared_length_flag": ("two_scopes",),
    "wrong_dialect": ("ordinary", "every_code_and_scale", "two_scopes"),
    "nan_as_number": ("every_code_and_scale",),
    "scale_by_shift": ("every_code_and_scale",),
    "one_scale_factor": ("every_code_and_scale",),
}
TEMPLATES = ("triton/gather_dequant.py.jinja", "macros/fp8.py.jinja")


@pytest.mark.parametrize(
    ("mutation", "check"), [(mutation, check) for mutation, found in MUTATIONS.items() for check in found]
)
def test_defect_is_rejected(worker: InterpreterWorker, mutation: str, check: str) -> None:
    with pytest.raises((VerifyError, EmulationError)):
        CHECKS[check](worker, module("gfx950", mutation))


def test_accesses_outside_the_pool_are_trapped_not_just_wrong(worker: InterpreterWorker) -> None:
    for mutation, check in (("one_sided_check", "invalid_indices"), ("offset_32bit", "far_pages")):
        with pytest.raises(EmulationError, match="load of 8 bytes outside every argument"):
            CHECKS[check](worker, module("gfx950", mutation))


def test_every_switch_of_the_templates_is_tried() -> None:
    text = "".join((paths.templates() / name).read_text(encoding="utf-8") for name in TEMPLATES)
    assert set(re.findall(r"'(\w+)' (?:not )?in mutations", text)) == set(MUTATIONS)


def test_a_defect_changes_the_text_and_no_defect_does_not() -> None:
    clean = module("gfx950").read_text(encoding="utf-8")
    for mutation in MUTATIONS:
        assert module("gfx950", mutation).read_text(encoding="utf-8") != clean, mutation
