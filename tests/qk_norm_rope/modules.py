"""Generated qk_norm_rope modules for tests."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from tests.modules import Modules

_MODULES = Modules("qk_norm_rope")
plan, module = _MODULES.plan, _MODULES.module


@lru_cache
def tiled_module(target: str, rows: int, steps: int, warps: int) -> Path:
    """The module of a target with one tile of heads for every shape, so that small shapes reach those of large ones."""
    shipped = module(target)
    wanted = {"num_stages": 1, "num_warps": warps, "rows": rows, "steps": steps}
    text, count = re.subn(
        r'return \{"num_stages": 1, "num_warps": \d+, "rows": \d+, "steps": \d+\}',
        f"return {wanted}".replace("'", '"'),
        shipped.read_text(encoding="utf-8"),
    )
    assert count >= 3
    return _MODULES.write(f"{target}-r{rows}-s{steps}-w{warps}", shipped.name, text)
