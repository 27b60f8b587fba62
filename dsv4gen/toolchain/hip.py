"""HIP C++ to AMD machine code with clang, or with the clang inside `ziglang`; no ROCm, no headers.

Three steps: C++ to assembly text (which the emulator reads), assembly to object, object to shared object. The
machine code is the same as that of one step (a test compares), and the linker is named instead of being
looked up by clang, so that ziglang needs no wrapper script.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.base.errors import ToolMissing, raise_all
from dsv4gen.toolchain import hsaco, locate, process
from dsv4gen.toolchain.code import Built, Job
from dsv4gen.toolchain.resources import KernelResources

KINDS = ("clang", "zig")
OLDEST_CLANG = 20
# Code objects of version 5 load on every ROCm since 5.5; clang's default of 6 needs 6.3.
_CODE_OBJECT = "-mcode-object-version=5"
FLAGS = (
    "-x",
    "hip",
    "--offload-device-only",
    "--no-gpu-bundle-output",
    "-nogpuinc",
    "-nogpulib",
    "-nostdinc",
    # Otherwise the name of a symbol depends on the folder.
    "-fuse-cuid=none",
    "-fno-crash-diagnostics",
    _CODE_OBJECT,
    "-O3",
    "-std=c++17",
)
_REMEDY = "apt-get install clang-22 lld-22, or pip install ziglang"


@dataclass(frozen=True)
class HipCompiler:
    """Clang and its linker: how to call them and their versions as one text."""

    kind: str
    clang: tuple[str, ...]
    linker: tuple[str, ...]
    version: str

    def commands(self, job: Job) -> tuple[tuple[str, ...], ...]:
        """Compile, assemble, link: the argument lists without the programs."""
        stem = Path(job.file).stem
        target = ("--target=amdgcn-amd-amdhsa", f"-mcpu={job.architecture}", _CODE_OBJECT)
        return (
            (*FLAGS, f"--offload-arch={job.architecture}", *job.flags, "-S", job.file, "-o", f"{stem}.s"),
            (*target, "-x", "assembler", "-c", f"{stem}.s", "-o", f"{stem}.o"),
            ("-m", "elf64_amdgpu", "--no-undefined", "-shared", f"{stem}.o", "-o", f"{stem}.hsaco"),
        )

    def build(self, job: Job) -> Built:
        """Compile in a private folder.

        Raises:
            CompileError, Problems: the source was refused or a step died.
        """
        stem = Path(job.file).stem
        log = ""
        with process.private_folder("hip") as folder:
            (folder / job.file).write_text(job.text, encoding="utf-8")
            programs = (self.clang, self.clang, self.linker)
            results = (f"{stem}.s", f"{stem}.o", f"{stem}.hsaco")
            for program, arguments, result in zip(programs, self.commands(job), results, strict=True):
                outcome = process.run([*program, *arguments], folder, timeout_s=job.timeout_s)
                if not outcome.succeeded or not (folder / result).is_file():
                    raise_all(job.errors(outcome))
                log += outcome.output
            return Built((folder / results[2]).read_bytes(), (folder / results[0]).read_text("utf-8"), log)

    def read_kernels(self, built: Built) -> tuple[KernelResources, ...]:
        """Resources from the code object's note."""
        return hsaco.read_kernels(built.binary)


def hip_compiler(kind: str = "auto") -> HipCompiler:
    """Clang when it is usable, else ziglang; or the one that is asked for.

    Raises:
        ToolMissing: neither is here, or clang is too old or lacks a part.
    """
    if kind == "zig":
        return _zig_compiler()
    try:
        return _clang_compiler()
    except ToolMissing:
        if kind == "clang" or locate.find_zig() is None:
            raise
        return _zig_compiler()


def usable_clang_version(clang: Path) -> str:
    """The version text of a clang that is new enough.

    Raises:
        ToolMissing: it is too old, or does not start.
    """
    version = locate.version_text([str(clang)])
    number = re.search(r"clang version (\d+)", version)
    if number is None or int(number[1]) < OLDEST_CLANG:
        raise ToolMissing(f"{clang.name} is too old ({version}), {OLDEST_CLANG} is needed", remedy=_REMEDY)
    return version


def _clang_compiler() -> HipCompiler:
    clang, linker = locate.find_llvm("clang++"), locate.find_llvm("ld.lld")
    if clang is None:
        raise ToolMissing("no clang++ on the search path", remedy=_REMEDY)
    version = usable_clang_version(clang)
    if linker is None:
        raise ToolMissing("no ld.lld on the search path, clang cannot link without it", remedy=_REMEDY)
    versions = f"{version}; {locate.version_text([str(linker)])}"
    return HipCompiler("clang", (str(clang),), (str(linker),), versions)


def _zig_compiler() -> HipCompiler:
    zig = locate.find_zig()
    if zig is None:
        raise ToolMissing("the Python package ziglang is not installed", remedy=_REMEDY)
    program = str(zig)
    version = f"zig, {locate.version_text([program, 'clang'])}"
    return HipCompiler("zig", (program, "clang"), (program, "ld.lld"), version)
