"""Tiles as people read them."""

from __future__ import annotations

from collections.abc import Mapping


def tile_words(tile: Mapping[str, int]) -> str:
    """A tile assignment in a line: `block_threads=512 loads_in_flight=4`."""
    return " ".join(f"{name}={value}" for name, value in tile.items())
