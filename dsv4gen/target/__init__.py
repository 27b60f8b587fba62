"""Capability records of GPU targets, resolved from `specs/platforms`, in dependency order.

record       the frozen TargetRecord: typed groups, flat facts, provenance
consistency  facts that must agree with each other and with the families
build        `extends` resolved and validated
resolve      lookup by any spelling
occupancy    resident waves and blocks, and the two meanings of the second launch-bounds number
"""

from __future__ import annotations

from dsv4gen.target.record import Provenance, TargetRecord
from dsv4gen.target.resolve import list_targets, resolve_all, resolve_target

__all__ = ["Provenance", "TargetRecord", "list_targets", "resolve_all", "resolve_target"]
