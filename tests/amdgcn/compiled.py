"""Compile the test kernels for an AMD target, once per process: assembly text, or a code object."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path

from dsv4gen.emulate.amdgcn import Kernel
from tests.tools import need_tool

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
WAVE64 = TARGETS[:3]
WAVE32 = TARGETS[3:]
KERNELS = Path(__file__).parent / "kernels"


def wave_of(target: str) -> int:
    """Lanes in a hardware wave."""
    return 64 if target in WAVE64 else 32


@functools.cache
def compile_hip(name: str, target: str, *macros: str, output: str = "-S", flags: tuple[str, ...] = ()) -> bytes:
    """Assembly text (`-S`) or a code object (`-c`) of kernels/<name>.hip."""
    clang = need_tool("clang++-22")
    need_tool("ld.lld-22")
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "kernel"
        command = [
            *(clang, "-x", "hip", f"--offload-arch={target}", "--cuda-device-only", "--no-gpu-bundle-output"),
            *("-O3", "-std=c++17", "-nogpuinc", "-nogpulib", "-nostdinc", f"-DWAVE={wave_of(target)}"),
            *(f"-D{macro}" for macro in macros),
            *(output, *flags, str(KERNELS / f"{name}.hip"), "-o", str(result)),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return result.read_bytes()


@functools.cache
def hip_kernel(name: str, symbol: str, target: str, *macros: str) -> Kernel:
    """The emulated kernel, from assembly text with line numbers of the HIP source."""
    text = compile_hip(name, target, *macros, flags=("-gline-tables-only",)).decode()
    return Kernel.from_assembly(text, symbol)
