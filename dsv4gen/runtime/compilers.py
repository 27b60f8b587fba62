"""NVRTC and hipRTC through ctypes: one source text in, one code object out. No toolkit, no headers, no files.

Both libraries have the same calls under two names; a small table holds the difference. The call releases
Python's lock, so several kernels compile at the same time.
"""

from __future__ import annotations

import ctypes
import functools
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from dsv4gen.base.errors import CompileError, ToolMissing
from dsv4gen.runtime import libraries, sources

_log = logging.getLogger("dsv4gen")


class Dialect(NamedTuple):
    """How one vendor spells the calls and options."""

    kind: libraries.Kind
    prefix: str
    code: str
    architecture: str
    options: tuple[str, ...]


DIALECTS = {
    "cuda": Dialect(libraries.NVRTC, "nvrtc", "CUBIN", "--gpu-architecture=", ("--std=c++17",)),
    "hip": Dialect(libraries.HIPRTC, "hiprtc", "Code", "--offload-arch=", ("-std=c++17", "-O3")),
}


def options(api: str, arch: str) -> tuple[str, ...]:
    """The compiler options of one architecture."""
    dialect = DIALECTS[api]
    return (f"{dialect.architecture}{arch}", *dialect.options)


def candidates(api: str, newest_major: int | None = None) -> tuple[libraries.Found, ...]:
    """Compiler libraries that may be tried. A CUDA driver loads no code of a newer major version than its own."""
    found = libraries.find(DIALECTS[api].kind)
    if api != "cuda" or newest_major is None:
        return found
    return tuple(entry for entry in found if entry.major <= newest_major)


def identity(api: str, newest_major: int | None = None) -> str:
    """Which compiler a compile would use, told without loading it; empty when none is installed as a file."""
    found = [entry for entry in candidates(api, newest_major) if Path(entry.name).is_file()]
    return found[0].identity if found else ""


class Compiler:
    """One loaded compiler library."""

    def __init__(self, dialect: Dialect, library: ctypes.CDLL, found: libraries.Found) -> None:
        self._dialect = dialect
        self._library = library
        self._error_string = self._function("GetErrorString")
        self._error_string.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("Version", ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{dialect.kind.name} {major.value}.{minor.value}"
        self.identity = found.identity if Path(found.name).is_file() else self.version

    def compile(self, source: sources.Slice, arch: str, what: str, folder: Path) -> bytes:
        """The code object for one architecture.

        Raises:
            CompileError: the source or the architecture was refused; placed at the template line.
        """
        words = options("cuda" if self._dialect.prefix == "nvrtc" else "hip", arch)
        texts = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        with self._program(source) as program:
            status = self._function("CompileProgram")(program, ctypes.c_int(len(words)), texts)
            log = self._content("GetProgramLogSize", "GetProgramLog", program).rstrip(b"\0").decode("utf-8", "replace")
            if status != 0:
                raise self._refusal(source, status, log, f"{what}, {self.version}, {' '.join(words)}", folder)
            return self._content(f"Get{self._dialect.code}Size", f"Get{self._dialect.code}", program)

    @contextmanager
    def _program(self, source: sources.Slice) -> Iterator[ctypes.c_void_p]:
        program = ctypes.c_void_p()
        text, name = source.text.encode(), source.name.encode()
        self._call("CreateProgram", ctypes.byref(program), text, name, ctypes.c_int(0), None, None)
        try:
            yield program
        finally:
            self._call("DestroyProgram", ctypes.byref(program))

    def _refusal(self, source: sources.Slice, status: int, log: str, what: str, folder: Path) -> CompileError:
        if log.strip():
            return sources.compile_error(source, log, what, folder)
        return CompileError(
            f"{what}: {self._error_text(status)}", remedy=f"a newer {self._dialect.kind.name} may know it"
        )

    def _content(self, size_function: str, function: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(size_function, program, ctypes.byref(size))
        content = ctypes.create_string_buffer(size.value)
        self._call(function, program, content)
        return content.raw

    def _call(self, name: str, *arguments: object) -> None:
        status = self._function(name)(*arguments)
        if status != 0:
            raise CompileError(f"{self._dialect.prefix}{name}: {self._error_text(status)}")

    def _error_text(self, status: int) -> str:
        return (self._error_string(ctypes.c_int(status)) or b"unknown error").decode("utf-8", "replace")

    def _function(self, name: str) -> ctypes._NamedFuncPointer:
        try:
            return getattr(self._library, f"{self._dialect.prefix}{name}")  # type: ignore[no-any-return]
        except AttributeError:
            raise ToolMissing(f"{self._dialect.kind.name} lacks {self._dialect.prefix}{name}") from None


@functools.lru_cache(maxsize=4)
def _open(api: str, found: tuple[libraries.Found, ...]) -> Compiler:
    dialect = DIALECTS[api]
    library, chosen = libraries.open_first(dialect.kind, found)
    compiler = Compiler(dialect, library, chosen)
    _log.info("compiling with %s from %s", compiler.version, chosen.name)
    return compiler


def open_compiler(api: str, newest_major: int | None = None) -> Compiler:
    """The compiler for one API.

    Raises:
        ToolMissing: none can be loaded, or all are too new for the driver.
    """
    every, fitting = candidates(api), candidates(api, newest_major)
    too_new = [entry for entry in every if entry not in fitting and Path(entry.name).is_file()]
    try:
        return _open(api, fitting)
    except ToolMissing as error:
        if too_new:
            names = ", ".join(Path(entry.name).name for entry in too_new)
            raise ToolMissing(
                f"{error.message}\n  left out: {names}, newer than the driver (CUDA {newest_major})",
                remedy=f"install NVRTC of CUDA {newest_major}, or update the driver",
            ) from error
        raise
