"""Generated indexer_logits modules for tests."""

from __future__ import annotations

from tests.modules import Modules

_MODULES = Modules("indexer_logits")
plan, module = _MODULES.plan, _MODULES.module
