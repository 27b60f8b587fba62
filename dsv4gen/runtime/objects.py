"""From a kernel's symbol to its machine code: prebuilt beside the sources, else cached, else compiled now."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import NamedTuple

from dsv4gen.base import env
from dsv4gen.base.errors import CompileError, LoadError
from dsv4gen.base.manifest import digest_bytes
from dsv4gen.base.prebuilt import SUFFIX, binary_name, read_record
from dsv4gen.runtime import compilers, sources
from dsv4gen.runtime.cache import Cache, Key

_log = logging.getLogger("dsv4gen")
#: ELF machine numbers: what a code object must be before it is kept or loaded
_MACHINES = {"cuda": 190, "hip": 224}


class CodeObject(NamedTuple):
    """Machine code and where it came from: `prebuilt`, `cache` or `compiled`, after how many seconds."""

    binary: bytes
    origin: str
    seconds: float

    @property
    def digest(self) -> str:
        """SHA-256 of the code."""
        return digest_bytes(self.binary)


class KernelSource(NamedTuple):
    """One family's source text for one architecture, and the ways to its machine code.

    `ahead` is False where the text has other choices than the file, so that nothing prebuilt can be its machine code.
    """

    family: str
    folder: Path
    name: str
    text: str
    digest: str
    api: str
    arch: str
    cache: Cache
    newest_major: int | None = None
    ahead: bool = True

    def get(self, symbol: str) -> CodeObject:
        """The code object that holds a kernel.

        Raises:
            CompileError: the compiler refused the source, or made something that is no code object.
            ToolMissing: nothing prebuilt, nothing cached, and no compiler.
            LoadError: the same with DSV4GEN_NO_COMPILE set.
        """
        started = time.perf_counter()
        binary = self._prebuilt(symbol)
        if binary is not None:
            return CodeObject(binary, "prebuilt", time.perf_counter() - started)
        binary = self._cached(symbol)
        if binary is not None:
            return CodeObject(binary, "cache", time.perf_counter() - started)
        if env.flag(env.NO_COMPILE):
            raise LoadError(
                f"{symbol}: no prebuilt code object for {self.arch} and none in the cache, "
                f"and {env.NO_COMPILE.name} forbids to compile",
                remedy="run: dsv4gen build --compile, or unset the variable",
            )
        with self.cache.lock(self._key(symbol)):
            binary, origin = self._cached(symbol), "cache"
            if binary is None:
                binary, origin = self._compile(symbol), "compiled"
        return CodeObject(binary, origin, time.perf_counter() - started)

    def _key(self, symbol: str) -> Key:
        text = sources.slice_source(self.name, self.text, [symbol]).text
        return Key(text, symbol, compilers.options(self.api, self.arch))

    def _cached(self, symbol: str) -> bytes | None:
        compiler = "" if env.flag(env.NO_COMPILE) else compilers.identity(self.api, self.newest_major)
        found = self.cache.get(self._key(symbol), compiler, SUFFIX[self.api])
        return found if found is not None and not self._defect(found, symbol) else None

    def _prebuilt(self, symbol: str) -> bytes | None:
        path = self.folder / binary_name(self.family, self.arch, self.api)
        if not self.ahead or not path.is_file():
            return None
        try:
            binary = path.read_bytes()
        except OSError as error:
            _log.warning("cannot read %s: %s", path, error)
            return None
        problem = self._prebuilt_problem(binary, symbol)
        if problem:
            _log.warning("%s is not used: %s; run: dsv4gen build --compile", path, problem)
            return None
        return binary

    def _prebuilt_problem(self, binary: bytes, symbol: str) -> str:
        record = read_record(self.folder, self.family, self.arch)
        if record is None:
            return "its record is missing or unreadable"
        if record.source != self.digest:
            return "it was compiled from another source"
        if record.binary != digest_bytes(binary):
            return "it does not match its record"
        return self._defect(binary, symbol)

    def _compile(self, symbol: str) -> bytes:
        compiler = compilers.open_compiler(self.api, self.newest_major)
        source = sources.slice_source(self.name, self.text, [symbol])
        what = f"{symbol} for {self.arch}"
        started = time.perf_counter()
        binary = compiler.compile(source, self.arch, what, self.folder)
        _log.info("compiled %s in %.2f s with %s", what, time.perf_counter() - started, compiler.version)
        defect = self._defect(binary, symbol)
        if defect:
            raise CompileError(f"{compiler.version} made a bad code object: {defect} [{what}]")
        described = {"family": self.family, "symbol": symbol, "arch": self.arch, "compiler": compiler.version}
        self.cache.put(self._key(symbol), compiler.identity, SUFFIX[self.api], binary, described)
        return binary

    def _defect(self, binary: bytes, symbol: str) -> str:
        """What is wrong with a code object, as far as its header and names tell."""
        if binary[:4] != b"\x7fELF":
            return f"{len(binary)} bytes that are no ELF file"
        machine = int.from_bytes(binary[18:20], "little")
        if machine != _MACHINES[self.api]:
            return f"ELF machine {machine} instead of {_MACHINES[self.api]}"
        return "" if symbol.encode() in binary else f"no kernel {symbol} inside"
