"""What the numbers belong to: the card, versions, and the rates that floors are computed with, measured now."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from dsv4gen import __version__
from dsv4gen.base.errors import DsvError, LoadError
from dsv4gen.bench.stopwatch import Stopwatch
from dsv4gen.runtime import platform

_GIB = 1 << 30
_MATRIX = 8192


@dataclass(frozen=True)
class Rates:
    """Bytes and matrix operations a second that this card reaches, and what a tiny kernel in a chain takes.

    Attributes:
        bytes_per_s: the faster of reading and copying 1 GiB.
        flops_per_s: of a bfloat16 product of 8192 x 8192 matrices.
        empty_us: a torch kernel on one element, in a graph.
    """

    bytes_per_s: float
    flops_per_s: float
    empty_us: float

    def floor_us(self, moved: int, flops: int) -> float:
        """Microseconds that no implementation undercuts by much."""
        return max(moved / self.bytes_per_s, flops / self.flops_per_s) * 1e6


def card(index: int) -> platform.Device:
    """The device that is timed.

    Raises:
        LoadError: there is none.
    """
    here = platform.current()
    for device in here.devices():
        if device.index == index:
            return device
    raise LoadError(
        f"no GPU number {index} to time on: {here.why_no_device() or 'it is not visible'}",
        remedy="run on a machine with a card; without one, `dsv4gen emulate` counts and `dsv4gen tune` ranks by counts",
    )


def describe(index: int) -> dict[str, str]:
    """The card and the versions of everything that compiles or launches."""
    import torch

    device = card(index)
    found = {
        "device": device.name,
        "target": str(device.target or device.problem),
        "units": str(device.units),
        "dsv4gen": __version__,
        "torch": torch.__version__,
        "python": sys.version.split()[0],
        **_installed("triton"),
    }
    try:
        from dsv4gen.runtime import compilers, driver_backend

        api = "cuda" if torch.version.hip is None else "hip"
        driver = driver_backend.shared_driver(api)
        found["driver"] = ".".join(map(str, driver.version))
        found["compiler"] = compilers.open_compiler(api, driver.version[0]).version
    except DsvError as error:
        found["compiler"] = f"none: {error.message}"
    return found


def rates(stopwatch: Stopwatch, device: str) -> Rates:
    """Measure the card's rates; a fraction of a second."""
    import torch

    buffers = [torch.ones(_GIB // 4, device=device) for _ in range(2)]
    read = _GIB / stopwatch.eager([buffers[0].amax]).us
    copied = 2 * _GIB / stopwatch.eager([lambda: buffers[1].copy_(buffers[0])]).us
    buffers.clear()
    left, right = (torch.randn(_MATRIX, _MATRIX, device=device, dtype=torch.bfloat16) for _ in range(2))
    product = 2 * _MATRIX**3 / stopwatch.eager([lambda: left @ right]).us
    little: Any = torch.zeros(1, device=device)
    return Rates(max(read, copied) * 1e6, product * 1e6, stopwatch.chained([lambda: little.add_(0)]).us)


def _installed(name: str) -> dict[str, str]:
    try:
        return {name: version(name)}
    except PackageNotFoundError:
        return {}
