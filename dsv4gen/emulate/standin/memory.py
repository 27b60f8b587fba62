"""The memory behind a call's pointers: device memory is this process's, and a launch says only where it starts.

How long it is follows from the tensors that the calling functions hold, the innermost first: the function that
launches has the tensors of the call as its arguments, with exactly the bytes the kernel may touch. A pointer that no
caller's tensor covers is left alone, and the emulator reports its use.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

from dsv4gen.emulate.amdgcn import HostBuffer


def words(arguments: Iterable[bytes]) -> set[int]:
    """Every aligned 8-byte word of the kernel arguments that is not 0: all its pointers and some numbers."""
    found = {
        int.from_bytes(argument[offset : offset + 8], "little")
        for argument in arguments
        for offset in range(0, len(argument) - 7, 8)
    }
    return found - {0}


def buffers_behind(addresses: Iterable[int], frame: FrameType | None) -> list[HostBuffer]:
    """The memory of the callers' tensors that these addresses point into, named as the callers name them.

    Args:
        frame: where to begin; its callers follow.
    """
    missing = set(addresses)
    found: dict[int, HostBuffer] = {}
    while frame is not None and missing:
        here = list(_tensors(frame))
        for address in sorted(missing):
            covering = [buffer for buffer in here if _covers(buffer, address)]
            if covering:
                # A view and what it is a view of may start together; then the longer one is surely allowed.
                best = max(covering, key=lambda buffer: (buffer.address == address, buffer.size))
                found[best.address] = best
                missing.discard(address)
        frame = frame.f_back
    return list(found.values())


def _covers(buffer: HostBuffer, address: int) -> bool:
    return buffer.address <= address < buffer.address + max(buffer.size, 1)


def _tensors(frame: FrameType) -> Iterator[HostBuffer]:
    torch = sys.modules.get("torch")
    if torch is None:
        return
    for name, value in list(frame.f_locals.items()):
        if isinstance(value, torch.Tensor) and value.layout is torch.strided and value.device.type == "cpu":
            yield _extent(name, value)


def _extent(name: str, tensor: Any) -> HostBuffer:
    """The bytes from a tensor's first element to its last, whatever its strides."""
    steps = ((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    elements = 0 if 0 in tensor.shape else 1 + sum(steps)
    return HostBuffer(int(tensor.data_ptr()), elements * int(tensor.element_size()), True, name)
