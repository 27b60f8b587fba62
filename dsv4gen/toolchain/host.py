"""C++ for this machine's own CPU: one choice of compiler for everyone who writes host code.

Order: g++, clang++ (any version number), then ziglang from pip. Sources keep to C headers or none, because
ziglang is called without a C++ library (building its own takes a minute on first use).
"""

from __future__ import annotations

import hashlib
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.base.errors import ToolMissing, UsageError, raise_all
from dsv4gen.toolchain import diagnostics, locate, process
from dsv4gen.toolchain.store import Store, content_key

BASE_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-shared")
ZIG_FLAGS = ("-nostdlib++", "-nostdinc++", "-fno-sanitize=undefined")
KINDS = ("g++", "clang++", "zig")


@dataclass(frozen=True)
class HostCompiler:
    """A C++ compiler for the CPU: kind (`g++`, `clang++`, `zig`), how to call it, its version text."""

    kind: str
    command: tuple[str, ...]
    version: str

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags this kind always needs for a shared library."""
        return (*BASE_FLAGS, *ZIG_FLAGS) if self.kind == "zig" else BASE_FLAGS


def host_compiler(kind: str | None = None) -> HostCompiler:
    """The compiler of one kind, or the first that this machine has.

    Raises:
        UsageError: an unknown kind.
        ToolMissing: no such compiler here.
    """
    if kind is not None and kind not in KINDS:
        raise UsageError(f"unknown host compiler {kind!r}", remedy=f"one of {', '.join(KINDS)}")
    for candidate in KINDS if kind is None else (kind,):
        command = _command(candidate)
        if command is not None:
            return HostCompiler(candidate, command, locate.version_text(command))
    raise ToolMissing(
        f"no C++ compiler for this machine's CPU: looked for {kind or ', '.join(KINDS)}",
        remedy="apt-get install g++, or pip install ziglang",
    )


def compile_shared(
    source: str,
    flags: Sequence[str] = (),
    *,
    name: str = "host",
    compiler: HostCompiler | None = None,
    source_map: diagnostics.SourceMap | None = None,
    store: Store | None = None,
) -> Path:
    """Compile C++ text into a shared library and return its path, `<name>.so` in the cache.

    The same text, flags and compiler version give the same file without compiling again.

    Args:
        source: one self-contained translation unit.
        flags: added after the base flags (-std=c++17 -O2 -fPIC -shared) and after the source, so `-lm` works.
        name: names the source in messages (`<name>.cpp`) and the library.

    Raises:
        CompileError, Problems: the compiler refused the text, at template lines when `source_map` knows them.
        ToolMissing: no compiler.
        OutputError: no cache folder can be written.
    """
    chosen = compiler or host_compiler()
    kept = store or Store.open("host")
    arguments = (*chosen.flags, f"{name}.cpp", *flags, "-o", f"{name}.so")
    key = content_key((source, *arguments, chosen.kind, chosen.version, _cpu_identity(flags)))
    folder = kept.get(key)
    if folder is None:
        library = _compile(source, arguments, name, chosen, source_map)
        folder = kept.put(key, {f"{name}.so": library, f"{name}.cpp": source.encode()}, described=" ".join(arguments))
    return folder / f"{name}.so"


def _command(kind: str) -> tuple[str, ...] | None:
    if kind == "zig":
        zig = locate.find_zig()
        return None if zig is None else (str(zig), "c++")
    found = locate.find_llvm("clang++") if kind == "clang++" else locate.find_program("g++")
    return None if found is None else (str(found),)


def _compile(
    source: str,
    arguments: tuple[str, ...],
    name: str,
    compiler: HostCompiler,
    source_map: diagnostics.SourceMap | None,
) -> bytes:
    with process.private_folder("host") as folder:
        (folder / f"{name}.cpp").write_text(source, encoding="utf-8")
        outcome = process.run([*compiler.command, *arguments], folder)
        library = folder / f"{name}.so"
        if not outcome.succeeded or not library.is_file():
            what = f"{name}.cpp for this CPU"
            raise_all(diagnostics.compile_errors(outcome, what=what, file=f"{name}.cpp", source_map=source_map))
        return library.read_bytes()


def _cpu_identity(flags: Sequence[str]) -> str:
    """What of this CPU the result depends on: its architecture, and its features under `-m...=native`."""
    if not any(flag.endswith("=native") for flag in flags):
        return platform.machine()
    try:
        listed = re.search(r"^(?:flags|Features)\s*:.*$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        listed = None
    features = listed[0] if listed else platform.processor()
    return f"{platform.machine()} {hashlib.sha256(features.encode()).hexdigest()}"
