"""Resources of the kernels in an AMD code object, from its metadata note.

Source: LLVM's "User Guide for AMDGPU Backend", code object V5 metadata (note type 32, owner AMDGPU,
MessagePack). The note's `.vgpr_count` is the total of the unified file: on targets with AGPRs the
architectural VGPRs, rounded up to a multiple of 4, plus `.agpr_count`.
"""

from __future__ import annotations

from typing import TypeVar

from dsv4gen.base.errors import CompileError
from dsv4gen.toolchain import msgpack
from dsv4gen.toolchain.elf import MACHINE_AMDGPU, Elf
from dsv4gen.toolchain.resources import KernelResources

_NOTE_KIND = 32
_T = TypeVar("_T")


def read_metadata(binary: bytes) -> dict[str, msgpack.Value]:
    """The metadata of a code object as plain values (`amdhsa.kernels`, `amdhsa.target`, ...).

    Raises:
        CompileError: not an AMD code object, or one without the note.
    """
    elf = Elf.parse(binary)
    if elf.machine != MACHINE_AMDGPU:
        raise CompileError(f"the code object is for ELF machine {elf.machine}, not for an AMD GPU")
    for note in elf.notes():
        if note.kind == _NOTE_KIND and note.owner == "AMDGPU":
            return _typed(msgpack.decode(note.content), dict, "the metadata")
    raise CompileError("the code object has no AMDGPU metadata note")


def read_kernels(binary: bytes) -> tuple[KernelResources, ...]:
    """The resources of every kernel, in the object's order.

    Raises:
        CompileError: not an AMD code object, or metadata without an expected key.
    """
    kernels = _typed(read_metadata(binary).get("amdhsa.kernels"), list, "amdhsa.kernels")
    return tuple(_kernel(_typed(entry, dict, "a kernel's metadata")) for entry in kernels)


def _kernel(entry: dict[str, msgpack.Value]) -> KernelResources:
    accumulators = _count(entry, ".agpr_count", missing=0)
    return KernelResources(
        symbol=_typed(entry.get(".name"), str, ".name"),
        vector_registers=_count(entry, ".vgpr_count") - accumulators,
        accumulator_registers=accumulators,
        scalar_registers=_count(entry, ".sgpr_count"),
        spilled_vector=_count(entry, ".vgpr_spill_count", missing=0),
        spilled_scalar=_count(entry, ".sgpr_spill_count", missing=0),
        scratch_bytes=_count(entry, ".private_segment_fixed_size"),
        static_shared_bytes=_count(entry, ".group_segment_fixed_size"),
        dynamic_shared_bytes=0,
        max_threads=_count(entry, ".max_flat_workgroup_size"),
        wave=_count(entry, ".wavefront_size"),
    )


def _count(entry: dict[str, msgpack.Value], key: str, missing: int | None = None) -> int:
    return _typed(entry.get(key, missing), int, key)


def _typed(value: object, kind: type[_T], name: str) -> _T:
    if not isinstance(value, kind):
        raise CompileError(f"the code object's metadata has no usable {name} (it is {value!r})")
    return value
