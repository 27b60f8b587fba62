"""Inputs that break kernels, by the names family specs list, and buffers that show stray writes.

A spec lists hazards; a test asks `hazards_of(kind, names)` for those that concern an input and applies each.
Values are drawn from an explicit generator, so that a failing case can be replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from dsv4gen.base.errors import ArgumentError, VerifyError, did_you_mean

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
#: a NaN's bits read as an index; what uninitialised index buffers were seen to hold
NAN_BITS_INDEX = 0x7FC00000
POISON_BYTE = 0xAB
_GUARD_BYTES = 256


@dataclass(frozen=True)
class Hazard:
    """A named way to spoil one kind of input.

    `kind` is `scores`, `lengths`, `indices`, `codes`, `scales` or `layout`; `apply(tensor, bound, generator)`
    returns a changed copy. `bound` is what the kind counts up to: row width, pool slots, or 0.
    """

    name: str
    kind: str
    summary: str
    apply: Callable[[Tensor, int, Generator], Tensor]


def _some(tensor: Tensor, generator: Generator, share: float = 0.25) -> Tensor:
    """A random selection of elements, never empty for a non-empty tensor; bool, same shape."""
    chosen = torch.rand(tensor.shape, generator=generator) < share
    if chosen.numel():
        chosen.view(-1)[int(torch.randint(chosen.numel(), (), generator=generator))] = True
    return chosen


def _sprinkle(*values: float) -> Callable[[Tensor, int, Generator], Tensor]:
    """Put each of `values` at random places, leaving most of the tensor alone."""

    def apply(tensor: Tensor, bound: int, generator: Generator) -> Tensor:  # noqa: ARG001
        changed = tensor.clone()
        for value in values:
            changed[_some(changed, generator, 0.25 / len(values))] = value
        return changed

    return apply


def _sprinkle_bounds(*offsets: int) -> Callable[[Tensor, int, Generator], Tensor]:
    """Put `bound + offset` at random places."""

    def apply(tensor: Tensor, bound: int, generator: Generator) -> Tensor:
        legal = [min(bound + offset, INT32_MAX) for offset in offsets]
        return _sprinkle(*legal)(tensor, bound, generator)

    return apply


def _constant(value: float) -> Callable[[Tensor, int, Generator], Tensor]:
    def apply(tensor: Tensor, bound: int, generator: Generator) -> Tensor:  # noqa: ARG001
        return torch.full_like(tensor, value)

    return apply


def _random_below(tensor: Tensor, bound: int, generator: Generator) -> Tensor:
    drawn = torch.randint(0, max(bound, 1), tensor.shape, generator=generator)
    return drawn.to(tensor.dtype)


def _repeat_first(tensor: Tensor, bound: int, generator: Generator) -> Tensor:  # noqa: ARG001
    changed = tensor.clone()
    if changed.numel():
        changed[_some(changed, generator)] = changed.view(-1)[0]
    return changed


def _unchanged(tensor: Tensor, bound: int, generator: Generator) -> Tensor:  # noqa: ARG001
    return tensor


HAZARDS = {
    hazard.name: hazard
    for hazard in (
        Hazard("nan", "scores", "NaN among ordinary scores", _sprinkle(float("nan"))),
        Hazard("inf", "scores", "both infinities", _sprinkle(float("inf"), float("-inf"))),
        Hazard("equal_values", "scores", "every score equal", _constant(1.0)),
        Hazard("signed_zero", "scores", "zeros of both signs", _sprinkle(0.0, -0.0)),
        Hazard("subnormal", "scores", "subnormals of both signs", _sprinkle(1e-40, -1e-40, 1e-45)),
        Hazard("length_zero", "lengths", "rows with no valid column", _sprinkle(0)),
        Hazard("length_negative", "lengths", "garbage below zero", _sprinkle(-1, INT32_MIN)),
        Hazard("length_below_k", "lengths", "rows shorter than the selection", _random_below),
        Hazard("length_above_width", "lengths", "longer than the row", _sprinkle_bounds(1, INT32_MAX)),
        Hazard("index_minus_one", "indices", "the documented sentinel", _sprinkle(-1)),
        Hazard("index_negative", "indices", "garbage below zero", _sprinkle(-2, INT32_MIN)),
        Hazard("index_past_end", "indices", "first slot past the pool and beyond", _sprinkle_bounds(0, 1)),
        Hazard("index_garbage", "indices", "uninitialised memory", _sprinkle(NAN_BITS_INDEX, INT32_MAX)),
        Hazard("index_all_invalid", "indices", "nothing valid at all", _constant(-1)),
        Hazard("duplicate_index", "indices", "one slot many times", _repeat_first),
        Hazard("nan_code", "codes", "NaN codes of both dialects", _sprinkle(0x7F, 0xFF, 0x80)),
        Hazard("scale_extremes", "scales", "UE8M0 bytes at both ends", _sprinkle(0, 1, 254, 255)),
        Hazard("misaligned_base", "layout", "base address off the vector width", _unchanged),
        Hazard("strided", "layout", "rows further apart than their length", _unchanged),
        Hazard("poisoned_tail", "layout", "garbage beyond the valid part", _unchanged),
        Hazard("poisoned_slot_zero", "layout", "slot 0 holds NaN, so that redirected reads show", _unchanged),
        Hazard("empty", "layout", "an axis of length 0", _unchanged),
    )
}


def hazard(name: str) -> Hazard:
    """The hazard called `name`.

    Raises:
        ArgumentError: no such hazard.
    """
    if name not in HAZARDS:
        raise ArgumentError(f"unknown hazard {name!r}{did_you_mean(name, HAZARDS)}")
    return HAZARDS[name]


def hazards_of(kind: str, names: Iterable[str]) -> list[Hazard]:
    """The hazards among a spec's `names` that concern inputs of one kind, in the spec's order."""
    return [found for found in map(hazard, names) if found.kind == kind]


@dataclass(frozen=True)
class Poisoned:
    """A tensor inside a larger allocation filled with a pattern, so that a write outside it shows.

    `raw` are the allocation's bytes, of which `tensor` is a view.
    """

    tensor: Tensor
    raw: Tensor = field(repr=False)

    def again(self) -> Poisoned:
        """A new allocation of the same geometry, all of it pattern."""
        raw = torch.full_like(self.raw, POISON_BYTE)
        view = raw.view(self.tensor.dtype)
        return Poisoned(view.as_strided(self.tensor.shape, self.tensor.stride(), self.tensor.storage_offset()), raw)

    def check_surroundings(self, name: str) -> None:
        """Every byte that is not one of the tensor's elements still holds the pattern.

        Raises:
            VerifyError: a byte around or between the tensor's elements changed.
        """
        item = self.tensor.element_size()
        own = torch.zeros(self.raw.numel() // item, dtype=torch.bool)
        own.as_strided(self.tensor.shape, self.tensor.stride(), self.tensor.storage_offset()).fill_(True)
        stray = (self.raw != POISON_BYTE) & ~own.repeat_interleave(item)
        if bool(stray.any()):
            first = int(stray.nonzero()[0]) // item - self.tensor.storage_offset()
            raise VerifyError(f"{name}: {int(stray.sum())} bytes written outside the tensor, first at element {first}")


def poisoned(shape: Iterable[int], dtype: torch.dtype, *, row_padding: int = 0, offset: int = 0) -> Poisoned:
    """An uninitialised tensor whose surroundings, gaps and elements hold a pattern.

    Args:
        shape: wanted sizes; the last dimension is contiguous.
        dtype: element type.
        row_padding: elements between the end of a row and the next row's start.
        offset: elements by which the first one is moved off the allocation's alignment.
    """
    sizes = tuple(shape)
    strides = _strides(sizes, row_padding)
    item = torch.empty((), dtype=dtype).element_size()
    guard = _GUARD_BYTES // item
    last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    extent = 0 if 0 in sizes else last + 1
    raw = torch.full(((2 * guard + offset + extent) * item,), POISON_BYTE, dtype=torch.uint8)
    return Poisoned(raw.view(dtype).as_strided(sizes, strides, guard + offset), raw)


def _strides(sizes: tuple[int, ...], row_padding: int) -> tuple[int, ...]:
    """Strides of a row-major tensor whose last dimension is followed by padding."""
    strides = [1] * len(sizes)
    apart = 1
    for position in range(len(sizes) - 1, -1, -1):
        strides[position] = apart
        apart *= sizes[position]
        if position == len(sizes) - 1:
            apart += row_padding
    return tuple(strides)
