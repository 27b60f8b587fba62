"""Which tensors of a call may share memory: none with one that the kernel writes, but for pairs that a spec permits.

What a kernel reads from memory that it also writes depends on the order of its threads. Where each element is read
before its place is written, and by whoever writes it, the spec names the pair (`in_place`), and then the output may be
the input itself: same address, same strides.

Two tensors lie apart where the ranges from first to last byte do. Ranges that meet are looked at exactly, as columns
of one buffer interleave and still share no byte. The launch function tests the ranges; a memory of the short way
(`repeat`) keeps which of those that meet passed, by the distance of their addresses, which decides where layouts
are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dsv4gen.runtime import repeat
from dsv4gen.runtime.call_table import CallTable


class Pair(NamedTuple):
    """Two arguments by name, of which the kernel writes the first; `in_place`: it may be the second one itself."""

    written: str
    other: str
    in_place: bool


def pairs(table: CallTable) -> list[Pair]:
    """Every two arguments of which one is written, once."""
    allowed = {rule.name: rule.in_place for rule in table.tensors}
    written = [space.name for space in table.workspaces] + [rule.name for rule in table.tensors if rule.written]
    found = []
    for position, name in enumerate(written):
        for other in table.memory:
            if other not in written[: position + 1]:
                permitted = other in allowed.get(name, ()) or name in allowed.get(other, ())
                found.append(Pair(name, other, permitted))
    return found


def span(tensor: Any) -> int:
    """Bytes from a tensor's first element to the end of its last; 0 where it has none."""
    if tensor.numel() == 0:
        return 0
    steps = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return int((1 + steps) * tensor.element_size())


def problem(pair: Pair, written: Any, other: Any) -> str:
    """What is wrong with the memory of two tensors; nothing where they share none, or are permitted to."""
    if pair.in_place and _same(written, other):
        return ""
    if not share(written, other):
        return ""
    if pair.in_place:
        return f"{pair.written} shares memory with {pair.other}; in place it must be {pair.other} itself, all of it"
    return f"{pair.written} shares memory with {pair.other}; what a kernel writes must lie apart"


def _same(one: Any, other: Any) -> bool:
    """Whether two tensors are element on element."""
    return bool(one.data_ptr() == other.data_ptr() and one.shape == other.shape and one.stride() == other.stride())


def share(one: Any, other: Any) -> bool:
    """Whether two strided tensors have a byte in common."""
    distance = int(other.data_ptr()) - int(one.data_ptr())
    if not -span(other) < distance < span(one):
        return False
    # A byte in common: offset of the one - offset of the other = distance. Counting the other's offsets from its end
    # makes all terms positive, so the question is which sums of steps reach one number.
    counts: dict[int, int] = {}
    for step, size in (*_steps(one), *_steps(other)):
        counts[step] = counts.get(step, 0) + size - 1
    dense, apart = 0, []
    for step, count in sorted(counts.items()):
        if step <= dense + 1:
            dense += step * count
        else:
            apart.append((step, count))
    return _reaches(distance + span(other) - 1, dense, apart)


def _steps(tensor: Any) -> Iterator[tuple[int, int]]:
    """Byte strides with their sizes; an element's bytes are a dimension too."""
    item = tensor.element_size()
    yield 1, item
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        if size > 1 and stride > 0:
            yield stride * item, size


def _reaches(total: int, dense: int, steps: list[tuple[int, int]]) -> bool:
    """Whether total is a sum of up to `count` times each step, and any number up to `dense`.

    Args:
        steps: (step, count), ascending. The last one goes first: the others usually add less than two of it, so that
            few counts are left to try.
    """
    if 0 <= total <= dense:
        return True
    if total < 0 or not steps or total % math.gcd(*(step for step, _ in steps)) > dense:
        return False
    others, (step, most) = steps[:-1], steps[-1]
    rest = dense + sum(other * count for other, count in others)
    counts = range(max(0, -(-(total - rest) // step)), min(most, total // step) + 1)
    return any(_reaches(total - count * step, dense, others) for count in counts)


def limits(table: CallTable) -> dict[str, str]:
    """What a memory holds of sharing, as name -> text in the launch function: the span of each tensor, negative ones of
    those that are written, and the distances that passed."""
    made = pairs(table)
    if not made:
        return {}
    spans = {f"_span_{name}": f"_end_{name} - _at_{name}" for name in table.memory}
    below = {f"_below_{pair.written}": f"_at_{pair.written} - _end_{pair.written}" for pair in made}
    return {**spans, **below, "_passed": "_passed"}


def passed_text(table: CallTable) -> str:
    """Distances of tensors of a right call whose ranges meet, as text that calls `_distances`."""
    begins, ends = (", ".join(f"{edge}_{name}" for name in table.memory) for edge in ("_at", "_end"))
    return f"_distances(({begins},), ({ends},))"


def distances(table: CallTable) -> Callable[[tuple[int, ...], tuple[int, ...]], frozenset[tuple[int, int]]]:
    """A function from first and last addresses, in the order of `table.memory`, to pairs whose ranges meet, by number,
    with their distances."""
    made, names = pairs(table), table.memory

    def of(begins: tuple[int, ...], ends: tuple[int, ...]) -> frozenset[tuple[int, int]]:
        at, end = dict(zip(names, begins, strict=True)), dict(zip(names, ends, strict=True))
        return frozenset(
            (number, at[pair.written] - at[pair.other])
            for number, pair in enumerate(made)
            if at[pair.written] < end[pair.other] and at[pair.other] < end[pair.written]
        )

    return of


def short_conditions(table: CallTable) -> Iterator[str]:
    """Each is true for addresses so close that the tensors may share memory, unless that distance passed before."""
    groups: dict[str, list[str]] = {}
    for number, pair in enumerate(pairs(table)):
        distance = f"_at_{pair.written} - _at_{pair.other}"
        close = f"_below_{pair.written} < {distance} < _span_{pair.other}"
        close += f" and {pair.written} is not {pair.other}" if pair.in_place else ""
        groups.setdefault(pair.written, []).append(f"{close} and ({number}, {distance}) not in _passed")
    may_be_absent = repeat.optional_tensors(table)
    for written, tests in groups.items():
        words = " or ".join(tests)
        yield f"_at_{written} and ({words})" if written in may_be_absent else words


def long_conditions(table: CallTable) -> Iterator[str]:
    """Each is true where the ranges of two tensors meet: `_at_<tensor>` to `_end_<tensor>`; `problem` decides."""
    for pair in pairs(table):
        meet = f"_at_{pair.written} < _end_{pair.other} and _at_{pair.other} < _end_{pair.written}"
        yield f"{meet} and {pair.written} is not {pair.other}" if pair.in_place else meet
