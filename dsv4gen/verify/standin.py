"""Run the real runtime on an AMD GPU that is not there: `load` and calls, with the tensors on the CPU.

    with amd("gfx950") as here:
        topk = dsv4gen.load("topk")
        out = topk(scores, seq_lens, page_table, page_bits=6, k=512)
        print(here.gpu.launches[-1].grid, here.gpu.launches[-1].result.counters)

Everything is the runtime's own: manifests, selection, argument checks, hipRTC, cache, module, packed launch. Only the
two libraries are stand-ins (`dsv4gen.emulate.standin`). This proves calls and results; it measures no time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.base.errors import DriverError
from dsv4gen.emulate import standin
from dsv4gen.runtime import driver_backend, libraries, platform
from dsv4gen.runtime.platform import HostPlatform
from dsv4gen.verify.standin_lines import describer

_SEARCH_PATH = "LD_LIBRARY_PATH"


@dataclass(frozen=True)
class Amd:
    """The stand-in in use: `gpu` has modules and launches, `platform` the stream and whether a graph is captured."""

    gpu: standin.Gpu
    platform: HostPlatform


@contextmanager
def amd(
    target: str = "gfx950",
    *,
    compiler: str | None = "auto",
    order: str = "ascending",
    extended: bool = True,
    units: int = 1,
) -> Iterator[Amd]:
    """An emulated GPU as this process's only device. What is loaded inside works only inside.

    Args:
        target: the GPU's architecture.
        compiler: behind hipRTC: `auto`, `clang` or `zig`; None leaves hipRTC out.
        order: of blocks and waves in launches.
        extended: with the launch call that ROCm 7 has and ROCm 6 lacks.
        units: compute units that the device reports.

    Raises:
        UnknownTarget: not the name of one architecture.
        ToolMissing: no compiler for this machine's CPU.
        DriverError: this machine has a HIP runtime of its own that the runtime would take instead.
    """
    here = HostPlatform(target, units)
    with (
        standin.connect(target, compiler=compiler, order=order, extended=extended) as machine,
        _on_search_path(machine.folder),
        platform.use(here),
    ):
        _require_first(machine.folder)
        machine.gpu.describe = describer(target)
        driver_backend.shared_driver.cache_clear()
        try:
            yield Amd(machine.gpu, here)
        finally:
            driver_backend.shared_driver.cache_clear()


@contextmanager
def _on_search_path(folder: Path) -> Iterator[None]:
    before = os.environ.get(_SEARCH_PATH)
    os.environ[_SEARCH_PATH] = ":".join([str(folder), *([before] if before else [])])
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SEARCH_PATH]
        else:
            os.environ[_SEARCH_PATH] = before


def _require_first(folder: Path) -> None:
    found = libraries.find(libraries.HIP)[0].name
    if Path(found).parent != folder:
        raise DriverError(f"the stand-in would not be used: {found} comes first", remedy="use a torch without ROCm")
