"""Offline compilers and readers of what they produced; needs no GPU and no vendor driver.

Modules in dependency order:

    process         run one program: argument lists, a private folder, signals named
    store           compiled results kept by content, published by rename, checked when read
    diagnostics     compiler messages, mapped back to template lines
    locate          where programs and libraries are, and their version texts
    host            C++ for this machine's CPU, shared by the SIMT build and the emulator
    elf, msgpack    file formats of code objects
    resources       registers, spills, shared memory of one kernel, and the check against a budget
    hsaco, cubin    resources read from AMD and NVIDIA code objects
    code            what a compiler takes and gives
    hip             clang or ziglang: HIP C++ to hsaco
    nvrtc_worker    a program: NVRTC in a process of its own
    cuda            NVRTC or nvcc: CUDA C++ to cubin
    compile         `compile_source`: choice of compiler, cache, checks
    parallel        many compiles at once within cores and memory
    triton_worker   a program: Triton without a GPU
    triton_compile  Triton kernels to code objects, in workers
    tools           `find_tools`: what this machine has

Nothing is probed at import; a missing tool is an error only in the step that needs it. The names below are
imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dsv4gen.toolchain.code import CodeObject
    from dsv4gen.toolchain.compile import LINE_TABLES, choose_compiler, compile_source
    from dsv4gen.toolchain.host import HostCompiler, compile_shared, host_compiler
    from dsv4gen.toolchain.parallel import Finished, Task, run_tasks
    from dsv4gen.toolchain.resources import KernelResources, check_budget
    from dsv4gen.toolchain.tools import Tool, find_tools
    from dsv4gen.toolchain.triton_compile import TritonKernel, TritonObject, compile_triton, compile_triton_many

__all__ = [
    "LINE_TABLES",
    "CodeObject",
    "Finished",
    "HostCompiler",
    "KernelResources",
    "Task",
    "Tool",
    "TritonKernel",
    "TritonObject",
    "check_budget",
    "choose_compiler",
    "compile_shared",
    "compile_source",
    "compile_triton",
    "compile_triton_many",
    "find_tools",
    "host_compiler",
    "run_tasks",
]

_HOMES = {
    "LINE_TABLES": "compile",
    "CodeObject": "code",
    "Finished": "parallel",
    "HostCompiler": "host",
    "KernelResources": "resources",
    "Task": "parallel",
    "Tool": "tools",
    "TritonKernel": "triton_compile",
    "TritonObject": "triton_compile",
    "check_budget": "resources",
    "choose_compiler": "compile",
    "compile_shared": "host",
    "compile_source": "compile",
    "compile_triton": "triton_compile",
    "compile_triton_many": "triton_compile",
    "find_tools": "tools",
    "host_compiler": "host",
    "run_tasks": "parallel",
}


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
