"""Shared memory of client and worker: anonymous files that either side maps as torch tensors.

The client copies the bytes a call needs into its arena and copies them back afterwards. Poison lies between
the tensors, and every byte keeps its address modulo the alignment that matters to kernels, so that a
misaligned or strided argument is just as misaligned and strided in the worker.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

import torch
from torch import Tensor

from dsv4gen.base.errors import ArgumentError
from dsv4gen.interpret.protocol import TensorReference

_ALIGNMENT = 256
_RED_ZONE = 4096
_POISON = 0xCD
_SMALLEST = 1 << 20


class Segment:
    """One anonymous file in memory, mapped as bytes; untouched pages cost nothing.

    The serial number identifies it to the worker: descriptors are reused, serial numbers are not.
    """

    _serials = count()

    def __init__(self, size: int) -> None:
        self.serial = next(self._serials)
        self.size = size
        self.descriptor = os.memfd_create("dsv4gen-interpret")
        os.ftruncate(self.descriptor, size)
        self.data = map_segment(os.getpid(), self.descriptor, size)

    def holds(self, tensor: Tensor) -> bool:
        """Whether the tensor's storage is this segment."""
        return tensor.untyped_storage().data_ptr() == self.data.data_ptr()

    def close(self) -> None:
        """Give the file back; the mapping lives as long as tensors use it."""
        os.close(self.descriptor)


def map_segment(process: int, descriptor: int, size: int) -> Tensor:
    """The bytes of another process's (or one's own) segment, uint8 [size]."""
    path = f"/proc/{process}/fd/{descriptor}"
    return torch.from_file(path, shared=True, size=size, dtype=torch.uint8)


@dataclass(frozen=True)
class Extent:
    """The bytes [low, high) of one storage that a call's tensors reach, and where they lie in the arena."""

    storage: torch.UntypedStorage
    low: int
    high: int
    position: int

    def source(self) -> Tensor:
        """The client's own bytes."""
        raw = torch.empty(0, dtype=torch.uint8)
        return raw.set_(self.storage, self.low, (self.high - self.low,), (1,))


class Arena:
    """The client's segment for ordinary tensors, grown as needed, beside segments it allocated on request."""

    def __init__(self) -> None:
        self.segment = Segment(_SMALLEST)
        self.allocated: list[Segment] = []

    def allocate(self, size: int) -> Tensor:
        """Shared bytes that calls use in place, zero and without cost until touched, uint8 [size]."""
        segment = Segment(size)
        self.allocated.append(segment)
        return segment.data

    def place(self, tensors: Iterable[Tensor]) -> tuple[list[Extent], list[TensorReference]]:
        """Copy in what the tensors reach; returns what to copy back and one reference per tensor.

        Raises:
            ArgumentError: a tensor that is not on the CPU.
        """
        tensors = list(tensors)
        for tensor in tensors:
            if tensor.device.type != "cpu":
                raise ArgumentError(f"the interpreter takes CPU tensors, got one on {tensor.device}")
        extents = self._lay_out(tensors)
        for extent in extents.values():
            end = extent.position + extent.high - extent.low
            self.segment.data[extent.position : end] = extent.source()
        return list(extents.values()), [self._reference(tensor, extents) for tensor in tensors]

    def copy_back(self, extents: Iterable[Extent]) -> None:
        """Bring the worker's results into the client's tensors."""
        for extent in extents:
            end = extent.position + extent.high - extent.low
            extent.source().copy_(self.segment.data[extent.position : end])

    def close(self) -> None:
        """Give all segments back."""
        for segment in (self.segment, *self.allocated):
            segment.close()
        self.allocated.clear()

    def _owner(self, tensor: Tensor) -> Segment | None:
        return next((segment for segment in self.allocated if segment.holds(tensor)), None)

    def _lay_out(self, tensors: list[Tensor]) -> dict[int, Extent]:
        """Extents by storage address; tensors of one storage keep their distance, so aliases stay aliases."""
        reach: dict[int, tuple[torch.UntypedStorage, int, int]] = {}
        for tensor in tensors:
            low, high = reached_bytes(tensor)
            if self._owner(tensor) is None and high > low:
                storage = tensor.untyped_storage()
                _, old_low, old_high = reach.get(storage.data_ptr(), (storage, low, high))
                reach[storage.data_ptr()] = (storage, min(low, old_low), max(high, old_high))
        extents = {}
        end = _RED_ZONE
        for address, (storage, low, high) in reach.items():
            position = end + (address + low - end) % _ALIGNMENT
            extents[address] = Extent(storage, low, high, position)
            end = -(-(position + high - low + _RED_ZONE) // _ALIGNMENT) * _ALIGNMENT
        self._reserve(end)
        self.segment.data[:end] = _POISON
        return extents

    def _reserve(self, size: int) -> None:
        if size > self.segment.size:
            self.segment.close()
            self.segment = Segment(max(size, 2 * self.segment.size))

    def _reference(self, tensor: Tensor, extents: dict[int, Extent]) -> TensorReference:
        low, high = reached_bytes(tensor)
        segment, shift = self._owner(tensor), 0
        if segment is None:
            segment = self.segment
            extent = extents.get(tensor.untyped_storage().data_ptr())
            shift = extent.position - extent.low if extent is not None and high > low else -low
        return TensorReference(
            segment.serial,
            segment.descriptor,
            segment.size,
            low + shift,
            high + shift,
            str(tensor.dtype).removeprefix("torch."),
            tuple(tensor.shape),
            tuple(tensor.stride()),
        )


def reached_bytes(tensor: Tensor) -> tuple[int, int]:
    """Byte range [low, high) within its storage that a tensor's elements span; empty for an empty tensor."""
    item = tensor.element_size()
    first = int(tensor.storage_offset())
    if tensor.numel() == 0:
        return first * item, first * item
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    last = first + sum((int(size) - 1) * int(stride) for size, stride in pairs)
    return first * item, (last + 1) * item
