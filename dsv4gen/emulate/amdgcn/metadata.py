"""Build the kernel's Descriptor from its metadata entry and from the descriptor's own fields.

Source: LLVM's "User Guide for AMDGPU Backend" (kernel descriptor, initial kernel register state, code object V5
metadata), as far as it concerns compute kernels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dsv4gen.base.errors import CompileError
from dsv4gen.emulate.amdgcn.program import Argument, Descriptor

#: user SGPR groups in the order the hardware fills them: (name, `.amdhsa_user_sgpr_*` directive, property bit)
USER_GROUPS = (
    ("private_segment_buffer", 0, 4),
    ("dispatch_ptr", 1, 2),
    ("queue_ptr", 2, 2),
    ("kernarg_segment_ptr", 3, 2),
    ("dispatch_id", 4, 2),
    ("flat_scratch_init", 5, 2),
    ("private_segment_size", 6, 1),
)
USER_GROUP_DWORDS = {name: dwords for name, _, dwords in USER_GROUPS}
_TARGET = re.compile(r"gfx[0-9a-f]+")


@dataclass(frozen=True)
class DescriptorFields:
    """The fields of a kernel descriptor that the launch needs, from either front end."""

    group_bytes: int
    private_bytes: int
    kernarg_bytes: int
    user_registers: tuple[str, ...]
    user_count: int
    preload_dwords: int
    preload_offset_dwords: int
    workgroup_ids: tuple[bool, bool, bool]
    private_segment: bool
    fp16_overflow: bool


def target_of(text: str) -> str:
    """`gfx942` out of `amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-` and similar.

    Raises:
        CompileError: no target id in the text.
    """
    match = _TARGET.search(text)
    if match is None:
        raise CompileError(f"no AMD target in {text!r}")
    return match[0]


def kernel_entry(metadata: Mapping[str, object], symbol: str) -> Mapping[str, object]:
    """The metadata of one kernel.

    Raises:
        CompileError: no such kernel; the message lists those there are.
    """
    kernels = metadata.get("amdhsa.kernels")
    entries = [entry for entry in kernels if isinstance(entry, Mapping)] if isinstance(kernels, list) else []
    for entry in entries:
        if entry.get(".name") == symbol:
            return entry
    names = ", ".join(str(entry.get(".name")) for entry in entries) or "none"
    raise CompileError(f"no kernel {symbol!r} in this code; its kernels: {names}")


def build_descriptor(symbol: str, target: str, entry: Mapping[str, object], fields: DescriptorFields) -> Descriptor:
    """Join the metadata entry and the descriptor's fields."""
    wave = _number(entry, ".wavefront_size", 64)
    # gfx90a addresses scratch through s[0:3] and needs the wave's offset; later targets do it in hardware.
    offset_register = fields.private_segment and "private_segment_buffer" in fields.user_registers
    return Descriptor(
        symbol=symbol,
        target=target,
        group_bytes=fields.group_bytes,
        private_bytes=fields.private_bytes,
        kernarg_bytes=fields.kernarg_bytes,
        wave=wave,
        user_registers=fields.user_registers,
        user_count=fields.user_count,
        preload_dwords=fields.preload_dwords,
        preload_offset_dwords=fields.preload_offset_dwords,
        workgroup_ids=fields.workgroup_ids,
        scratch_offset_register=offset_register,
        fp16_overflow=fields.fp16_overflow,
        dynamic_stack=bool(entry.get(".uses_dynamic_stack", False)),
        max_threads=_number(entry, ".max_flat_workgroup_size", 1024),
        arguments=_arguments(entry.get(".args")),
    )


def _arguments(entries: object) -> tuple[Argument, ...]:
    listed = entries if isinstance(entries, list) else []
    return tuple(
        Argument(
            str(entry.get(".value_kind")),
            _number(entry, ".offset", 0),
            _number(entry, ".size", 0),
            str(entry.get(".name", "")),
        )
        for entry in listed
        if isinstance(entry, Mapping)
    )


def _number(entry: Mapping[str, object], key: str, missing: int) -> int:
    value = entry.get(key, missing)
    if not isinstance(value, int):
        raise CompileError(f"the kernel's metadata has no usable {key} (it is {value!r})")
    return value
