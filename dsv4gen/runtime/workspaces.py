"""Workspaces for callers whose own signatures have no room for them: one set per op, device and stream.

A set starts zeroed and every kernel leaves it as it found it, so sets are made once. They only grow; the memory of a
smaller set is kept, because a captured graph may hold its address.
"""

from __future__ import annotations

from typing import Any

from dsv4gen.base.errors import CaptureError
from dsv4gen.runtime import platform
from dsv4gen.runtime.backend import Sizes
from dsv4gen.runtime.loaded import LoadedOp

#: shapes whose set is remembered; beyond that all are forgotten, which costs each one slow call
SHAPES_MAX = 4096


class WorkspacePool:
    """Sets by (op, device, stream)."""

    def __init__(self) -> None:
        self._sets: dict[tuple[str, int, int], dict[str, Any]] = {}
        self._kept: list[dict[str, Any]] = []
        self._known: dict[tuple[Any, ...], dict[str, Any]] = {}

    def get(self, op: LoadedOp, device: Any, stream: int, **shape: int) -> dict[str, Any]:
        """Workspaces by argument name, large enough for a shape.

        Raises:
            CaptureError: memory would have to be allocated while a graph is captured.
        """
        if not op.workspaces:
            return {}
        asked = (op, device, stream, *shape.items())
        found = self._known.get(asked)
        if found is None:
            found = self._sufficient(op, device, stream, shape)
            if len(self._known) >= SHAPES_MAX:
                self._known.clear()
            self._known[asked] = found
        return found

    def _sufficient(self, op: LoadedOp, device: Any, stream: int, shape: Sizes) -> dict[str, Any]:
        key = (op.table.title, -1 if device.index is None else int(device.index), stream)
        needed = op.workspace_bytes(**shape)
        found = self._sets.get(key)
        if found is not None and all(found[name].nbytes >= size for name, size in needed.items()):
            return found
        if platform.current().is_capturing():
            words = ", ".join(f"{name}={value}" for name, value in shape.items())
            raise CaptureError(
                f"the workspace of {op.table.title} is too small and cannot be made while a graph is captured",
                remedy=f"before the capture, and on its stream, call prewarm with the largest shape: dict({words})",
            )
        if found is not None:
            self._kept.append(found)
        self._known.clear()
        self._sets[key] = op.make_workspaces(device, **shape)
        return self._sets[key]
