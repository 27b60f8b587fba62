"""The qk_norm_rope kernels as machine code of five AMD GPUs, and planted defects in them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dsv4gen.base.errors import EmulationError, VerifyError
from dsv4gen.emulate.triton import EmulatedWorker
from tests.emulated_triton.families import TARGETS, require_clean, run_family
from tests.qk_norm_rope.checks import CHECKS
from tests.qk_norm_rope.modules import module
from tests.tools import need_module

#: planted defect -> a check that must reject it
MUTATIONS = {
    "eps_beside_root": "queries",
    "rope_halves": "queries",
    "reread_after_store": "fused",
    "heads_unmasked": "fused",
    "unchecked_slot": "keys",
    "negative_zero": "keys",
    "offset_32bit": "far_rows",
    "slot_offset_32bit": "far_rows",
}


@pytest.fixture(scope="module")
def gpu() -> Iterator[EmulatedWorker]:
    need_module("triton")
    with EmulatedWorker("gfx950", 64) as worker:
        yield worker


@pytest.mark.parametrize("target", TARGETS)
def test_every_shipped_kernel_is_right(target: str) -> None:
    require_clean(run_family("qk_norm_rope", target))


@pytest.mark.parametrize("check", ["far_rows", "far_splits"])
def test_checks_pass(gpu: EmulatedWorker, check: str) -> None:
    CHECKS[check](gpu, module("gfx950"))


@pytest.mark.parametrize(("mutation", "check"), MUTATIONS.items())
def test_defect_is_rejected(gpu: EmulatedWorker, mutation: str, check: str) -> None:
    with pytest.raises((VerifyError, EmulationError)):
        CHECKS[check](gpu, module("gfx950", mutation))
