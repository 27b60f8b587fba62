"""Every question the runtime asks the machine: devices, streams, graph capture, memory. The rest is pure.

`TorchPlatform` asks torch, which serves CUDA and ROCm under one name. `use` puts another platform in its place:
tests do so, and so does a stand-in driver whose device memory is the memory of this process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from dsv4gen.base.errors import LoadError, UnknownTarget
from dsv4gen.base.target_id import TargetId, from_device, parse

VISIBILITY = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")


@dataclass(frozen=True)
class Device:
    """One GPU as torch numbers it; `target` is None, with `problem` set, when its name is no known spelling."""

    index: int
    name: str
    target: TargetId | None
    problem: str = ""
    units: int = 1

    @property
    def facts(self) -> dict[str, int]:
        """What spec expressions may read of the running device; XCDs, which no API tells, follow from the product."""
        return {"units": self.units, "xcds": 1}

    def __str__(self) -> str:
        return f"device {self.index} ({self.name}, {self.target or self.problem})"


class Platform(Protocol):
    """What the runtime needs to know. Indices are torch's device indices; -1 stands for the host's memory."""

    #: whether tensors of this platform's devices say `is_cuda`
    tensors_are_cuda: bool

    def devices(self) -> tuple[Device, ...]:
        """All visible devices."""

    def current_index(self) -> int:
        """The calling thread's device."""

    def stream_getter(self) -> Callable[[int], int]:
        """A function from device index to the handle of the calling thread's current stream."""

    def index_getter(self) -> Callable[[], int] | None:
        """A fast `current_index`, or None when there is only one device and nothing to ask."""

    def is_capturing(self) -> bool:
        """Whether the current stream records a graph."""

    def on_device(self, index: int) -> AbstractContextManager[Any]:
        """Makes a device current for the calling thread."""

    def why_no_device(self) -> str:
        """A sentence for a user whose machine shows no device."""


class TorchPlatform:
    """The GPUs torch sees; importing torch is left to the first question."""

    tensors_are_cuda = True

    def devices(self) -> tuple[Device, ...]:
        """Visible devices in torch's order, mixed architectures included."""
        torch = _torch()
        if torch is None or not torch.cuda.is_available():
            return ()
        return tuple(_device(torch, index) for index in range(torch.cuda.device_count()))

    def current_index(self) -> int:
        """torch's current device, of a thread that may not have touched a GPU yet."""
        import torch

        return int(torch.cuda.current_device())

    def stream_getter(self) -> Callable[[int], int]:
        """torch's raw stream: building a torch.cuda.Stream per call would cost more than the launch."""
        import torch

        getter: Callable[[int], int] = torch._C._cuda_getCurrentRawStream
        return getter

    def index_getter(self) -> Callable[[], int] | None:
        """torch's own device query."""
        import torch

        if torch.cuda.device_count() == 1:
            return None
        getter: Callable[[], int] = torch._C._cuda_getDevice
        return getter

    def is_capturing(self) -> bool:
        """True inside a torch.cuda.graph block."""
        import torch

        return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()  # type: ignore[no-untyped-call]

    def on_device(self, index: int) -> AbstractContextManager[Any]:
        """torch's device guard; entering it also creates the device's primary context."""
        import torch

        guard: AbstractContextManager[Any] = torch.cuda.device(index)
        return guard

    def why_no_device(self) -> str:
        """Names what hides the devices, as far as that can be seen from here."""
        torch = _torch()
        if torch is None:
            return "torch is not installed"
        if torch.version.hip is None and torch.version.cuda is None:
            return f"torch {torch.__version__} is built without GPU support"
        hidden = [f"{name}={os.environ[name]!r}" for name in VISIBILITY if name in os.environ]
        return "torch sees no GPU" + (f" with {' '.join(hidden)}" if hidden else "")


class HostPlatform:
    """Devices behind a stand-in driver whose device memory is this process's memory: tensors live on the CPU.

    `stream` and `capturing` are what the driver's side would report; change them at will.
    """

    tensors_are_cuda = False

    def __init__(self, target: str, units: int = 1) -> None:
        self.device = Device(-1, "stand-in", parse(target), units=units)
        self.stream = 0
        self.capturing = False

    def devices(self) -> tuple[Device, ...]:
        """The one device; host tensors have index -1."""
        return (self.device,)

    def current_index(self) -> int:
        """The host's index."""
        return self.device.index

    def stream_getter(self) -> Callable[[int], int]:
        """Reports `stream`."""
        return lambda index: self.stream  # noqa: ARG005

    def index_getter(self) -> Callable[[], int] | None:
        """Nothing to ask."""
        return None

    def is_capturing(self) -> bool:
        """Reports `capturing`."""
        return self.capturing

    def on_device(self, index: int) -> AbstractContextManager[Any]:  # noqa: ARG002
        """Nothing to switch."""
        return nullcontext()

    def why_no_device(self) -> str:
        """Never asked: there is a device."""
        return ""


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


def _device(torch: Any, index: int) -> Device:
    properties = torch.cuda.get_device_properties(index)
    name = str(properties.name)
    try:
        architecture = getattr(properties, "gcnArchName", "")
        capability = (int(properties.major), int(properties.minor))
        target = from_device(torch.version.hip, capability, architecture)
        return Device(index, name, target, units=int(properties.multi_processor_count))
    except UnknownTarget as error:
        return Device(index, name, None, error.message)


_current: Platform = TorchPlatform()


def facts(platform: Platform, index: int | None = None) -> dict[str, int]:
    """What spec expressions may read of a device, or of the current one; empty without a device."""
    devices = platform.devices()
    if not devices:
        return {}
    number = platform.current_index() if index is None else index
    return next((device.facts for device in devices if device.index == number), devices[0].facts)


def current() -> Platform:
    """The platform in use."""
    return _current


@contextmanager
def use(platform: Platform) -> Iterator[Platform]:
    """Put another platform in place of torch's; what is loaded inside keeps it."""
    global _current
    previous, _current = _current, platform
    try:
        yield platform
    finally:
        _current = previous


def device_index(device: object) -> int | None:
    """The index a user's `device` argument names, or None for "whichever the tensors are on".

    Raises:
        LoadError: a device that is not a GPU, or an index that is not visible.
    """
    if device is None:
        return None
    kind, number = _split(device)
    if kind not in ("cuda", "hip"):
        raise LoadError(
            f"device {device!s} is not a GPU", remedy='for the torch path on the CPU, load with target="reference"'
        )
    if number is None:
        return _current.current_index() if _current.devices() else 0
    count = len(_current.devices())
    if count and number >= count:
        raise LoadError(f"device {device!s}: only {count} GPU(s) are visible, numbered from 0")
    return number


def _split(device: object) -> tuple[str, int | None]:
    if isinstance(device, int) and not isinstance(device, bool):
        return "cuda", device
    if isinstance(device, str):
        kind, _, number = device.partition(":")
        return kind, int(number) if number.isdigit() else None
    kind, found = getattr(device, "type", str(device)), getattr(device, "index", None)
    return str(kind), found if isinstance(found, int) else None
