"""The end of a HIP/CUDA op's launch function: pack Params, launch what was prepared for this stream and these sizes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence

from dsv4gen.runtime.call_table import CallTable

ADDRESS_BYTES = 8


class DriverLaunch:
    """Lines of text that call `_stream, _decisions, _prepare, _recheck, _free, _new_slot, _copied_slot, _pack,
    _pack<n>, _pack_error, _launch` and `_failed`.

    A memory holds the stream, the launches, what a parameter buffer starts from, and the plan; its hits are parameter
    buffers in which all but the addresses is packed.
    """

    remembered: Sequence[str] = ("_key", "_todo", "_packed", "_plan")
    conditions: Sequence[str] = ("_stream(_device) == _key",)
    aligned = 1

    def __init__(self, table: CallTable) -> None:
        self._table = table

    def again(self) -> Iterator[str]:
        """Launch for new addresses."""
        yield from _take("_hits", "_copied_slot(_packed)")
        for offset, names in pointer_runs(self._table).items():
            words = ("0" if name in self._table.absent else f"_at_{name}" for name in names)
            yield f"_pack{len(names)}(_buffer, {offset}, {', '.join(words)})"
        yield from _launch_each("_todo")
        yield "_hits.append(_slot)"

    def launch(self, everything: str, remember: Callable[[str], list[str]]) -> Iterator[str]:
        """Launch for new sizes."""
        table = self._table
        key = ", ".join(["_key", "_device", *table.key_axes])
        sizes = ", ".join(f"{axis.name!r}: {axis.name}" for axis in table.axes if axis.source != "absent")
        spaces = [rule.name for rule in table.workspaces]
        yield "_key = _stream(_device)"
        yield f"_plan = _decisions.get(({key}))"
        yield "if _plan is None:"
        yield f"    _plan = _prepare(_key, _device, ({key}), {{{sizes}}})"
        if spaces:
            yield f"if {' or '.join(f'_plan.needs[{i}] > _bytes_{name}' for i, name in enumerate(spaces))}:"
            yield f"    _plan.refuse_workspaces({', '.join(f'_bytes_{name}' for name in spaces)})"
        yield from _take("_free", "_new_slot()")
        yield "try:"
        yield f"    _pack(_buffer, 0, {', '.join(_packed(table))})"
        yield "except _pack_error:"
        yield f"    _recheck({everything})"
        yield "    raise"
        yield from _launch_each("_plan.launches")
        yield from remember("_key, _plan.launches, bytes(_buffer), _plan")
        yield "_free.append(_slot)"


def pointer_runs(table: CallTable) -> dict[int, list[str]]:
    """Byte offset -> names of addresses that lie there in a row, for each run in which a call has any."""
    present = set(table.memory)
    runs: dict[int, list[str]] = {}
    start, end = 0, -1
    for name, offset in table.pointers.items():
        if offset != end:
            start = offset
        runs.setdefault(start, []).append(name)
        end = offset + ADDRESS_BYTES
    return {start: names for start, names in runs.items() if present & set(names)}


def packers(table: CallTable) -> dict[str, Callable[..., None]]:
    """What writes the addresses of each run into a parameter buffer, by its name in the launch function."""
    sizes = {len(names) for names in pointer_runs(table).values()}
    return {f"_pack{size}": struct.Struct(f"<{size}Q").pack_into for size in sizes}


def _take(free: str, new: str) -> Iterator[str]:
    """A parameter buffer that no call in flight uses."""
    yield "try:"
    yield f"    _slot = {free}.pop()"
    yield "except IndexError:"
    yield f"    _slot = {new}"
    yield "_buffer, _params = _slot"


def _launch_each(launches: str) -> Iterator[str]:
    yield f"for _config, _function in {launches}:"
    yield "    _status = _launch(_config, _function, _params, None)"
    yield "    if _status:"
    yield "        _failed(_status, _device, _config, _function, _params)"


def _packed(table: CallTable) -> Iterator[str]:
    """The members of Params: addresses, run-time strides and numbers; 0 for what these options leave out."""
    pointers = set(table.memory)
    numbers = {stride for rule in table.tensors for stride in rule.strides if isinstance(stride, str)}
    numbers |= {axis.name for axis in table.axes} | set(table.scalars)
    for name in table.fields:
        yield f"_at_{name}" if name in pointers else name if name in numbers else "0"
