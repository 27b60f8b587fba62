"""The short way for a call like an earlier one: same layouts, numbers and stream, so that only addresses are new.

Reading shapes and strides from Python costs more than launching. torch compares the dtype, device, sizes and strides
of all tensors of a call with remembered ones in one C++ call, the one that torch.compile guards its graphs with. What
was tested and decided for them then holds; addresses are read and tested again.

A launch function holds a few such memories and asks the newest first. Where the extension was built (`native`) it keeps
a twin of each and is asked before; it takes plain tensors only. Without extension and comparison nothing is ever
remembered and each call takes the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from dsv4gen.runtime.call_table import CallTable

#: memories of a launch function: each one that does not fit costs a call about 0.2 us
MEMORIES_MAX = 4
#: after the first few, one in so many calls of the long way is remembered, since remembering costs as much as a call
REPLACE_EVERY = 16
STAND_IN_DIMENSIONS = 9


class Memory(NamedTuple):
    """What one call leaves behind, in the order in which the launch function unpacks it.

    `hits` is empty until a later call fitted. What `more` holds is the launch's business. The extension counts its own.
    """

    same: Callable[..., bool]
    numbers: tuple[Any, ...]
    hits: list[Any]
    device: int
    more: tuple[Any, ...]
    twin: Twin | None

    @property
    def useful(self) -> bool:
        """Whether a later call fitted."""
        return bool(self.hits or (self.twin and self.twin.used))


class Twin(Protocol):
    """A memory as the extension keeps it."""

    @property
    def used(self) -> bool:
        """Whether a later call fitted."""


class Twins(Protocol):
    """The extension's memories of one launch function."""

    def make(self, tensors: Sequence[Any], numbers: tuple[Any, ...], device: int, more: tuple[Any, ...]) -> Twin | None:
        """A call as the extension keeps it; None where it cannot."""

    def know(self, known: tuple[Twin, ...]) -> None:
        """Replace those that calls are compared with, newest first."""


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

    def __init__(self, twins: Twins | None = None) -> None:
        self.known: tuple[Memory, ...] = ()
        self._twins = twins
        self._asked = 0

    def wanted(self) -> bool:
        """Whether a call of the long way is to be remembered: the first few, then one of `REPLACE_EVERY`."""
        self._asked += 1
        return self._asked <= MEMORIES_MAX or self._asked % REPLACE_EVERY == 0

    def remember(
        self,
        compared: Sequence[Any],
        tensors: Sequence[Any],
        numbers: tuple[Any, ...],
        device: int,
        more: tuple[Any, ...],
    ) -> None:
        """Keep what a call found, unless its numbers cannot be compared.

        Of the older memories those stay that a call has fitted: calls that never repeat soon meet one memory, not four.

        Args:
            compared: what `compared_text` names.
            tensors: all that is memory.
            numbers: as the caller gave them.
        """
        if not all(_comparable(number) for number in numbers):
            return
        twin = self._twins.make(tensors, numbers, device, more) if self._twins else None
        same = make_comparison(compared) or (_never if twin else None)
        if same is None:
            return
        useful = [memory for memory in self.known if memory.useful or self._asked <= MEMORIES_MAX]
        self.known = (Memory(same, numbers, [], device, more, twin), *useful[: MEMORIES_MAX - 1])
        if self._twins:
            self._twins.know(tuple(memory.twin for memory in self.known if memory.twin))


def _never(*_: Any) -> bool:
    """What only the extension can compare, such as one tensor in two places."""
    return False


def _comparable(number: Any) -> bool:
    """Whether an equal value of the same class is the same one: of the floats, zero is not, since it has a sign."""
    return number is None or number.__class__ in (int, bool, str) or (number.__class__ is float and number != 0)


def stand_ins(table: CallTable) -> dict[str, Any]:
    """What is compared in place of tensors that are left out or given before, by name in the launch function.

    Each is a tensor of its own, since the comparison refuses one tensor in two places, of a layout that no call takes.
    """
    import torch

    shape = (0,) * STAND_IN_DIMENSIONS
    pairs = [f"_{written}_is_{read}" for written, reads in _in_place(table).items() for read in reads]
    names = [f"_no_{name}" for name in optional_tensors(table)] + pairs
    return {name: torch.empty(shape, dtype=torch.bool, device="cpu") for name in names}


def compared_text(table: CallTable) -> str:
    """All tensors of a call, as the comparison takes them."""
    optional, in_place = optional_tensors(table), _in_place(table)
    words = []
    for name in table.memory:
        word = f"_no_{name} if {name} is None else " if name in optional else ""
        word += "".join(f"_{name}_is_{read} if {name} is {read} else " for read in in_place.get(name, ()))
        words.append(word + name)
    return ", ".join(words)


def optional_tensors(table: CallTable) -> list[str]:
    """Arguments that may be None once the outputs are made, by name."""
    tensors = [rule.name for rule in table.inputs if rule.optional]
    return [*tensors, *(space.name for space in table.workspaces)]


def _in_place(table: CallTable) -> dict[str, list[str]]:
    """Written tensor -> those that a caller may pass as it too, by the spec."""
    return {rule.name: [name for name in rule.in_place if name in table.memory] for rule in table.tensors}
