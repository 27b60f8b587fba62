"""Resources of the kernels in an NVIDIA cubin, from its ELF sections and the assembler's log.

The format is not published. What is used here was read from cubins of ptxas 12.9 to 13.5 for sm_80 to sm_120;
the tests compare it with `cuobjdump`:

* kernels are the functions whose symbol has bit 4 set in its `other` byte;
* `.nv.info` and `.nv.info.<kernel>` hold attributes: u8 format, u8 code, u16 value or size, then the payload;
* `.nv.shared.<kernel>` is as large as the kernel's static shared memory. Files with a `.nv.shared.reserved.0`
  (sm_90 and later) count the driver's 1024 bytes in it;
* attribute 0x55 lists marked instructions as pairs (kind, offset); kind 1 is a spill or refill.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from dsv4gen.base.errors import CompileError
from dsv4gen.toolchain.elf import MACHINE_CUDA, Elf, Section
from dsv4gen.toolchain.resources import KernelResources

WARP = 32
DRIVER_RESERVE_BYTES = 1024

_KERNEL = 0x10
_FORMAT_WITH_PAYLOAD = 4
_MAX_THREADS = 0x05
_REQUIRED_THREADS = 0x10
_FRAME_SIZE = 0x11
_REGISTER_COUNT = 0x2F
_ANNOTATIONS = 0x55
_SPILL_OR_REFILL = 1
# Without launch bounds a kernel may be launched with the hardware's largest block.
_UNBOUNDED_THREADS = 1024

_ENTRY = re.compile(r"Compiling entry function '(?P<symbol>[^']+)'")
_SPILLS = re.compile(r"\d+ bytes stack frame, (?P<stores>\d+) bytes spill stores, \d+ bytes spill loads")
_STATIC_SHARED = re.compile(r"Used \d+ registers.*?, (?P<bytes>\d+) bytes smem")


@dataclass(frozen=True)
class LogFigures:
    """What `ptxas -v` prints about one kernel and the cubin does not hold, or not for every version."""

    spill_store_bytes: int = 0
    static_shared_bytes: int = 0


def read_log(log: str) -> dict[str, LogFigures]:
    """The figures of each kernel in a `ptxas -v` log, by symbol; device functions are not listed."""
    figures: dict[str, LogFigures] = {}
    for block in log.split("Compiling entry function")[1:]:
        entry = _ENTRY.match("Compiling entry function" + block)
        if entry:
            spills, shared = _SPILLS.search(block), _STATIC_SHARED.search(block)
            figures[entry["symbol"]] = LogFigures(
                int(spills["stores"]) if spills else 0, int(shared["bytes"]) if shared else 0
            )
    return figures


def read_kernels(binary: bytes, log: str = "") -> tuple[KernelResources, ...]:
    """The resources of every kernel, in the order of their names.

    Raises:
        CompileError: not an NVIDIA code object, or one without register counts.
    """
    elf = Elf.parse(binary)
    if elf.machine != MACHINE_CUDA:
        raise CompileError(f"the code object is for ELF machine {elf.machine}, not for an NVIDIA GPU")
    figures = read_log(log)
    registers, frames = _common_attributes(elf)
    symbols = sorted(symbol.name for symbol in elf.symbols() if symbol.other & _KERNEL)
    return tuple(_kernel(elf, symbol, registers, frames, figures.get(symbol)) for symbol in symbols)


def _kernel(
    elf: Elf, symbol: str, registers: dict[str, int], frames: dict[str, int], figures: LogFigures | None
) -> KernelResources:
    if symbol not in registers:
        raise CompileError(f"the cubin has no register count for {symbol}")
    attributes = list(_attributes(elf.section(f".nv.info.{symbol}")))
    frame = frames.get(symbol, 0)
    marked = _marked_spills(attributes)
    spilled_bytes = figures.spill_store_bytes if figures else frame if marked else 0
    return KernelResources(
        symbol=symbol,
        vector_registers=registers[symbol],
        accumulator_registers=0,
        scalar_registers=0,
        spilled_vector=spilled_bytes // 4,
        spilled_scalar=0,
        scratch_bytes=frame,
        static_shared_bytes=_static_shared(elf, symbol),
        dynamic_shared_bytes=0,
        max_threads=_threads(attributes),
        wave=WARP,
    )


def _common_attributes(elf: Elf) -> tuple[dict[str, int], dict[str, int]]:
    """Register counts and stack frames (bytes per thread) by symbol."""
    names = [symbol.name for symbol in elf.symbols()]
    found: dict[int, dict[str, int]] = {_REGISTER_COUNT: {}, _FRAME_SIZE: {}}
    for code, payload in _attributes(elf.section(".nv.info")):
        if code in found and len(payload) == 8:
            index, value = struct.unpack("<II", payload)
            if index < len(names):
                found[code][names[index]] = value
    return found[_REGISTER_COUNT], found[_FRAME_SIZE]


def _attributes(section: Section | None) -> Iterator[tuple[int, bytes]]:
    """Code and payload of each attribute that has a payload."""
    content = section.content if section else b""
    position = 0
    while position + 4 <= len(content):
        form, code, size = struct.unpack_from("<BBH", content, position)
        position += 4
        if form == _FORMAT_WITH_PAYLOAD:
            yield code, content[position : position + size]
            position += size


def _marked_spills(attributes: list[tuple[int, bytes]]) -> int:
    """How many instructions the assembler marked as spill or refill."""
    pairs = (
        pair
        for code, payload in attributes
        if code == _ANNOTATIONS
        for pair in struct.iter_unpack("<II", payload[: len(payload) // 8 * 8])
    )
    return sum(kind == _SPILL_OR_REFILL for kind, _ in pairs)


def _threads(attributes: list[tuple[int, bytes]]) -> int:
    for code, payload in attributes:
        if code in (_MAX_THREADS, _REQUIRED_THREADS) and len(payload) == 12:
            x, y, z = struct.unpack("<III", payload)
            return int(x * y * z)
    return _UNBOUNDED_THREADS


def _static_shared(elf: Elf, symbol: str) -> int:
    section = elf.section(f".nv.shared.{symbol}")
    if section is None:
        return 0
    reserved = DRIVER_RESERVE_BYTES if elf.section(".nv.shared.reserved.0") else 0
    return max(section.size - reserved, 0)
