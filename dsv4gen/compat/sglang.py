"""The DeepSeek-V4 top-k calls of sglang 0.5.23: same names, arguments and results.

    from dsv4gen.compat.sglang import plan_topk_v2, topk_transform_paged_v2, topk_transform_ragged_v2

Differences, all on the safe side: scores are never written; rows may start anywhere, not only at multiples of 16 bytes;
negative lengths select nothing; NaN ranks below -inf. The plan is accepted and not read: these kernels decide per row
on the device.

Call `prewarm` before capturing a graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsv4gen.base.errors import ArgumentError
from dsv4gen.runtime import load as loading
from dsv4gen.runtime import platform
from dsv4gen.runtime.loaded import LoadedFamily
from dsv4gen.runtime.workspaces import WorkspacePool

#: words per row of the plan: {threshold, count}, then {row, length} per row of the pool
PLAN_WIDTH = 2
MODES = ("indices", "page_table", "dual", "ragged")

_loaded: dict[str, LoadedFamily] = {}
_workspaces = WorkspacePool()


def plan_topk_v2(seq_lens: Any, static_threshold: int = -1) -> Any:  # noqa: ARG001
    """The buffer of a routing plan, int32 [batch + 1, 2]; nothing is written to it, as on devices without clusters.

    Args:
        seq_lens: int32 [batch].
        static_threshold: accepted; the kernels here have no threshold to force.
    """
    return seq_lens.new_empty((seq_lens.shape[0] + 1, PLAN_WIDTH))


def topk_transform_paged_v2(
    scores: Any,
    seq_lens: Any,
    page_tables: Any,
    out_page_indices: Any,
    page_size: int,
    metadata: Any,  # noqa: ARG001
    out_raw_indices: Any = None,
) -> None:
    """The k largest scores of each row, as slots through the page table, as positions without one, or as both.

    Args:
        scores: float32 [batch, width].
        seq_lens: int32 [batch].
        page_tables: int32 [batch, pages], or None for positions.
        out_page_indices: int32 [batch, k], written; k is its width.
        page_size: entries per page, a power of two.
        metadata: a plan of `plan_topk_v2`; not read.
        out_raw_indices: int32 [batch, k], written with the positions; needs a page table.

    Raises:
        ArgumentError: a page size that is no power of two, or tensors that do not fit together.
    """
    if page_tables is None:
        if out_raw_indices is not None:
            raise ArgumentError(
                "out_raw_indices needs page_tables", remedy="without a table, out_page_indices has positions"
            )
        op = _family("indices").op()
        op(scores, seq_lens, out_page_indices, **_scratch(op, scores, out_page_indices))
        return
    page_bits = _page_bits(page_size)
    if out_raw_indices is None:
        op = _family("page_table").op()
        scratch = _scratch(op, scores, out_page_indices)
        op(scores, seq_lens, page_tables, out_page_indices, page_bits=page_bits, **scratch)
        return
    op = _family("dual").op()
    scratch = _scratch(op, scores, out_page_indices)
    op(scores, seq_lens, page_tables, out_page_indices, out_raw_indices, page_bits=page_bits, **scratch)


def topk_transform_ragged_v2(
    scores: Any,
    seq_lens: Any,
    *,
    out_offsets: Any,
    out_indices: Any,
    row_starts: Any = None,
) -> None:
    """The k largest scores of each row's window, as positions in it plus the row's offset.

    Args:
        scores: float32 [batch, width]; never written.
        seq_lens: int32 [batch], columns of each window.
        out_offsets: int32 [batch], added to the positions.
        out_indices: int32 [batch, k], written; k is its width.
        row_starts: int32 [batch], first column of each window, anywhere in the row; 0 without it.

    Raises:
        ArgumentError: tensors that do not fit together.
    """
    op = _family("ragged").op()
    op(scores, seq_lens, out_offsets, row_starts, out_indices, **_scratch(op, scores, out_indices))


def prewarm(
    device: object = None, *, shapes: Sequence[Mapping[str, int]] = (), modes: Iterable[str] = ("page_table",)
) -> None:
    """Load the kernels of these modes and make their workspaces on the current stream.

    Args:
        shapes: sizes of the calls to come, e.g. [dict(batch=8, width=131072, k=512)].
        modes: any of indices, page_table, dual, ragged.

    Raises:
        ArgumentError: an unknown mode.
    """
    import torch

    here = platform.current()
    for mode in modes:
        _loaded[mode] = family = loading.prewarm(
            "topk", device, None, shapes=shapes, op=None, cache_dir=None, **_options(mode)
        )
        index = platform.device_index(device)
        number = here.current_index() if index is None else index
        where = torch.device("cuda", number) if here.tensors_are_cuda else torch.device("cpu")
        for shape in shapes:
            _workspaces.get(family.op(), where, here.stream_getter()(number), **shape)


def _options(mode: str) -> dict[str, str]:
    if mode not in MODES:
        raise ArgumentError(f"mode {mode!r} is not one of {', '.join(MODES)}")
    return {"mode": mode}


def _family(mode: str) -> LoadedFamily:
    if mode not in _loaded:
        _loaded[mode] = loading.load("topk", None, None, checked=True, cache_dir=None, **_options(mode))
    return _loaded[mode]


def _scratch(op: Any, scores: Any, out: Any) -> dict[str, Any]:
    """Workspaces of the current device and stream."""
    if not op.workspaces:
        return {}
    stream = platform.current().stream_getter()(scores.get_device())
    shape = {"batch": scores.shape[0], "width": scores.shape[1], "k": out.shape[1]}
    return _workspaces.get(op, scores.device, stream, **shape)


def _page_bits(page_size: int) -> int:
    if page_size <= 0 or page_size & (page_size - 1):
        raise ArgumentError(f"page_size is {page_size}", remedy="pass a power of two")
    return page_size.bit_length() - 1
