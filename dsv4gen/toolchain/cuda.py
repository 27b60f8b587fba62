"""CUDA C++ to machine code with NVRTC (the usual way) or nvcc; no driver, no GPU, no headers."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.base.errors import CompileError, DsvError, ResourceError, ToolMissing, raise_all
from dsv4gen.toolchain import cubin, locate, process
from dsv4gen.toolchain.code import Built, Job
from dsv4gen.toolchain.resources import KernelResources

KINDS = ("nvrtc", "nvcc")
_WORKER = "dsv4gen.toolchain.nvrtc_worker"
_REMEDY = "pip install nvidia-cuda-nvrtc, or install a CUDA toolkit with nvcc"
_PLAIN_FOLDER = re.compile(r"[\w./+@,=:-]+", re.ASCII)


@dataclass(frozen=True)
class NvrtcCompiler:
    """NVRTC in a process of its own: the library's path and version."""

    library: Path
    version: str
    kind: str = "nvrtc"

    def commands(self, job: Job) -> tuple[tuple[str, ...], ...]:
        """The worker's arguments without the library."""
        options = (f"--gpu-architecture={job.architecture}", "--std=c++17", "--ptxas-options=-v", *job.flags)
        return ((job.file, _result(job), *options),)

    def build(self, job: Job) -> Built:
        """Compile in a private folder.

        Raises:
            CompileError, ResourceError, Problems: the source was refused or NVRTC died.
        """
        return _build([*_worker(self.library), *self.commands(job)[0]], job)

    def read_kernels(self, built: Built) -> tuple[KernelResources, ...]:
        """Resources from the cubin and the assembler's log."""
        return cubin.read_kernels(built.binary, built.log)


@dataclass(frozen=True)
class NvccCompiler:
    """The toolkit's compiler driver; it needs g++ for its preprocessor."""

    program: Path
    version: str
    kind: str = "nvcc"

    def commands(self, job: Job) -> tuple[tuple[str, ...], ...]:
        """nvcc's arguments."""
        flags = ("-cubin", "-O3", "-std=c++17", f"-arch={job.architecture}", "-Xptxas", "-v", *job.flags)
        return ((*flags, job.file, "-o", _result(job)),)

    def build(self, job: Job) -> Built:
        """Compile in a private folder.

        Raises:
            CompileError, ResourceError, Problems: the source was refused or nvcc died.
        """
        return _build([str(self.program), *self.commands(job)[0]], job, through_shell=True)

    def read_kernels(self, built: Built) -> tuple[KernelResources, ...]:
        """Resources from the cubin and the assembler's log."""
        return cubin.read_kernels(built.binary, built.log)


def cuda_compiler(kind: str = "auto") -> NvrtcCompiler | NvccCompiler:
    """NVRTC when its library is here, else nvcc; or the one that is asked for.

    Raises:
        ToolMissing: neither is here.
    """
    library, program = locate.find_nvrtc(), locate.find_program("nvcc")
    if library is not None and kind in ("auto", "nvrtc"):
        return NvrtcCompiler(library, nvrtc_version(library))
    if program is not None and kind in ("auto", "nvcc"):
        return NvccCompiler(program, locate.version_text([str(program)]))
    wanted = "neither NVRTC nor nvcc is" if kind == "auto" else f"{kind} is not"
    raise ToolMissing(f"{wanted} on this machine", remedy=_REMEDY)


def nvrtc_version(library: Path) -> str:
    """Version text of NVRTC: it knows only major.minor, so the library's size tells builds apart."""
    size = library.stat().st_size if library.is_file() else 0
    return f"{locate.version_text(_worker(library))}, {size} bytes"


def _worker(library: Path) -> list[str]:
    return [sys.executable, "-m", _WORKER, str(library)]


def _build(command: list[str], job: Job, *, through_shell: bool = False) -> Built:
    with process.private_folder("cuda") as folder:
        if through_shell:
            _refuse_odd_folder(folder)
        (folder / job.file).write_text(job.text, encoding="utf-8")
        outcome = process.run(command, folder, timeout_s=job.timeout_s, variables=process.own_package_variables())
        result = folder / _result(job)
        if not outcome.succeeded or not result.is_file():
            raise_all(_failures(outcome, job))
        return Built(result.read_bytes(), None, outcome.output)


def _failures(outcome: process.Outcome, job: Job) -> list[DsvError]:
    """Why a compile failed; NVRTC does not say in words that a kernel declares too much shared memory."""
    too_large: list[DsvError] = [
        ResourceError(
            f"{symbol}: {figures.static_shared_bytes} bytes of static shared memory, "
            f"the limit is {job.static_shared_limit} [{job.what}]"
        )
        for symbol, figures in cubin.read_log(outcome.output).items()
        if figures.static_shared_bytes > job.static_shared_limit
    ]
    if too_large and outcome.ended_by_itself:
        return too_large
    return job.errors(outcome)


def _refuse_odd_folder(folder: Path) -> None:
    if not _PLAIN_FOLDER.fullmatch(str(folder)):
        raise CompileError(
            f"nvcc hands folder names to a shell and cannot work in {folder}",
            remedy="set TMPDIR to a folder with a plain name, or use compiler='nvrtc'",
        )


def _result(job: Job) -> str:
    return f"{Path(job.file).stem}.cubin"
