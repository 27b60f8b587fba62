"""Run a lowered kernel: allocate what the runtime needs, fill the launch structure, call, read back."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass

from dsv4gen.base.errors import ArgumentError
from dsv4gen.emulate.amdgcn import layout, library
from dsv4gen.emulate.amdgcn.arguments import HostBuffer, MappedBuffer, dispatch_packet, fill_hidden
from dsv4gen.emulate.amdgcn.counters import instruction_classes, sum_counters
from dsv4gen.emulate.amdgcn.expressions import evaluate
from dsv4gen.emulate.amdgcn.lowering.lower import Lowered
from dsv4gen.emulate.amdgcn.metadata import USER_GROUP_DWORDS
from dsv4gen.emulate.amdgcn.program import CODE_BASE, Descriptor
from dsv4gen.emulate.amdgcn.result import Result, describe_trap, finding_of

ORDERS = {"ascending": 0, "descending": 1, "random": 2}
_CONTROL_ADDRESS = 0x0300_0000_0000
_CONTROL_SPACING = 1 << 32
_DYNAMIC_STACK = 16384


@dataclass(frozen=True)
class Options:
    """How to run: extra LDS bytes, order of blocks and waves, seed, budget and turn length in instructions."""

    lds: int = 0
    order: str = "ascending"
    seed: int = 0
    budget: int = 2_000_000_000
    turn: int = 0
    count_memory: bool = True

    def resolved_order(self) -> tuple[int, int]:
        """The runtime's order number and seed; `random:7` carries its seed.

        Raises:
            ArgumentError: an unknown order.
        """
        name, colon, seed = self.order.partition(":")
        if name not in ORDERS or (colon and not (name == "random" and seed.isascii() and seed.isdigit())):
            raise ArgumentError(f"unknown order {self.order!r}", remedy="ascending, descending, random, random:SEED")
        return ORDERS[name], int(seed) if seed else self.seed


class Memory:
    """Zeroed host memory aligned to 128 bytes that lives as long as this object."""

    def __init__(self, size: int) -> None:
        self._raw = ctypes.create_string_buffer(size + 128)
        self.address = -(-ctypes.addressof(self._raw) // 128) * 128
        self.size = size

    @classmethod
    def of(cls, content: bytes) -> Memory:
        """Memory holding these bytes."""
        memory = cls(len(content))
        ctypes.memmove(memory.address, content, len(content))
        return memory


class Image:
    """A lowered kernel in memory: ops, constants, constant data, jump entries; made once per kernel."""

    def __init__(self, lowered: Lowered) -> None:
        self.lowered = lowered
        self.classes = instruction_classes(lowered.program)
        self.ops = Memory.of(lowered.packed(library.addresses(lowered.functions)))
        self.constants = Memory.of(lowered.constants)
        program = lowered.program
        data = bytearray(program.data)
        for offset, expression in program.relocations:
            address = CODE_BASE + evaluate(expression, program.symbols)
            data[offset : offset + 8] = address.to_bytes(8, "little")
        self.data = Memory.of(bytes(data))
        last = program.instructions[-1].address // 4
        entries = (ctypes.c_int32 * (last + 1))(*([-1] * (last + 1)))
        for record, position in zip(program.instructions, lowered.op_of_instruction, strict=True):
            entries[record.address // 4] = position
        self.entries = entries
        self.start = lowered.op_of_instruction[
            next(i for i, record in enumerate(program.instructions) if record.address == program.entry)
        ]


@dataclass(frozen=True)
class _Sizes:
    """What a launch needs: waves of a block, bytes of LDS, of scratch per lane, and between waves."""

    waves: int
    lds: int
    scratch: int
    wave_stride: int


def run(
    image: Image,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    kernarg: bytearray,
    mappings: Sequence[MappedBuffer],
    options: Options,
) -> Result:
    """Execute one launch.

    Raises:
        ArgumentError: a grid, block or LDS size outside the hardware's limits.
    """
    lowered = image.lowered
    descriptor = lowered.program.descriptor
    executor = library.executor()
    layout.check_layout(executor)
    _check_sizes(lowered, grid, block, options)
    sizes = _sizes(lowered, block, options)
    fill_hidden(kernarg, descriptor, grid, block, options.lds)
    control = _control_buffers(image, grid, block, kernarg, sizes)
    count = len(lowered.program.instructions)
    counts = (ctypes.c_uint64 * count)()
    memory_counts = (layout.MemoryCount * count)()
    memories = _memories(sizes)
    table = _buffer_table([*mappings, *control.values()])
    launch = _launch(image, grid, block, sizes, options)
    launch.counts, launch.memory_counts = ctypes.addressof(counts), ctypes.addressof(memory_counts)
    launch.buffers, launch.buffer_count = ctypes.addressof(table), len(table)
    for name, memory in memories.items():
        setattr(launch, name, memory.address)
    _set_initial_registers(launch, descriptor, kernarg, control)
    started = time.perf_counter()
    stopped = executor.emulator_run(ctypes.byref(launch))
    seconds = time.perf_counter() - started
    executed = tuple(counts)
    return Result(
        describe_trap(launch.trap, lowered.program, mappings) if stopped else None,
        tuple(finding_of(record, lowered.program) for record in launch.findings[: launch.finding_count]),
        sum(executed),
        sum_counters(image.classes, executed, memory_counts),
        executed,
        seconds,
    )


def _sizes(lowered: Lowered, block: tuple[int, int, int], options: Options) -> _Sizes:
    descriptor = lowered.program.descriptor
    threads = block[0] * block[1] * block[2]
    # Two spare rows: steps on 64-bit values may touch the row behind the last temporary.
    rows = lowered.registers + lowered.temporaries + 2
    return _Sizes(
        waves=-(-threads // descriptor.wave),
        lds=descriptor.group_bytes + options.lds,
        scratch=descriptor.private_bytes + (_DYNAMIC_STACK if descriptor.dynamic_stack else 0),
        wave_stride=layout.ROWS_OFFSET + layout.ROW_BYTES * rows,
    )


def _memories(sizes: _Sizes) -> dict[str, Memory]:
    """Memory by the name of the launch structure's pointer to it."""
    return {
        "lds": Memory(sizes.lds + 64),
        "shadow": Memory(ctypes.sizeof(layout.Shadow) * (sizes.lds // 4 + 16)),
        "scratch": Memory(sizes.waves * layout.ROW_LANES * sizes.scratch + 64),
        "waves": Memory(sizes.wave_stride * sizes.waves),
    }


def _launch(
    image: Image, grid: tuple[int, int, int], block: tuple[int, int, int], sizes: _Sizes, options: Options
) -> layout.Launch:
    """The launch structure without its pointers to per-launch memory."""
    lowered = image.lowered
    order, seed = options.resolved_order()
    return layout.Launch(
        ops=image.ops.address,
        first_op=image.start,
        entries=ctypes.addressof(image.entries),
        entry_count=len(image.entries),
        code_base=CODE_BASE,
        constants=image.constants.address + image.constants.size,
        wave_stride=sizes.wave_stride,
        poisoned_rows=lowered.registers,
        budget=options.budget,
        seed=seed,
        quantum=options.turn,
        grid=grid,
        block=block,
        lanes=lowered.program.descriptor.wave,
        lds_bytes=sizes.lds,
        scratch_bytes=sizes.scratch,
        wave_count=sizes.waves,
        order=order,
        ids_in_ttmp=int(lowered.generation.ids_in_ttmp),
        line_shift=lowered.generation.cache_line.bit_length() - 1,
        banks=lowered.generation.lds_banks,
        fp16_overflow=int(lowered.program.descriptor.fp16_overflow),
        count_memory=int(options.count_memory),
    )


def _check_sizes(lowered: Lowered, grid: tuple[int, int, int], block: tuple[int, int, int], options: Options) -> None:
    descriptor, generation = lowered.program.descriptor, lowered.generation
    threads = block[0] * block[1] * block[2]
    if min(*grid, *block) < 1 or threads > 1024:
        raise ArgumentError(f"grid {grid} and block {block} are not a launch of 1 to 1024 threads a block")
    if threads > descriptor.max_threads:
        raise ArgumentError(
            f"{descriptor.symbol} was compiled for at most {descriptor.max_threads} threads a block, not {threads}"
        )
    lds = descriptor.group_bytes + options.lds
    if lds > generation.lds_bytes:
        raise ArgumentError(f"{lds} bytes of LDS are more than {generation.name} has ({generation.lds_bytes})")


def _control_buffers(
    image: Image,
    grid: Sequence[int],
    block: Sequence[int],
    kernarg: bytearray,
    sizes: _Sizes,
) -> dict[str, MappedBuffer]:
    """Read-only memory of the launch itself: arguments, dispatch packet, constant data."""
    arguments = Memory.of(bytes(kernarg))
    packet = Memory.of(dispatch_packet(grid, block, sizes.scratch, sizes.lds, _CONTROL_ADDRESS))
    program = image.lowered.program
    kept = {
        "kernarg": (arguments, _CONTROL_ADDRESS),
        "dispatch": (packet, _CONTROL_ADDRESS + _CONTROL_SPACING),
        "data": (image.data, CODE_BASE + program.data_offset),
    }
    mappings = {}
    for name, (memory, device) in kept.items():
        mappings[name] = _KeptBuffer(HostBuffer(memory.address, memory.size, False, name), device, memory)
    return dict(mappings)


@dataclass(frozen=True)
class _KeptBuffer(MappedBuffer):
    """A mapping that keeps its memory alive."""

    memory: Memory


def _buffer_table(mappings: Sequence[MappedBuffer]) -> ctypes.Array[layout.Buffer]:
    table = (layout.Buffer * len(mappings))()
    for entry, mapping in zip(table, mappings, strict=True):
        entry.device = mapping.device
        entry.bytes = mapping.buffer.size
        entry.host = mapping.buffer.address
        entry.writable = int(mapping.buffer.writable)
    return table


def _set_initial_registers(
    launch: layout.Launch, descriptor: Descriptor, kernarg: bytearray, control: dict[str, MappedBuffer]
) -> None:
    """User SGPRs in the hardware's order, then where block ids and the scratch offset go."""
    user: list[int] = []
    for name in descriptor.user_registers:
        user += _user_group(name, launch, control)
    start = 4 * descriptor.preload_offset_dwords
    preloaded = kernarg[start : start + 4 * descriptor.preload_dwords]
    user += [int.from_bytes(preloaded[at : at + 4], "little") for at in range(0, len(preloaded), 4)]
    launch.user_count = len(user)
    launch.user[: len(user)] = user
    slot = descriptor.user_count
    for axis in range(3):
        launch.id_slot[axis] = -1
        if descriptor.workgroup_ids[axis] and not launch.ids_in_ttmp:
            launch.id_slot[axis] = slot
            slot += 1
    launch.scratch_offset_slot = slot if descriptor.scratch_offset_register else -1


def _user_group(name: str, launch: layout.Launch, control: dict[str, MappedBuffer]) -> list[int]:
    if name == "kernarg_segment_ptr":
        return _halves(control["kernarg"].device)
    if name == "dispatch_ptr":
        return _halves(control["dispatch"].device)
    if name == "private_segment_buffer":
        # Base 0, linear, lane number added (bit 23): address_buffer takes it for scratch.
        return [0, 0, 0xFFFFFFFF, 1 << 23]
    if name == "private_segment_size":
        return [launch.scratch_bytes]
    return [0] * USER_GROUP_DWORDS[name]


def _halves(address: int) -> list[int]:
    return [address & 0xFFFFFFFF, address >> 32]
