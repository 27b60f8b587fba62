"""Kernel arguments: packing the kernarg block, and the device addresses a kernel sees.

Every buffer gets its own device address range with 64 GiB between ranges, so that an access past an end never lands
in a neighbour. Addresses keep their position within 16 bytes (the widest access), and no more, so that counts of cache
lines do not depend on the host's allocator. In a packed block (`Params`), every aligned 8-byte word
that points into a passed buffer is replaced by the device address.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4gen.base.errors import ArgumentError
from dsv4gen.emulate.amdgcn.program import Argument, Descriptor
from dsv4gen.emulate.amdgcn.registers import PRIVATE_APERTURE, SHARED_APERTURE

_FIRST_ADDRESS = 0x1000_0000_0000
_SPACING = 1 << 36
_ALIGNMENT = 16


@dataclass(frozen=True)
class HostBuffer:
    """Host memory a kernel may touch: address, size in bytes, whether it may write, a name for messages."""

    address: int
    size: int
    writable: bool = True
    name: str = ""


@dataclass(frozen=True)
class MappedBuffer:
    """A buffer and where the kernel sees it."""

    buffer: HostBuffer
    device: int


def host_buffer(value: Any, name: str) -> HostBuffer:
    """The memory of a NumPy array, a CPU torch tensor or a HostBuffer.

    Raises:
        ArgumentError: something else, or an array that is not contiguous.
    """
    if isinstance(value, HostBuffer):
        return value
    interface = getattr(value, "__array_interface__", None)
    if interface is not None and interface["shape"] != () and not hasattr(value, "data_ptr"):
        if interface.get("strides") is not None:
            raise ArgumentError(f"{name} is not contiguous", remedy="pass a contiguous copy")
        address, readonly = interface["data"]
        return HostBuffer(int(address), int(value.nbytes), not readonly, name)
    if hasattr(value, "data_ptr"):
        if value.device.type != "cpu" or not value.is_contiguous():
            raise ArgumentError(f"{name} is not a contiguous CPU tensor", remedy="pass a contiguous CPU copy")
        return HostBuffer(int(value.data_ptr()), int(value.numel() * value.element_size()), True, name)
    raise ArgumentError(f"{name} is not an array: {type(value).__name__}")


def map_buffers(buffers: Iterable[HostBuffer]) -> list[MappedBuffer]:
    """Give every buffer its device address."""
    return [
        MappedBuffer(buffer, _FIRST_ADDRESS + index * _SPACING + buffer.address % _ALIGNMENT)
        for index, buffer in enumerate(buffers)
    ]


def pack_arguments(
    descriptor: Descriptor, args: Sequence[Any] | bytes, buffers: Sequence[Any]
) -> tuple[bytearray, list[MappedBuffer]]:
    """The explicit part of the kernarg block, padded to the whole block's size, and the buffers it refers to.

    Raises:
        ArgumentError: wrong number, size or kind of an argument.
    """
    values: Sequence[Any] = [args] if isinstance(args, (bytes, bytearray)) else args
    explicit = [argument for argument in descriptor.arguments if not argument.hidden]
    if not explicit:
        explicit = _natural_layout(values)
    values = _with_triton_scratch(values, explicit)
    if len(values) != len(explicit):
        wanted = ", ".join(f"{argument.name or argument.kind} ({argument.size} bytes)" for argument in explicit)
        raise ArgumentError(f"{descriptor.symbol} takes {len(explicit)} arguments ({wanted}), not {len(values)}")
    memory = [host_buffer(value, f"buffer {index}") for index, value in enumerate(buffers)]
    pointers: dict[int, int] = {}
    for index, value in enumerate(values):
        if _is_memory(value):
            pointers[index] = len(memory)
            memory.append(host_buffer(value, explicit[index].name or f"argument {index}"))
    mappings = map_buffers(memory)
    end = max((argument.offset + argument.size for argument in explicit), default=0)
    block = bytearray(max(descriptor.kernarg_bytes, end))
    for index, (argument, value) in enumerate(zip(explicit, values, strict=True)):
        if index in pointers:
            raw = struct.pack("<Q", mappings[pointers[index]].device)
        else:
            raw = _relocated(_scalar_bytes(value, argument, index), mappings)
        if len(raw) != argument.size:
            raise ArgumentError(f"argument {index} has {len(raw)} bytes, the kernel expects {argument.size}")
        block[argument.offset : argument.offset + argument.size] = raw
    return block, mappings


def _is_memory(value: Any) -> bool:
    if isinstance(value, HostBuffer) or hasattr(value, "data_ptr"):
        return True
    interface = getattr(value, "__array_interface__", None)
    return interface is not None and interface["shape"] != ()


def _scalar_bytes(value: Any, argument: Argument, index: int) -> bytes:
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if value is None:
        return bytes(argument.size)
    if hasattr(value, "tobytes"):
        return bytes(value.tobytes())
    raise ArgumentError(
        f"argument {index} is a {type(value).__name__}",
        remedy="pass arrays for pointers and sized scalars such as numpy.int32(5) by value",
    )


def _relocated(raw: bytes, mappings: Sequence[MappedBuffer]) -> bytes:
    """Replace pointers into buffers by device addresses."""
    block = bytearray(raw)
    for offset in range(0, len(block) - 7, 8):
        word = struct.unpack_from("<Q", block, offset)[0]
        for mapping in mappings:
            distance = word - mapping.buffer.address
            if 0 <= distance < mapping.buffer.size or (distance == 0 and word):
                struct.pack_into("<Q", block, offset, mapping.device + distance)
                break
    return bytes(block)


def _natural_layout(values: Sequence[Any]) -> list[Argument]:
    """Without metadata: every argument aligned to its own size."""
    layout, offset = [], 0
    for value in values:
        size = 8 if _is_memory(value) else len(value) if isinstance(value, bytes) else value.nbytes
        alignment = min(size & -size, 8)
        offset = -(-offset // alignment) * alignment
        layout.append(Argument("by_value", offset, size))
        offset += size
    return layout


def _with_triton_scratch(values: Sequence[Any], explicit: Sequence[Argument]) -> Sequence[Any]:
    """Triton appends two pointers (global and profile scratch) that callers need not pass."""
    extra = explicit[len(values) :]
    if len(extra) == 2 and all(argument.size == 8 and argument.kind == "global_buffer" for argument in extra):
        return [*values, None, None]
    return values


def fill_hidden(
    block: bytearray, descriptor: Descriptor, grid: Sequence[int], group: Sequence[int], lds_bytes: int
) -> None:
    """Write the hidden arguments of code object versions 5 and 6."""
    values = {
        "grid_dims": max(index + 1 for index in range(3) if index == 0 or grid[index] * group[index] > 1),
        "dynamic_lds_size": lds_bytes,
        "shared_base": SHARED_APERTURE,
        "private_base": PRIVATE_APERTURE,
    }
    for index, axis in enumerate("xyz"):
        values[f"block_count_{axis}"] = grid[index]
        values[f"group_size_{axis}"] = group[index]
        values[f"remainder_{axis}"] = 0
        values[f"global_offset_{axis}"] = 0
    for argument in descriptor.arguments:
        if argument.hidden:
            value = values.get(argument.kind.removeprefix("hidden_"), 0)
            raw = (value & ((1 << 8 * argument.size) - 1)).to_bytes(argument.size, "little")
            block[argument.offset : argument.offset + argument.size] = raw


def dispatch_packet(
    grid: Sequence[int], group: Sequence[int], private_bytes: int, lds_bytes: int, kernarg: int
) -> bytes:
    """The 64-byte AQL packet that a kernel with a dispatch pointer reads its sizes from."""
    dims = 3 if grid[2] * group[2] > 1 else 2 if grid[1] * group[1] > 1 else 1
    threads = [blocks * size for blocks, size in zip(grid, group, strict=True)]
    head = struct.pack("<HHHHHHIIIII", 2, dims, *group, 0, *threads, private_bytes, lds_bytes)
    return head + struct.pack("<QQQQ", 0, kernarg, 0, 0)
