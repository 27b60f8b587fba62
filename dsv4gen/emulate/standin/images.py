"""Code objects as a driver gets them: an address, nothing else. Read, checked against the device, made into kernels."""

from __future__ import annotations

import ctypes
import functools
import struct
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.base.errors import DsvError, OutputError
from dsv4gen.base.target_id import TargetId, parse, runs_on
from dsv4gen.emulate.amdgcn import Kernel
from dsv4gen.emulate.standin.status import INVALID_IMAGE, NO_BINARY_FOR_GPU, NOT_SUPPORTED, HipFailure
from dsv4gen.toolchain import hsaco
from dsv4gen.toolchain.store import Store, content_key

_MAGIC = b"\x7fELF"
_HEADER = struct.Struct("<40xQ10xHH2x")
_SECTION = struct.Struct("<4xI16xQQ24x")
_NOBITS = 8
_ASSEMBLY = "kernels.s"
_TRIPLE = "amdgcn-amd-amdhsa--"


@dataclass(frozen=True)
class Image:
    """One loaded code object: its bytes and the names of its kernels."""

    binary: bytes
    kernels: tuple[str, ...]


def load_image(address: int, device: TargetId) -> Image:
    """The code object at an address of this process.

    Raises:
        HipFailure: no code object, or one for another device.
    """
    binary = _read(address)
    try:
        built_for = str(hsaco.read_metadata(binary).get("amdhsa.target", ""))
        kernels = tuple(kernel.symbol for kernel in hsaco.read_kernels(binary))
        code = parse(built_for.removeprefix(_TRIPLE))
    except DsvError as error:
        raise HipFailure(INVALID_IMAGE, f"device kernel image is invalid: {error.message}") from error
    if not runs_on(code, device):
        raise HipFailure(NO_BINARY_FOR_GPU, f"the code object is for {code}, the device is {device}")
    return Image(binary, kernels)


@functools.lru_cache(maxsize=64)
def kernel(binary: bytes, symbol: str) -> Kernel:
    """The emulated kernel: from the assembly the code object was made from where it is known, else disassembled.

    Raises:
        HipFailure: the emulator cannot run it, for want of a disassembler or of an instruction.
    """
    assembly = _assembly(binary)
    try:
        if assembly is not None:
            return Kernel.from_assembly(assembly, symbol)
        return Kernel.from_code_object(binary, symbol)
    except DsvError as error:
        raise HipFailure(NOT_SUPPORTED, f"{symbol} cannot be emulated: {error}") from error


def keep_assembly(binary: bytes, assembly: str) -> None:
    """Remember, in later processes too, what a code object was assembled from; it needs no disassembler then and
    its instructions know their source lines."""
    _assemblies[content_key((binary,))] = assembly
    try:
        Store.open("standin").put(content_key((binary,)), {_ASSEMBLY: assembly.encode()})
    except OutputError:
        # This process remembers it all the same.
        return


_assemblies: dict[str, str] = {}


def _assembly(binary: bytes) -> str | None:
    key = content_key((binary,))
    if key not in _assemblies:
        folder: Path | None = Store.open("standin").get(key)
        if folder is None:
            return None
        _assemblies[key] = (folder / _ASSEMBLY).read_text(encoding="utf-8")
    return _assemblies[key]


def _read(address: int) -> bytes:
    """The bytes of an ELF file of unknown length: up to the end of its last section or of the section table.

    Raises:
        HipFailure: no ELF file.
    """
    if ctypes.string_at(address, len(_MAGIC)) != _MAGIC:
        raise HipFailure(INVALID_IMAGE, "device kernel image is invalid: it is no ELF file")
    table, entry_size, count = _HEADER.unpack(ctypes.string_at(address, _HEADER.size))
    if entry_size != _SECTION.size:
        raise HipFailure(INVALID_IMAGE, f"device kernel image is invalid: section entries of {entry_size} bytes")
    end = table + entry_size * count
    for entry in _SECTION.iter_unpack(ctypes.string_at(address + table, entry_size * count)):
        kind, offset, size = entry
        end = max(end, offset if kind == _NOBITS else offset + size)
    return ctypes.string_at(address, end)
