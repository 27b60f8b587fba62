"""The compress kernels as machine code of five AMD GPUs, and planted defects in them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dsv4gen.base.errors import EmulationError, VerifyError
from dsv4gen.emulate.triton import EmulatedWorker
from tests.compress.checks import CHECKS
from tests.compress.modules import module
from tests.emulated_triton.families import TARGETS, require_clean, run_family
from tests.tools import need_module

#: planted defect -> a check that must reject it
MUTATIONS = {
    "no_infinity_guard": "infinite_scores",
    "zero_over_zero": "nan_scores",
    "clamp_page": "invalid_decode",
    "ragged_unchecked": "ragged_bounds",
    "wrong_store_dialect": "quantizer_bytes",
    "write_before_read": "schedules_many",
    "offset_32bit": "far_rows",
    "flat_scales": "first_group",
}


@pytest.fixture(scope="module")
def gpu() -> Iterator[EmulatedWorker]:
    need_module("triton")
    with EmulatedWorker("gfx950", 64) as worker:
        yield worker


@pytest.mark.parametrize("target", TARGETS)
def test_every_shipped_kernel_is_right(target: str) -> None:
    require_clean(run_family("compress", target))


@pytest.mark.parametrize("check", ["schedules_many", "infinite_scores", "quantizer_bytes", "far_rows"])
def test_checks_pass(gpu: EmulatedWorker, check: str) -> None:
    CHECKS[check](gpu, module("gfx950"))


@pytest.mark.parametrize(("mutation", "check"), MUTATIONS.items())
def test_defect_is_rejected(gpu: EmulatedWorker, mutation: str, check: str) -> None:
    with pytest.raises((VerifyError, EmulationError)):
        CHECKS[check](gpu, module("gfx950", mutation))


def test_a_trapped_defect_names_tensor_and_line(gpu: EmulatedWorker) -> None:
    with pytest.raises(EmulationError, match=r"past the end of source[^|]*\n.*compress\.py:\d+ called from compress"):
        CHECKS["ragged_bounds"](gpu, module("gfx950", "ragged_unchecked"))


def test_what_buffer_loads_hide(gpu: EmulatedWorker) -> None:
    """A buffer load in front of its tensor gives 0, as on the hardware: only the interpreter sees these."""
    for mutation in ("boundary_stored", "pad_row_compressed"):
        CHECKS["invalid_decode"](gpu, module("gfx950", mutation))
