"""Python's side of protocol.h: packing requests and reading reports, byte for byte as the C++ structs lie."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from dsv4gen.base.errors import UsageError
from dsv4gen.emulate.simt.findings import FINDING, Finding
from dsv4gen.emulate.simt.memory_file import PAGE, Placed

Shape = int | tuple[int, ...]

_SYMBOL_BYTES, _PARAMS_BYTES, _MAX_REGIONS, _MAX_FINDINGS = 256, 4096, 128, 32
_HEAD = struct.Struct(f"<{_SYMBOL_BYTES}s12IQ{_PARAMS_BYTES}s")
_REGION = struct.Struct("<3Q2I")
_REPORT_HEAD = struct.Struct("<2I6Q")
REQUEST_BYTES = _HEAD.size + _MAX_REGIONS * _REGION.size
REPORT_BYTES = _REPORT_HEAD.size + _MAX_FINDINGS * FINDING.size
#: where arrays may begin in the memory file
ARRAYS_OFFSET = -(-(REQUEST_BYTES + REPORT_BYTES) // PAGE) * PAGE

_COUNTERS = ("blocks", "switches", "collectives", "block_barriers", "cluster_barriers", "shared_bytes")
_ORDERS = {"ascending": 0, "descending": 1, "random": 2}
_ORDER = re.compile(r"(ascending|descending)|(random):(\d+)")

LARGEST_BLOCK = 1024
LARGEST_CLUSTER = 16
LARGEST_SHARED = (1 << 20) - 2 * PAGE


@dataclass(frozen=True)
class Geometry:
    """Everything about a launch but its parameters; build it with `of`, which checks."""

    grid: tuple[int, int, int]
    block: int
    cluster: tuple[int, int, int]
    order: int
    seed: int
    shared_limit: int

    @classmethod
    def of(cls, grid: Shape, block: int, cluster: Shape, order: str, shared_limit: int) -> Geometry:
        """Read what a caller wrote.

        Raises:
            UsageError: a shape, an order or a limit that cannot be emulated.
        """
        blocks, cluster_shape = _three(grid), _three(cluster)
        cluster_blocks = cluster_shape[0] * cluster_shape[1] * cluster_shape[2]
        matched = _ORDER.fullmatch(order)
        if matched is None:
            raise UsageError(f"order {order!r} is not ascending, descending or random:SEED")
        if not 1 <= block <= LARGEST_BLOCK:
            raise UsageError(f"a block has 1 to {LARGEST_BLOCK} threads, not {block}")
        if cluster_blocks > LARGEST_CLUSTER:
            raise UsageError(f"a cluster has at most {LARGEST_CLUSTER} blocks, not {cluster_blocks}")
        if any(extent % part for extent, part in zip(blocks, cluster_shape, strict=True)):
            raise UsageError(f"clusters of {cluster_shape} blocks do not divide the grid {blocks}")
        if not 0 <= shared_limit <= LARGEST_SHARED:
            raise UsageError(f"shared_limit is 0 to {LARGEST_SHARED} bytes here, not {shared_limit}")
        seed = int(matched[3] or 0) & 0x7FFFFFFF
        return cls(blocks, block, cluster_shape, _ORDERS[matched[1] or matched[2]], seed, shared_limit)


def pack_request(symbol: str, geometry: Geometry, params: bytes, regions: Sequence[Placed]) -> bytes:
    """The request's bytes.

    Raises:
        UsageError: more arrays, parameters or letters than a request holds.
    """
    if len(regions) > _MAX_REGIONS or len(params) > _PARAMS_BYTES or len(symbol.encode()) >= _SYMBOL_BYTES:
        raise UsageError(f"kernel {symbol[:80]!r}: too many arrays or parameters, or too long a symbol")
    shown = [region for region in regions if region.page_bytes]
    raw = bytearray(REQUEST_BYTES)
    shape = (*geometry.grid, geometry.block, 1, 1, *geometry.cluster)
    numbers = (*shape, geometry.order, geometry.seed, len(shown), geometry.shared_limit)
    _HEAD.pack_into(raw, 0, symbol.encode(), *numbers, params)
    for index, region in enumerate(shown):
        fields = (region.page_address, region.file_offset, region.page_bytes, region.writable, 0)
        _REGION.pack_into(raw, _HEAD.size + index * _REGION.size, *fields)
    return bytes(raw)


def read_report(raw: bytes) -> tuple[list[Finding], dict[str, int]]:
    """Findings and counters of the report's bytes."""
    count, _, *numbers = _REPORT_HEAD.unpack_from(raw)
    starts = (_REPORT_HEAD.size + index * FINDING.size for index in range(count))
    findings = [Finding.read(raw[start : start + FINDING.size]) for start in starts]
    return findings, dict(zip(_COUNTERS, numbers, strict=True))


def _three(shape: Shape) -> tuple[int, int, int]:
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    x, y, z = (*extents, 1, 1, 1)[:3]
    if len(extents) > 3 or min(x, y, z) < 1:
        raise UsageError(f"{shape} is not a number of blocks along one to three axes")
    return x, y, z
