"""Shared libraries of the vendors, found where torch's wheels, pip packages, toolkits and the system keep them.

A finder only looks at names. Nothing is loaded before `open_first`, and nothing at all is required: a machine
with prebuilt code objects needs no compiler, and one that only explains needs no driver.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from dsv4gen.base.errors import ToolMissing


class Kind(NamedTuple):
    """One library: how its file is named, and the plain names the system's loader may know."""

    name: str
    pattern: re.Pattern[str]
    plain: tuple[str, ...]
    remedy: str


_NVRTC_REMEDY = "pip install nvidia-cuda-nvrtc (for CUDA 12: nvidia-cuda-nvrtc-cu12), or ship prebuilt code objects"
_HIPRTC_REMEDY = "install a ROCm build of torch or ROCm's hiprtc, or ship prebuilt code objects"
NVRTC = Kind(
    "NVRTC",
    re.compile(r"libnvrtc(?:-[0-9a-f]+)?\.so\.(\d+)[.\d]*"),
    ("libnvrtc.so.13", "libnvrtc.so.12"),
    _NVRTC_REMEDY,
)
HIPRTC = Kind(
    "hipRTC", re.compile(r"libhiprtc\.so(?:\.(\d+)[.\d]*)?"), ("libhiprtc.so.7", "libhiprtc.so"), _HIPRTC_REMEDY
)
CUDA = Kind(
    "the CUDA driver", re.compile(r"libcuda\.so(?:\.(\d+))?"), ("libcuda.so.1", "libcuda.so"), "install NVIDIA's driver"
)
HIP = Kind(
    "the HIP runtime",
    re.compile(r"libamdhip64\.so(?:\.(\d+)[.\d]*)?"),
    ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"),
    "install a ROCm build of torch, or ROCm",
)


class Found(NamedTuple):
    """A library by path, or by the plain name the system's loader resolves; major version 0 when unknown."""

    name: str
    major: int

    @property
    def identity(self) -> str:
        """File name and size: the same for one build of a library wherever it is installed."""
        path = Path(self.name)
        size = path.stat().st_size if path.is_file() else 0
        return f"{path.name} {size}"


def find(kind: Kind) -> tuple[Found, ...]:
    """Candidates in the order to try: torch's own first, because that is what runs in this process anyway."""
    found = [entry for folder in _folders(kind) for entry in _in_folder(kind, folder)]
    return tuple(dict.fromkeys((*found, *(Found(name, _major(kind, name)) for name in kind.plain))))


def present(kind: Kind) -> tuple[Found, ...]:
    """Candidates that are files; the loader's plain names are left out because only loading would tell."""
    return tuple(found for found in find(kind) if Path(found.name).is_file())


def open_first(kind: Kind, candidates: Iterable[Found]) -> tuple[ctypes.CDLL, Found]:
    """The first candidate that loads.

    Raises:
        ToolMissing: none does; lists each with the loader's reason.
    """
    reasons = []
    for found in candidates:
        try:
            return ctypes.CDLL(found.name), found
        except OSError as error:
            reasons.append(f"{found.name}: {error}")
    tried = "".join(f"\n  {reason}" for reason in reasons)
    raise ToolMissing(f"{kind.name} cannot be loaded on this machine; tried:{tried or ' nothing'}", remedy=kind.remedy)


def _folders(kind: Kind) -> Iterator[Path]:
    yield from _package_folders(kind)
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":"):
        if folder:
            yield Path(folder)
    variables = ("ROCM_PATH", "HIP_PATH") if kind in (HIP, HIPRTC) else ("CUDA_HOME", "CUDA_PATH")
    for variable in variables:
        if os.environ.get(variable):
            root = Path(os.environ[variable])
            yield from (root / "lib", root / "lib64", root / "targets" / "x86_64-linux" / "lib")
    usual = "/opt/rocm" if kind in (HIP, HIPRTC) else "/usr/local/cuda"
    yield from (Path(usual) / "lib", Path(usual) / "lib64")


def _package_folders(kind: Kind) -> Iterator[Path]:
    """Folders inside site-packages; a driver never comes from a pip package of NVIDIA's."""
    if kind is CUDA:
        return
    for package in _locations("torch"):
        yield package / "lib"
    if kind is NVRTC:
        for package in _locations("nvidia"):
            yield from sorted(package.glob("*/lib"), reverse=True)


def _locations(package: str) -> Iterator[Path]:
    loaded = sys.modules.get(package)
    if loaded is not None and getattr(loaded, "__path__", None):
        yield from (Path(entry) for entry in loaded.__path__)
        return
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return
    for entry in (spec.submodule_search_locations or ()) if spec else ():
        yield Path(entry)


def _in_folder(kind: Kind, folder: Path) -> list[Found]:
    """Matching files of one folder, newest major version first."""
    try:
        names = [entry.name for entry in folder.iterdir() if kind.pattern.fullmatch(entry.name)]
    except OSError:
        return []
    ordered = sorted(names, key=lambda name: (-_major(kind, name), len(name), name))
    return [Found(str(folder / name), _major(kind, name)) for name in ordered]


def _major(kind: Kind, name: str) -> int:
    match = kind.pattern.fullmatch(Path(name).name)
    return int(match[1]) if match and match[1] else 0
