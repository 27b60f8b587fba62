"""Stand-in vendor libraries built by gcc: a recording driver, and a compiler that copies its source."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from dsv4gen.runtime import compilers, driver_backend, libraries
from dsv4gen.runtime.driver import Driver
from tests.tools import need_tool

_HERE = Path(__file__).parent
_FLAGS = ("-O1", "-shared", "-fPIC")
#: file name -> (source, macros)
BUILDS = {
    "libcuda.so.1": ("stub_driver.c", ()),
    "libamdhip64.so.7": ("stub_driver.c", ("-DHIP", "-DEXTENDED")),
    "libamdhip64.so.6": ("stub_driver.c", ("-DHIP",)),
    "libnvrtc.so.13": ("stub_compiler.c", ()),
    "libnvrtc.so.12": ("stub_compiler.c", ()),
    "libhiprtc.so.7": ("stub_compiler.c", ("-DHIP",)),
}


class Launch(ctypes.Structure):
    """One recorded launch, as in stub_driver.c."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("attribute_count", ctypes.c_uint),
        ("extended", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("function", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("attribute_ids", ctypes.c_uint * 4),
        ("attribute_values", (ctypes.c_ubyte * 64) * 4),
        ("params", ctypes.c_ubyte * 512),
    )

    @property
    def attributes(self) -> dict[int, bytes]:
        """Attribute id -> its 64 bytes."""
        return {int(self.attribute_ids[i]): bytes(self.attribute_values[i]) for i in range(int(self.attribute_count))}


@dataclass
class StubDriver:
    """The recording driver: what was launched, and switches for what should fail."""

    library: ctypes.CDLL
    driver: Driver

    def reset(self) -> None:
        """Forget launches and planted failures; the calling thread loses its context."""
        self.library.stub_reset()

    def set(self, name: str, value: int) -> None:
        """Plant a status or a fact, see stub_driver.c."""
        self.library.stub_set(name.encode(), value)

    def count(self, what: str) -> int:
        """`launches`, `modules` or `functions` so far."""
        return int(self.library.stub_count(what.encode()))

    def launches(self) -> list[Launch]:
        """Everything recorded."""
        self.library.stub_launch.restype = ctypes.POINTER(Launch)
        return [self.library.stub_launch(index).contents for index in range(self.count("launches"))]

    def symbol(self, launch: Launch) -> str:
        """The kernel's name."""
        self.library.stub_function_name.restype = ctypes.c_char_p
        name: bytes = self.library.stub_function_name(ctypes.c_void_p(launch.function))
        return name.decode()

    def granted(self, launch: Launch) -> tuple[int, int]:
        """Dynamic shared memory and non-portable clusters the kernel was allowed."""
        function = ctypes.c_void_p(launch.function)
        return self.library.stub_function_shared(function), self.library.stub_function_clusters(function)


def build_library(folder: Path, name: str) -> Path:
    """Compile one stand-in into a folder."""
    source, macros = BUILDS[name]
    path = folder / name
    if not path.exists():
        command = [need_tool("gcc"), *_FLAGS, *macros, "-o", str(path), str(_HERE / source)]
        subprocess.run(command, check=True)
    return path


def found(path: Path) -> libraries.Found:
    """A library file as the runtime's finder reports it."""
    major = path.name.rsplit(".", 1)[-1]
    return libraries.Found(str(path), int(major) if major.isdigit() else 0)


def place(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    """Let the finder see these libraries and no others."""
    everything = [found(path) for path in paths]

    def find(kind: libraries.Kind) -> tuple[libraries.Found, ...]:
        return tuple(entry for entry in everything if kind.pattern.fullmatch(Path(entry.name).name))

    monkeypatch.setattr(libraries, "find", find)
    compilers._open.cache_clear()
    driver_backend.shared_driver.cache_clear()


def open_stub(path: Path, api: str) -> StubDriver:
    """Load a stand-in driver."""
    library = ctypes.CDLL(str(path))
    library.stub_reset()
    return StubDriver(library, Driver(api, library))


Builder = Callable[[str], Path]
