"""The instruction library: tables translated to C++, compiled once per group and cached by content.

A group is one shared object with the functions of related tables. A kernel needs the groups of its instructions
only; nothing is compiled per kernel.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.base.errors import EmulationError
from dsv4gen.emulate.amdgcn import emit_cpp
from dsv4gen.emulate.amdgcn.tables import (
    compare,
    convert,
    float32,
    half,
    integer,
    matrix,
    memory,
    packed,
    scalar,
    steps,
)
from dsv4gen.emulate.amdgcn.tables.rows import Row
from dsv4gen.toolchain.host import HostCompiler, compile_shared, host_compiler

RUNTIME = Path(__file__).parent / "runtime"
FLAGS = ("-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-w")
_INCLUDE = re.compile(r'^#include "([\w.]+)"\n', re.MULTILINE)


@dataclass(frozen=True, eq=False)
class Group:
    """Functions that are compiled together: the runtime header they need, and C++ text by instruction name."""

    name: str
    header: str
    functions: Mapping[str, str]


def _vector(rows: Mapping[str, Row]) -> dict[str, str]:
    return {name: emit_cpp.vector_function(row) for name, row in rows.items()}


def _named(functions: Mapping[str, str]) -> dict[str, str]:
    return {name: emit_cpp.named_function(name, function) for name, function in functions.items()}


@functools.cache
def groups() -> tuple[Group, ...]:
    """All groups of the instruction set."""
    scalars = {name: emit_cpp.scalar_function(row) for name, row in scalar.SCALAR.items()}
    scalars |= {name: emit_cpp.save_exec_function(row) for name, row in scalar.SAVE_EXEC.items()}
    return (
        Group("control", "control.h", _named(steps.CONTROL_STEPS)),
        Group("lanes", "lanes.h", _named(steps.LANE_STEPS)),
        Group("scalar", "lanes.h", scalars),
        Group("integer", "lanes.h", _vector(integer.VECTOR)),
        Group("float32", "lanes.h", _vector(float32.VECTOR)),
        Group("half", "lanes.h", _vector(half.VECTOR)),
        Group("packed", "lanes.h", _vector(packed.VECTOR)),
        Group("convert", "lanes.h", _vector(convert.VECTOR)),
        Group("compare", "lanes.h", _vector(compare.COMPARE)),
        Group("matrix", "matrix.h", _named(matrix.MATRIX_STEPS)),
        Group("memory", "memory.h", _named(memory.MEMORY_STEPS)),
        Group("lds", "lds_ops.h", _named(memory.LDS_STEPS)),
    )


@functools.cache
def group_of() -> Mapping[str, Group]:
    """The group of every function name."""
    found: dict[str, Group] = {}
    for group in groups():
        for name in group.functions:
            if name in found:
                raise EmulationError(f"instruction {name} is in two groups")
            found[name] = group
    return found


def group_source(group: Group) -> str:
    """The self-contained C++ text of one group."""
    names = ", ".join(emit_cpp.function_name(name) for name in group.functions)
    table = f"extern const OpFunction emulator_functions[];\nconst OpFunction emulator_functions[] = {{{names}}};"
    return "\n".join((runtime_text(group.header), *group.functions.values(), f'extern "C" {{\n{table}\n}}\n'))


def runtime_text(name: str) -> str:
    """A runtime file with everything it includes, in order, once."""
    seen: set[str] = set()

    def expand(file: str) -> str:
        if file in seen:
            return ""
        seen.add(file)
        text = (RUNTIME / file).read_text(encoding="utf-8").replace("#pragma once\n", "")
        return _INCLUDE.sub(lambda match: expand(match[1]), text)

    return expand(name)


def cpu_flags(kind: str) -> tuple[str, ...]:
    """Flags for the x86-64 level of this CPU, so that rows of lanes use its vector registers.

    `kind` is the host compiler's; zig spells the levels with underscores.
    """
    level = _cpu_level()
    if level == 0:
        return ()
    wide = ("-mprefer-vector-width=512",) if level == 4 else ()
    return (f"-mcpu=x86_64_v{level}", *wide) if kind == "zig" else (f"-march=x86-64-v{level}", *wide)


@functools.cache
def _cpu_level() -> int:
    """4 or 3 for CPUs with AVX-512 or AVX2, 0 for others."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return 0
    try:
        listed = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("flags", 1)[1].split("\n", 1)[0].split()
    except (OSError, IndexError):
        return 0
    if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= set(listed):
        return 4
    return 3 if {"avx2", "fma", "bmi2"} <= set(listed) else 0


def compile_text(text: str, name: str, compiler: HostCompiler | None = None) -> Path:
    """The shared library of one C++ text.

    Raises:
        ToolMissing, CompileError: no C++ compiler, or one that refuses the text.
    """
    chosen = compiler or host_compiler()
    flags = (*FLAGS, *cpu_flags(chosen.kind), "-lm")
    return compile_shared(text, flags, name=f"amdgcn_{name}", compiler=chosen)


@functools.cache
def executor() -> ctypes.CDLL:
    """The library that runs waves."""
    return ctypes.CDLL(str(compile_text(runtime_text("executor.cpp"), "executor")))


@functools.cache
def _addresses(group: Group) -> dict[str, int]:
    library = ctypes.CDLL(str(compile_text(group_source(group), group.name)))
    table = (ctypes.c_uint64 * len(group.functions)).in_dll(library, "emulator_functions")
    _loaded.append(library)
    return dict(zip(group.functions, table, strict=True))


#: Keeps the libraries whose functions are in use.
_loaded: list[ctypes.CDLL] = []


def addresses(names: Iterable[str]) -> dict[str, int]:
    """Addresses of the functions of these instructions; compiles and loads what is missing.

    Raises:
        ToolMissing, CompileError: no C++ compiler, or one that refuses the runtime.
    """
    needed = {name: group_of()[name] for name in names}
    different = sorted({group.name: group for group in needed.values()}.items())
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        # Compilers are programs of their own, so threads are enough to run them side by side.
        list(pool.map(_addresses, [group for _, group in different]))
    return {name: _addresses(group)[name] for name, group in needed.items()}
