"""indexer_logits as machine code of AMD targets: matrix instructions on float16 and on FP8 codes, and planted defects.

`tests/emulated_triton` runs gfx950 and gfx1201; here are the other targets.
"""

from __future__ import annotations

import pytest

from dsv4gen.base.errors import EmulationError, VerifyError
from dsv4gen.emulate.triton import EmulatedWorker
from tests.emulated_triton.families import require_clean, run_family
from tests.indexer_logits.checks import CHECKS
from tests.indexer_logits.modules import module
from tests.tools import need_module

#: planted defect -> a check that must reject it
MUTATIONS = {
    "relu_dropped": "ordinary",
    "wrong_head": "ordinary",
    "scale_skipped": "ordinary",
    "clamp_page": "invalid_pages",
    "tail_scored": "tails",
    "first_request": "shared_programs",
}


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100"])
def test_every_shipped_kernel_is_right(target: str) -> None:
    require_clean(run_family("indexer_logits", target))


def test_planted_defects_are_rejected() -> None:
    need_module("triton")
    with EmulatedWorker("gfx950", 64) as worker:
        for mutation, check in MUTATIONS.items():
            with pytest.raises((VerifyError, EmulationError)):
                CHECKS[check](worker, module("gfx950", mutation))
