"""Generated compress modules for tests."""

from __future__ import annotations

from tests.modules import Modules

_MODULES = Modules("compress")
plan, module = _MODULES.plan, _MODULES.module
