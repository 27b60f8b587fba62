"""Compile one CUDA source to a cubin with NVRTC, as a program of its own because the library may crash.

    python -m dsv4gen.toolchain.nvrtc_worker LIBRARY SOURCE OUTPUT [NVRTC OPTION ...]
    python -m dsv4gen.toolchain.nvrtc_worker LIBRARY --version

Prints NVRTC's log, which holds the assembler's figures under `--ptxas-options=-v`. Exit status 0 or 1. Needs
no driver and no GPU.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path


class Nvrtc:
    """The few functions of NVRTC that are needed, with their C signatures."""

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library)
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def version(self) -> tuple[int, int]:
        """Major and minor version of the library."""
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        return major.value, minor.value

    def compile(self, source: bytes, name: str, options: Sequence[str]) -> tuple[bytes | None, str]:
        """The cubin, None when the source was refused, and the log.

        Raises:
            RuntimeError: the library failed otherwise.
        """
        program = ctypes.c_void_p()
        self._call("nvrtcCreateProgram", ctypes.byref(program), source, name.encode(), ctypes.c_int(0), None, None)
        texts = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        status = self._library.nvrtcCompileProgram(program, ctypes.c_int(len(options)), texts)
        log = self._content("nvrtcGetProgramLog", program).rstrip(b"\0").decode("utf-8", "replace")
        if status != 0:
            return None, f"{log}\nNVRTC: {self._error_text(status)}"
        return self._content("nvrtcGetCUBIN", program), log

    def _content(self, function: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"{function}Size", program, ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        self._call(function, program, content)
        return content.raw

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        if status != 0:
            raise RuntimeError(f"{function}: {self._error_text(status)}")

    def _error_text(self, status: int) -> str:
        return (self._library.nvrtcGetErrorString(status) or b"unknown error").decode()


def main(arguments: Sequence[str]) -> int:
    """Run the command line in the module's docstring; returns the exit status."""
    library, source, *rest = arguments
    nvrtc = Nvrtc(library)
    if source == "--version":
        print("NVRTC {}.{}".format(*nvrtc.version()))
        return 0
    output, *options = rest
    cubin, log = nvrtc.compile(Path(source).read_bytes(), source, options)
    print(log)
    if cubin is None:
        return 1
    Path(output).write_bytes(cubin)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (OSError, RuntimeError) as failure:
        print(f"nvrtc: error: {failure}")
        sys.exit(1)
