"""A peer as another distribution would bring it."""

from __future__ import annotations

from dsv4gen.bench.peers.plain_torch import prepare

__all__ = ["prepare", "version"]


def version() -> str:
    """Of the package behind it."""
    return "7"
