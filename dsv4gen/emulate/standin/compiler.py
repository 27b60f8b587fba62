"""The compiler behind the stand-in hipRTC: clang, or the clang inside ziglang.

Line tables are added to what the caller asks for. They change no instruction, and with them the emulator names the
source line of what goes wrong.
"""

from __future__ import annotations

import ctypes
import traceback
from pathlib import Path
from typing import Any

from dsv4gen.base.errors import CompileError, DsvError, Problems, ToolMissing
from dsv4gen.emulate.standin import images, libraries
from dsv4gen.emulate.standin.status import RTC_COMPILATION, RTC_INTERNAL_ERROR, RTC_INVALID_OPTION, RTC_SUCCESS
from dsv4gen.toolchain.code import Built, Job
from dsv4gen.toolchain.compile import LINE_TABLES
from dsv4gen.toolchain.hip import hip_compiler

ARCHITECTURE_OPTIONS = ("--offload-arch=", "--gpu-architecture=")
_LDS_BYTES = 64 * 1024


class RtcCompiler:
    """Compiles the programs of one hipRTC; `kind` is a word of the toolchain: `auto`, `clang` or `zig`."""

    def __init__(self, kind: str = "auto") -> None:
        self.kind = kind
        self._library: ctypes.CDLL | None = None
        # ctypes does not keep what C calls back alive.
        self._callback = libraries.COMPILE(self._compile)

    @property
    def version(self) -> str:
        """The compiler's version text, empty while there is none."""
        try:
            return hip_compiler(self.kind).version
        except ToolMissing:
            return ""

    def connect(self, library: ctypes.CDLL) -> None:
        """Be the compiler of a stand-in hipRTC."""
        self._library = library
        library.standin_connect(self._callback)

    def disconnect(self) -> None:
        """Leave hipRTC without a compiler."""
        if self._library is not None:
            self._library.standin_connect(libraries.COMPILE())

    def _compile(self, program: int, source: bytes, name: bytes, count: int, options: Any) -> int:
        try:
            words = [options[index].decode() for index in range(count)]
            architecture = _architecture(words)
            if architecture is None:
                return self._result(program, b"", "no --offload-arch option", RTC_INVALID_OPTION)
            flags = tuple(word for word in words if not word.startswith(ARCHITECTURE_OPTIONS))
            built = self._build(source.decode(), Path(name.decode()).name, architecture, flags)
            return self._result(program, built.binary, built.log, RTC_SUCCESS)
        except DsvError as error:
            return self._result(program, b"", _log(error), RTC_COMPILATION)
        except Exception:
            return self._result(program, b"", traceback.format_exc(), RTC_INTERNAL_ERROR)

    def _build(self, text: str, file: str, architecture: str, flags: tuple[str, ...]) -> Built:
        job = Job(
            text=text,
            file=file,
            architecture=architecture,
            what=f"{file} for {architecture}",
            static_shared_limit=_LDS_BYTES,
            flags=(*flags, LINE_TABLES),
        )
        built = hip_compiler(self.kind).build(job)
        if built.assembly is not None:
            images.keep_assembly(built.binary, built.assembly)
        return built

    def _result(self, program: int, code: bytes, log: str, status: int) -> int:
        if self._library is not None:
            self._library.standin_result(ctypes.c_void_p(program), code, ctypes.c_size_t(len(code)), log.encode())
        return status


def _architecture(words: list[str]) -> str | None:
    for word in words:
        for option in ARCHITECTURE_OPTIONS:
            if word.startswith(option):
                return word.removeprefix(option)
    return None


def _log(error: DsvError) -> str:
    """Errors as clang prints them, `file:line:column: error: text`."""
    errors = error.errors if isinstance(error, Problems) else (error,)
    return "\n".join(f"{one.place}: error: {one.message}" if _placed(one) else str(one) for one in errors) + "\n"


def _placed(error: DsvError) -> bool:
    return isinstance(error, CompileError) and error.place is not None
