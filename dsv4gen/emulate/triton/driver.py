"""The device that Triton sees in the worker: an AMD target whose compiled kernels run on the emulator.

Triton asks its active driver for the target, hands it each kernel it compiled, and launches through it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from triton.backends.compiler import GPUTarget
from triton.runtime.cache import get_cache_manager

from dsv4gen.base.errors import CompileError, EmulationError
from dsv4gen.emulate.amdgcn import HostBuffer, Kernel, Result
from dsv4gen.emulate.amdgcn.generation import generation_of

#: Triton's type of a number -> the bytes that travel
_NUMBERS = {
    "i1": np.uint8,
    "i8": np.int8,
    "u8": np.uint8,
    "i16": np.int16,
    "u16": np.uint16,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
    "fp32": np.float32,
    "fp64": np.float64,
}


@dataclass(frozen=True)
class Launched:
    """One launch: the kernel's function and its constants, the launch's size, and what the emulator saw."""

    function: str
    constants: Mapping[str, object]
    grid: tuple[int, int, int]
    block: int
    shared_bytes: int
    kernel: Kernel
    result: Result


@dataclass
class Device:
    """An emulated GPU: its target, the memory of the current call, and what was launched.

    `memory` has the call's tensors as (name, low, high) addresses; a tensor that the launcher made itself is
    known when it is passed to a kernel.
    """

    target: GPUTarget
    order: str = "ascending"
    memory: list[tuple[str, int, int]] = field(default_factory=list)
    launches: list[Launched] = field(default_factory=list)


class Driver:
    """What Triton takes for a GPU driver."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.utils = _Utilities(device)

    def launcher_cls(self, source: Any, metadata: Any) -> _Launcher:
        """A launcher for a compiled kernel; Triton calls it once per kernel."""
        return _Launcher(self.device, source, metadata)

    def get_current_target(self) -> GPUTarget:
        """The target to compile for."""
        return self.device.target

    def get_current_device(self) -> int:
        """There is one."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one."""

    def get_current_stream(self, _device: int) -> int:
        """Launches are done when they return."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """Where tensors live."""
        return torch.device("cpu")


class _Utilities:
    """Triton's handle on code objects and device properties."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def get_device_properties(self, _device: int) -> dict[str, int]:
        """What Triton checks a kernel against."""
        return {"max_shared_mem": generation_of(str(self._device.target.arch)).lds_bytes}

    def load_binary(self, name: str, *_: Any) -> tuple[Any, ...]:
        """Module, function, registers, spills, most threads; the launcher knows the kernel already."""
        return object(), name, 0, 0, 1024

    def unload_module(self, module: object) -> None:
        """Nothing is kept."""


class _Launcher:
    """A compiled kernel, ready to launch."""

    def __init__(self, device: Device, source: Any, metadata: Any) -> None:
        self._device = device
        self._metadata = metadata
        self._types: dict[str, Any] = dict(source.signature)
        self._function = str(source.fn.__name__)
        self._kernel = Kernel.from_assembly(_assembly(metadata), metadata.name)

    def __call__(self, x: int, y: int, z: int, *rest: Any) -> None:
        """Run; `rest` ends with the values of all parameters, after Triton's stream, handles and hooks.

        Raises:
            EmulationError: the kernel misbehaved.
        """
        values = dict(zip(self._types, rest[-len(self._types) :], strict=True))
        if 0 in (x, y, z):
            return
        buffers = _buffers(self._device.memory, values)
        scratch = _scratch(self._metadata, x * y * z)
        arguments = [_argument(name, self._types[name], value) for name, value in values.items()]
        block = self._metadata.num_warps * self._metadata.warp_size
        result = self._kernel.run(
            (x, y, z),
            block,
            [argument for argument in arguments if argument is not None] + scratch,
            buffers=buffers,
            lds=self._metadata.shared,
            order=self._device.order,
        )
        constants = {name: value for name, value in values.items() if self._types[name] == "constexpr"}
        self._device.launches.append(
            Launched(self._function, constants, (x, y, z), block, self._metadata.shared, self._kernel, result)
        )
        if result.problems:
            raise EmulationError(f"{self._function}: " + "\n".join(result.problems))


def _assembly(metadata: Any) -> str:
    """The text that Triton kept beside the code object.

    Raises:
        CompileError: there is none.
    """
    group = get_cache_manager(metadata.hash).get_group(f"{metadata.name[:150]}.json") or {}
    for name, path in group.items():
        if name.endswith(".amdgcn"):
            return Path(path).read_text(encoding="utf-8")
    raise CompileError(f"Triton kept no assembly of {metadata.name}", remedy="delete Triton's cache folder")


def _argument(name: str, kind: Any, value: Any) -> Any:
    """A kernel argument's bytes; None for a constant, which is part of the code.

    Raises:
        EmulationError: a type of argument that is not emulated.
    """
    if kind == "constexpr":
        return None
    if isinstance(kind, str) and kind.startswith("*"):
        return np.uint64(value.data_ptr() if hasattr(value, "data_ptr") else value or 0)
    if kind not in _NUMBERS:
        raise EmulationError(f"{name}: arguments of type {kind} are not emulated")
    return _NUMBERS[kind](value)


def _scratch(metadata: Any, programs: int) -> list[Any]:
    """Global and profile scratch, which Triton appends to the arguments; zeroed."""
    sizes = (metadata.global_scratch_size, metadata.profile_scratch_size)
    return [torch.zeros(size * programs, dtype=torch.uint8) if size else None for size in sizes]


def _buffers(memory: Iterable[tuple[str, int, int]], values: Mapping[str, Any]) -> list[HostBuffer]:
    """The call's tensors, and those that the launcher made; overlapping ones are one buffer."""
    made = [(name, *_span(value)) for name, value in values.items() if isinstance(value, torch.Tensor)]
    known = list(memory)
    known += [entry for entry in made if not any(low <= entry[1] and entry[2] <= high for _, low, high in known)]
    return [HostBuffer(low, high - low, True, name) for name, low, high in _merged(known)]


def _merged(ranges: Iterable[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    found: list[tuple[str, int, int]] = []
    for name, low, high in sorted(ranges, key=lambda entry: entry[1:]):
        if found and low < found[-1][2]:
            last, start, end = found[-1]
            found[-1] = (last if last == name else f"{last}, {name}", start, max(end, high))
        elif high > low:
            found.append((name, low, high))
    return found


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Addresses from the first element to behind the last."""
    first = int(tensor.data_ptr())
    if tensor.numel() == 0:
        return first, first
    steps: Sequence[int] = [(size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)]
    return first, first + (sum(steps) + 1) * tensor.element_size()
