"""Launch configurations as the driver reads them: `CUlaunchConfig` and HIP's equal `HIP_LAUNCH_CONFIG`.

Both hold grid, block, shared bytes, stream and a list of attributes; an attribute is an id and a 64-byte value.
A configuration is built once per shape and stream, never changed, and shared by all threads.
"""

from __future__ import annotations

import ctypes
import struct
from typing import NamedTuple

_CONFIG = struct.Struct("<7I4xQQI4x")
_ATTRIBUTE = struct.Struct("<I4x64s")
_CLUSTER_DIMENSION = 4
_PROGRAMMATIC_SERIALIZATION = 6
Dim = tuple[int, int, int]


class Shape(NamedTuple):
    """One launch: grid and block in blocks and threads, cluster in blocks along x, dynamic shared memory in bytes."""

    grid: Dim
    block: Dim
    shared_bytes: int
    cluster: int = 1
    dependent: bool = False

    @property
    def attributes(self) -> bytes:
        """The attribute list's bytes."""
        found = b""
        if self.cluster > 1:
            found += _ATTRIBUTE.pack(_CLUSTER_DIMENSION, struct.pack("<3I", self.cluster, 1, 1))
        if self.dependent:
            found += _ATTRIBUTE.pack(_PROGRAMMATIC_SERIALIZATION, struct.pack("<i", 1))
        return found


class LaunchConfig:
    """A configuration struct in memory of its own; `address` stays valid as long as the object lives."""

    __slots__ = ("_attributes", "_config", "address")

    def __init__(self, shape: Shape, stream: int) -> None:
        attributes = shape.attributes
        self._attributes = ctypes.create_string_buffer(attributes, max(len(attributes), 1))
        count = len(attributes) // _ATTRIBUTE.size
        pointer = ctypes.addressof(self._attributes) if count else 0
        packed = _CONFIG.pack(*shape.grid, *shape.block, shape.shared_bytes, stream, pointer, count)
        self._config = ctypes.create_string_buffer(packed, _CONFIG.size)
        self.address = ctypes.addressof(self._config)
