"""Capability records of GPU targets, resolved from `specs/platforms`, in dependency order.

record     the frozen TargetRecord: typed groups, flat facts, provenance
resolve    `extends` resolved and validated; lookup by any spelling
"""

from __future__ import annotations

from dsv4gen.target.record import Provenance, TargetRecord
from dsv4gen.target.resolve import list_targets, resolve_all, resolve_target

__all__ = ["Provenance", "TargetRecord", "list_targets", "resolve_all", "resolve_target"]
