"""The short way for a call like an earlier one: same layouts, numbers and stream, so that only addresses are new.

Reading shapes and strides from Python costs more than launching. torch compares the dtype, device, sizes and strides
of all tensors of a call with remembered ones in one C++ call, the one that torch.compile guards its graphs with. What
was tested, decided and packed for them then holds; addresses are read, tested and packed again.

A launch function holds a few such memories and asks the newest first. Where torch lacks the comparison, nothing is
ever remembered and each call takes the long way.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dsv4gen.runtime.call_table import CallTable
from dsv4gen.runtime.launching import Prepared

#: memories of a launch function: each one that does not fit costs a call about 0.2 us
MEMORIES_MAX = 4
#: after the first few, one in so many calls of the long way is remembered, since remembering costs as much as a call
REPLACE_EVERY = 16
ADDRESS_BYTES = 8
STAND_IN_DIMENSIONS = 9


class Memory(NamedTuple):
    """What one call leaves behind, in the order in which the launch function unpacks it.

    `slots` are parameter buffers in which all but the addresses is packed, each with its address; `packed` is what a
    new one starts from.
    """

    same: Callable[..., bool]
    numbers: tuple[Any, ...]
    device: int
    stream: int
    launches: tuple[tuple[Any, int], ...]
    slots: list[tuple[Any, int]]
    packed: bytes
    plan: Prepared


def make_comparison(tensors: Sequence[Any]) -> Callable[..., bool] | None:
    """A function that says whether tensors are like these ones; None where torch has no such comparison."""
    try:
        from torch._C._dynamo.guards import TensorGuards

        guards = TensorGuards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None)
        check: Callable[..., bool] = guards.check
        return check if check(*tensors) else None
    except (ImportError, AttributeError, TypeError, ValueError):
        return None


class Memories:
    """The memories of one launch function. `known` is replaced as a whole, so that a thread sees one state."""

    def __init__(self) -> None:
        self.known: tuple[Memory, ...] = ()
        self._asked = 0

    def remember(
        self,
        tensors: Sequence[Any],
        numbers: tuple[Any, ...],
        device: int,
        stream: int,
        plan: Prepared,
        packed: Any,
    ) -> None:
        """Keep what a call of the long way found, if it is one of the first or one of `REPLACE_EVERY`.

        Of the older memories those stay that a call has fitted: calls that never repeat soon meet one memory, not four.

        Args:
            tensors: what `compared_text` names.
            numbers: as the caller gave them.
            packed: the parameter buffer of the call.
        """
        self._asked += 1
        if self._asked > MEMORIES_MAX and self._asked % REPLACE_EVERY:
            return
        if not all(_comparable(number) for number in numbers):
            return
        same = make_comparison(tensors)
        if same is not None:
            made = Memory(same, numbers, device, stream, plan.launches, [], bytes(packed), plan)
            useful = [memory for memory in self.known if memory.slots or self._asked <= MEMORIES_MAX]
            self.known = (made, *useful[: MEMORIES_MAX - 1])


def _comparable(number: Any) -> bool:
    """Whether an equal number of the same class is the same one: of the floats, zero is not, since it has a sign."""
    return number is None or number.__class__ is int or (number.__class__ is float and number != 0)


def pointer_runs(table: CallTable) -> dict[int, list[str]]:
    """Byte offset -> names of addresses that lie there in a row, for each run in which a call has any."""
    present = {rule.name for rule in table.tensors} | {space.name for space in table.workspaces}
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


def optional_tensors(table: CallTable) -> list[str]:
    """Arguments that may be None once the outputs are made, by name."""
    tensors = [rule.name for rule in table.inputs if rule.optional]
    return [*tensors, *(space.name for space in table.workspaces)]


def stand_ins(table: CallTable) -> dict[str, Any]:
    """What is compared in place of tensors that are left out, each its own tensor of a layout that no call takes."""
    import torch

    shape = (0,) * STAND_IN_DIMENSIONS
    return {f"_no_{name}": torch.empty(shape, dtype=torch.bool, device="cpu") for name in optional_tensors(table)}


def compared_text(table: CallTable) -> str:
    """All tensors of a call, as the comparison takes them."""
    given = [rule.name for rule in (*table.inputs, *table.outputs)] + [space.name for space in table.workspaces]
    optional = optional_tensors(table)
    return ", ".join(f"_no_{name} if {name} is None else {name}" if name in optional else name for name in given)
