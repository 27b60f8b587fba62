"""The remaining Triton families as machine code: one target of each wave size; a new family is here by itself."""

from __future__ import annotations

import pytest

from dsv4gen.base import paths
from dsv4gen.spec import load_specs
from tests.emulated_triton.families import require_clean, run_family

#: these have tests of their own
ELSEWHERE = ("compress", "qk_norm_rope", "sparse_decode")
FAMILIES = sorted(
    name
    for name, loaded in load_specs(paths.specs()).families.items()
    if loaded.model.language == "triton" and name not in ELSEWHERE
)


@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_shipped_kernel_is_right(family: str, target: str) -> None:
    require_clean(run_family(family, target))
