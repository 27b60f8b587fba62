"""An emulated GPU and a compiler for it behind AMD's two libraries, in a folder of their own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.emulate.standin import libraries
from dsv4gen.emulate.standin.compiler import RtcCompiler
from dsv4gen.emulate.standin.gpu import Gpu


@dataclass(frozen=True)
class Machine:
    """What is connected: `folder` holds the libraries, for the search path of whoever loads them."""

    folder: Path
    gpu: Gpu


@contextmanager
def connect(
    target: str, *, compiler: str | None = "auto", order: str = "ascending", extended: bool = True
) -> Iterator[Machine]:
    """Stand-in libraries in a temporary folder, connected until the block ends. Afterwards there is no device.

    Args:
        target: the GPU's architecture.
        compiler: what compiles behind hipRTC: `auto`, `clang` or `zig`; None leaves hipRTC out.
        order: of blocks and waves in launches.
        extended: with the launch call that ROCm 7 has and ROCm 6 lacks.

    Raises:
        UnknownTarget: not the name of one architecture.
        ToolMissing: no compiler for this machine's CPU.
    """
    gpu = Gpu(target, order=order)
    with tempfile.TemporaryDirectory(prefix="dsv4gen-amd-") as name:
        folder = Path(name)
        gpu.connect(libraries.place_driver(folder, extended=extended))
        rtc = RtcCompiler(compiler) if compiler else None
        if rtc is not None:
            rtc.connect(libraries.place_compiler(folder, rtc.version))
        try:
            yield Machine(folder, gpu)
        finally:
            gpu.disconnect()
            if rtc is not None:
                rtc.disconnect()
