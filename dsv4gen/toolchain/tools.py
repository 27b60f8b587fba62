"""Every tool the offline steps can use: found or not, its version, what it is for, how to get it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.base.errors import ToolMissing
from dsv4gen.toolchain import cuda, hip, locate, process

_APT_LLVM = "apt-get install --no-install-recommends clang-22 lld-22"
_PIP_TRITON = "pip install 'dsv4gen[runtime]'"
_PIP_TOOLCHAIN = "pip install 'dsv4gen[toolchain]'"


@dataclass(frozen=True)
class Tool:
    """One tool. `found` is its version text, empty when it is missing or unusable; `trouble` says why."""

    name: str
    found: str
    path: Path | None
    used_for: str
    remedy: str
    trouble: str = ""


@dataclass(frozen=True)
class _Entry:
    name: str
    find: Callable[[], Path | None]
    used_for: str
    remedy: str
    version: Callable[[Path], str]


def find_tools() -> tuple[Tool, ...]:
    """All tools in the order in which they are preferred, asked for their versions now.

    A tool that is present and does not answer is reported as missing with its trouble, never raised.
    """
    return tuple(_look_up(entry) for entry in _ENTRIES)


def require(name: str) -> Tool:
    """One tool that must be usable.

    Raises:
        ToolMissing: it is not; the remedy says how to get it.
        KeyError: no tool of that name is known.
    """
    tool = _look_up({entry.name: entry for entry in _ENTRIES}[name])
    if not tool.found:
        raise ToolMissing(tool.trouble or f"{name} is not on this machine", remedy=tool.remedy)
    return tool


def _look_up(entry: _Entry) -> Tool:
    path = entry.find()
    if path is None:
        return Tool(entry.name, "", None, entry.used_for, entry.remedy)
    try:
        return Tool(entry.name, entry.version(path), path, entry.used_for, entry.remedy)
    except ToolMissing as trouble:
        return Tool(entry.name, "", path, entry.used_for, trouble.remedy or entry.remedy, trouble.message)


def _plain_version(path: Path) -> str:
    return locate.version_text([str(path)])


def _zig_version(path: Path) -> str:
    return locate.version_text([str(path), "clang"])


def _clang_version(path: Path) -> str:
    version = hip.usable_clang_version(path)
    if not re.search(r"^\s+amdgcn\s", _output([str(path), "--print-targets"]), re.MULTILINE):
        raise ToolMissing(f"{path.name} ({version}) was built without AMD GPUs", remedy=_APT_LLVM)
    return version


def _objdump_version(path: Path) -> str:
    # Its first line is the name of a company or "LLVM", the second one has the number.
    found = re.search(r"LLVM version \S+", _output([str(path), "--version"]))
    return found[0] if found else _plain_version(path)


def _output(command: Sequence[str]) -> str:
    with process.private_folder("tool") as folder:
        try:
            return process.run(command, folder, timeout_s=60).output
        except OSError as error:
            raise ToolMissing(f"{command[0]} cannot be started: {error.strerror}") from error


def _toolkit_or_triton(name: str) -> Callable[[], Path | None]:
    return lambda: locate.find_program(name) or locate.find_triton_program(name)


_ENTRIES = (
    _Entry(
        "clang++",
        lambda: locate.find_llvm("clang++"),
        "HIP C++ for AMD targets (first choice)",
        _APT_LLVM,
        _clang_version,
    ),
    _Entry("ld.lld", lambda: locate.find_llvm("ld.lld"), "linking for clang++", _APT_LLVM, _plain_version),
    _Entry(
        "ziglang",
        locate.find_zig,
        "HIP C++ without clang++, host C++ without g++",
        _PIP_TOOLCHAIN,
        _zig_version,
    ),
    _Entry(
        "NVRTC",
        locate.find_nvrtc,
        "CUDA C++ for NVIDIA targets (first choice)",
        _PIP_TOOLCHAIN,
        cuda.nvrtc_version,
    ),
    _Entry(
        "nvcc",
        lambda: locate.find_program("nvcc"),
        "CUDA C++ a second time, as a check",
        "install NVIDIA's CUDA toolkit, or pip install nvidia-cuda-nvcc",
        _plain_version,
    ),
    _Entry(
        "g++",
        lambda: locate.find_program("g++"),
        "host C++: SIMT build, emulator; nvcc",
        "apt-get install g++",
        _plain_version,
    ),
    _Entry("ptxas", _toolkit_or_triton("ptxas"), "assembling for Triton and nvcc", _PIP_TRITON, _plain_version),
    _Entry(
        "cuobjdump",
        _toolkit_or_triton("cuobjdump"),
        "a second reading of cubins, as a check",
        _PIP_TRITON,
        _plain_version,
    ),
    _Entry(
        "llvm-objdump",
        lambda: locate.find_llvm("llvm-objdump"),
        "disassembling AMD code objects",
        "apt-get install --no-install-recommends llvm-22",
        _objdump_version,
    ),
)
