"""Generated sparse_decode modules for tests."""

from __future__ import annotations

from tests.modules import Modules

_MODULES = Modules("sparse_decode")
plan, module = _MODULES.plan, _MODULES.module
