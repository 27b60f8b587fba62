"""The two libraries: compiled once for this machine's CPU, then copied for every stand-in GPU.

The loader takes files with one inode for one library, so a copy of its own gives each GPU state of its own.
"""

from __future__ import annotations

import ctypes
import hashlib
import shutil
from pathlib import Path

from dsv4gen.toolchain.host import compile_shared

_SOURCES = Path(__file__).parent


class DriverLaunch(ctypes.Structure):
    """`Launch` of driver.cpp."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("params", ctypes.POINTER(ctypes.c_void_p)),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("extended", ctypes.c_uint32),
    )


LOAD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
FIND = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))
LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(DriverLaunch))
COMPILE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)
)


class DriverDevice(ctypes.Structure):
    """`Device` of driver.cpp."""

    _fields_ = (("load", LOAD), ("find", FIND), ("launch", LAUNCH))


def place_driver(folder: Path, *, extended: bool) -> ctypes.CDLL:
    """Put a HIP runtime into a folder and load it.

    Args:
        extended: with `hipDrvLaunchKernelEx`, which ROCm 7 has and ROCm 6 lacks.

    Raises:
        ToolMissing: no compiler for this CPU.
    """
    flags = ("-DEXTENDED_LAUNCH",) if extended else ()
    return _place("driver", flags, folder / f"libamdhip64.so.{7 if extended else 6}")


def place_compiler(folder: Path, version: str) -> ctypes.CDLL:
    """Put a hipRTC into a folder and load it.

    Args:
        version: identifies what compiles behind it. The file's name depends on it, because caches of compiled code
            tell compilers apart by file name and size.

    Raises:
        ToolMissing: no compiler for this CPU.
    """
    number = int(hashlib.sha256(version.encode()).hexdigest()[:8], 16)
    return _place("compiler", (), folder / f"libhiprtc.so.7.0.{number}")


def _place(source: str, flags: tuple[str, ...], path: Path) -> ctypes.CDLL:
    text = (_SOURCES / f"{source}.cpp").read_text(encoding="utf-8")
    shutil.copyfile(compile_shared(text, flags, name=f"standin_{source}"), path)
    return ctypes.CDLL(str(path))
