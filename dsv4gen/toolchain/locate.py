"""Where compilers and libraries are on this machine: search path, Python packages, CUDA toolkits.

Finders only look at names; nothing is started or loaded, except by `version_text`.
"""

from __future__ import annotations

import ctypes.util
import functools
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from dsv4gen.base.errors import ToolMissing
from dsv4gen.toolchain import process

LLVM_VERSIONS = tuple(range(30, 14, -1))
_NVRTC_NAME = re.compile(r"libnvrtc\.so\.(\d+)(?:[.\d]*)")


def find_program(name: str) -> Path | None:
    """A program on the search path, or None."""
    found = shutil.which(name)
    return Path(found) if found else None


def find_llvm(program: str) -> Path | None:
    """The newest `<program>-NN` on the search path (Debian's names), else plain `<program>`."""
    for name in (*(f"{program}-{number}" for number in LLVM_VERSIONS), program):
        found = find_program(name)
        if found:
            return found
    return None


def find_zig() -> Path | None:
    """The zig program of the `ziglang` package, or None.

    It is called directly, as `python -m ziglang` would do, which saves starting Python for every step.
    """
    for folder in _package_folders("ziglang"):
        program = folder / "zig"
        if program.is_file():
            return program
    return None


def find_triton_program(name: str) -> Path | None:
    """One of the NVIDIA programs (`cuobjdump`, `ptxas`, ...) that come with Triton, or None."""
    for folder in _package_folders("triton"):
        program = folder / "backends" / "nvidia" / "bin" / name
        if program.is_file():
            return program
    return None


def find_nvrtc() -> Path | None:
    """NVRTC's shared library: from pip packages, from torch, a CUDA toolkit or the system; or None."""
    for folder in _nvrtc_folders():
        found = _newest_nvrtc(folder)
        if found:
            return found
    system = ctypes.util.find_library("nvrtc")
    return Path(system) if system else None


def version_text(command: Sequence[str]) -> str:
    """The line of `--version` that identifies a tool, wherever it is installed.

    Raises:
        ToolMissing: the program cannot be started or does not know `--version`.
    """
    return _version_text(tuple(command))


@functools.lru_cache(maxsize=64)
def _version_text(command: tuple[str, ...]) -> str:
    with process.private_folder("version") as folder:
        try:
            outcome = process.run(
                [*command, "--version"], folder, timeout_s=60, variables=process.own_package_variables()
            )
        except OSError as error:
            raise ToolMissing(f"{command[0]} cannot be started: {error.strerror}") from error
    if not outcome.succeeded:
        remedy = "reinstall it or choose another compiler"
        raise ToolMissing(f"{outcome.shown_command}: {outcome.reason}", remedy=remedy)
    lines = [line.strip() for line in outcome.output.splitlines() if line.strip()]
    # NVIDIA's tools print their name and a copyright first.
    telling = [line for line in lines if line.startswith("Cuda compilation tools")]
    return (telling or lines or [""])[0]


def _package_folders(name: str) -> Iterator[Path]:
    spec = find_spec(name)
    if spec is not None:
        yield from (Path(folder) for folder in spec.submodule_search_locations or ())


def _nvrtc_folders() -> Iterator[Path]:
    for packages in _package_folders("nvidia"):
        yield from sorted(packages.glob("*/lib"), reverse=True)
    yield from (folder / "lib" for folder in _package_folders("torch"))
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(variable):
            yield Path(os.environ[variable]) / "lib64"
    nvcc = find_program("nvcc")
    if nvcc:
        yield nvcc.resolve().parent.parent / "lib64"


def _newest_nvrtc(folder: Path) -> Path | None:
    named = ((_NVRTC_NAME.fullmatch(path.name), path) for path in sorted(folder.glob("libnvrtc.so.*")))
    found = [(int(match[1]), path) for match, path in named if match]
    return max(found)[1] if found else None
