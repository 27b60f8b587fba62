"""Compressor plans of sglang's first ABI as the structs that the ops of `compress` take.

    from dsv4gen.compat.sglang_compress import adapt_decode_plan, adapt_prefill_plan, flat_state

    compress, write = adapt_prefill_plan(plan.compress_plan, plan.write_plan, indices, extra_data, ratio=4)
    state = flat_state(kv_score_buffer)
    prefill(state=state, plan=compress, ...)
    write(state=state, plan=write, ...)

Each adapter is one launch, once per step and ratio, on the current stream; nothing is copied to the host. Entries that
name no token (-1, or garbage) become invalid ones, which the ops skip.

A capture takes what was called before: `prewarm` with the sizes of the captured steps, or each adapter once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsv4gen.base.errors import ArgumentError
from dsv4gen.runtime import load as loading
from dsv4gen.runtime import platform
from dsv4gen.runtime.loaded import LoadedFamily

RATIOS = (4, 128)
#: bytes and int32 words of one v1 struct
_STRUCT_BYTES, _STRUCT_WORDS = 16, 4
#: what a step is described by, for `prewarm`
_NEEDED, _SIZES = {"ratio", "batch"}, {"ratio", "batch", "groups", "writes"}

_loaded: dict[str, LoadedFamily] = {}


def adapt_decode_plan(seq_lens: Any, indices: Any, extra_data: Any = None, *, ratio: int, out: Any = None) -> Any:
    """Decode structs, int32 [batch, 4], for `decode` and `decode_pool`.

    Args:
        seq_lens: int32 [batch], those of the plan; a row of length 0 is padding.
        indices: int32 [batch], the state page that is written; a negative one makes the row padding.
        extra_data: int32 [batch] or [batch, 1], the page of the previous group. Without it, pages of ratio 4 are rings
            of eight rows; ratio 128 needs none.
        ratio: 4 or 128.
        out: written and returned; made when absent.

    Raises:
        ArgumentError: tensors of other shapes or dtypes, or on different devices.
        CaptureError: under capture, and nothing like it was called before.
    """
    _check_ratio(ratio)
    plan = seq_lens.new_empty((seq_lens.shape[0], 4)) if out is None else out
    _op("adapt_decode_v1")(seq_lens=seq_lens, state_pages=indices, extra=_column(extra_data), plan=plan, ratio=ratio)
    return plan


def adapt_prefill_plan(
    compress_plan: Any, write_plan: Any, indices: Any, extra_data: Any = None, *, ratio: int, out: Any = None
) -> tuple[Any, Any]:
    """Compress structs int32 [groups, 4] for `prefill`, and write structs int32 [writes, 2] for `write`.

    Args:
        compress_plan, write_plan: uint8 [n, 16], as sglang makes them, or their int32 [n, 4] views.
        indices: int32 [batch], the state page of the last position that is written.
        extra_data: int32 [batch, 4] for ratio 4, [batch] or [batch, 1] for ratio 128. Without it, pages of ratio 4 are
            rings of eight rows, and ratio 128 reads the page that it writes.
        ratio: 4 or 128.
        out: the two results, written and returned; made when absent.

    Raises:
        ArgumentError: tensors of other shapes or dtypes, on different devices, or more than 65536 groups.
        CaptureError: under capture, and nothing like it was called before.
    """
    _check_ratio(ratio)
    groups, writes = _words("compress_plan", compress_plan), _words("write_plan", write_plan)
    made = (groups.new_empty((len(groups), 4)), groups.new_empty((len(writes), 2))) if out is None else out
    v1 = {"v1_compress": groups, "v1_write": writes, "state_pages": indices, "extra": _column(extra_data)}
    _op("adapt_prefill_v1")(**v1, compress=made[0], write=made[1], ratio=ratio)
    return made


def flat_state(kv_score_buffer: Any) -> Any:
    """The state as the ops take it: a buffer [pages, rows, width] as [pages * rows, width], the same memory.

    Raises:
        ArgumentError: the rows of different pages do not lie equally far apart, so that there is no such view.
    """
    if kv_score_buffer.dim() != 3:
        raise ArgumentError(
            f"kv_score_buffer: shape {tuple(kv_score_buffer.shape)}", remedy="a state buffer is [pages, rows, width]"
        )
    pages, rows, width = kv_score_buffer.shape
    if kv_score_buffer.stride(0) != rows * kv_score_buffer.stride(1):
        raise ArgumentError(
            f"kv_score_buffer: pages {kv_score_buffer.stride(0)} elements apart hold {rows} rows of "
            f"{kv_score_buffer.stride(1)}",
            remedy="allocate pages without gaps; a copy would not be the engine's state",
        )
    return kv_score_buffer.view(pages * rows, width)


def prewarm(device: object = None, *, shapes: Sequence[Mapping[str, int]], extra: bool = True) -> None:
    """Compile what captured steps need.

    Args:
        device: where; the current one when absent.
        shapes: sizes of the steps to come: dict(ratio=4, batch=8) for decode, and dict(ratio=4, batch=8, groups=32,
            writes=32) for the others, `groups` and `writes` being the entries of their plans.
        extra: whether they have `extra_data`.

    Raises:
        ArgumentError: sizes that no step has.
    """
    import torch

    here = platform.current()
    index = platform.device_index(device)
    number = here.current_index() if index is None else index
    where = torch.device("cuda", number) if here.tensors_are_cuda else torch.device("cpu")
    with here.on_device(number):
        for shape in shapes:
            if not _NEEDED <= set(shape) <= _SIZES:
                raise ArgumentError(
                    f"a step of sizes {', '.join(shape)}", remedy="ratio and batch, or also groups and writes"
                )
            _run_once(where, extra=extra, **shape)


def _run_once(where: Any, *, extra: bool, ratio: int, batch: int, groups: int | None = None, writes: int = 0) -> None:
    """One call of an adapter on entries that name nothing."""
    import torch

    lengths = torch.zeros(batch, dtype=torch.int32, device=where)
    found = lengths.new_zeros((batch, 4 if ratio == 4 and groups is not None else 1)) if extra else None
    if groups is None:
        adapt_decode_plan(lengths, lengths, found, ratio=ratio)
        return
    compress, write = (torch.full((n, _STRUCT_BYTES), 255, dtype=torch.uint8, device=where) for n in (groups, writes))
    adapt_prefill_plan(compress, write, lengths, found, ratio=ratio)


def _op(name: str) -> Any:
    if "compress" not in _loaded:
        _loaded["compress"] = loading.load("compress", None, None, checked=True, cache_dir=None)
    return _loaded["compress"].op(name)


def _check_ratio(ratio: int) -> None:
    if ratio not in RATIOS:
        raise ArgumentError(f"ratio is {ratio}", remedy="4 or 128")


def _words(name: str, plan: Any) -> Any:
    """A v1 plan as int32 [n, 4], the same memory."""
    import torch

    if plan.dtype == torch.uint8 and plan.dim() == 2 and plan.shape[1] == _STRUCT_BYTES and plan.is_contiguous():
        return plan.view(torch.int32)
    if plan.dtype == torch.int32 and plan.dim() == 2 and plan.shape[1] == _STRUCT_WORDS and plan.is_contiguous():
        return plan
    raise ArgumentError(
        f"{name} is {str(plan.dtype).removeprefix('torch.')} {tuple(plan.shape)}, strides {tuple(plan.stride())}",
        remedy="v1 plans are contiguous uint8 [n, 16], or int32 [n, 4]; newer ones need no adapter",
    )


def _column(extra_data: Any) -> Any:
    return extra_data[:, None] if extra_data is not None and extra_data.dim() == 1 else extra_data
