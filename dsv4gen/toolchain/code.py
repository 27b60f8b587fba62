"""What the compilers of both vendors take and give: one job in, one code object out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dsv4gen.base.errors import CompileError, DsvError
from dsv4gen.toolchain.diagnostics import Diagnostic, SourceMap, compile_errors
from dsv4gen.toolchain.process import DEFAULT_TIMEOUT_S, Outcome
from dsv4gen.toolchain.resources import KernelResources


@dataclass(frozen=True)
class Job:
    """One source text for one architecture.

    Attributes:
        file: the name the compiler sees, e.g. `topk.hip`; it has no folder.
        architecture: the compiler's own name of the target, e.g. `gfx950`, `sm_90a`.
        what: for messages: the file, the target and the kernels.
        flags: added to the compiler's usual ones.
        static_shared_limit: bytes a kernel may declare.
        after_crash: the way out when the compiler dies.
    """

    text: str
    file: str
    architecture: str
    what: str
    static_shared_limit: int
    flags: tuple[str, ...] = ()
    source_map: SourceMap | None = None
    timeout_s: float = DEFAULT_TIMEOUT_S
    after_crash: str = ""

    def errors(self, outcome: Outcome) -> list[DsvError]:
        """Why a program that worked on this job failed."""
        return compile_errors(
            outcome,
            what=self.what,
            file=self.file,
            source_map=self.source_map,
            after_crash=self.after_crash,
        )


@dataclass(frozen=True)
class Built:
    """A compiler's raw result: machine code, assembly text where the compiler gives it, and its output."""

    binary: bytes
    assembly: str | None
    log: str


class Compiler(Protocol):
    """A compiler that is present: `kind` is what `compiler=` chooses, `version` belongs to the cache key."""

    @property
    def kind(self) -> str: ...

    @property
    def version(self) -> str: ...

    def commands(self, job: Job) -> tuple[tuple[str, ...], ...]:
        """The argument lists that build a job, without the programs' folders."""

    def build(self, job: Job) -> Built:
        """Compile.

        Raises:
            CompileError, ResourceError, Problems: the source was refused or the compiler died.
        """

    def read_kernels(self, built: Built) -> tuple[KernelResources, ...]:
        """The resources of the kernels in a result."""


@dataclass(frozen=True)
class CodeObject:
    """Machine code for one target and what is known about it.

    Attributes:
        target: the device the code is for.
        compiler: kind of the compiler that made it.
        version: that compiler's version text.
        binary: an ELF file: hsaco or cubin.
        assembly: AMD assembly text; None for NVIDIA.
        kernels: resources per kernel.
        warnings: the compiler's, at template lines where known.
    """

    target: str
    compiler: str
    version: str
    binary: bytes
    assembly: str | None
    kernels: tuple[KernelResources, ...]
    warnings: tuple[Diagnostic, ...] = ()

    def kernel(self, symbol: str) -> KernelResources:
        """The resources of one kernel.

        Raises:
            CompileError: no kernel of that name.
        """
        for kernel in self.kernels:
            if kernel.symbol == symbol:
                return kernel
        known = ", ".join(kernel.symbol for kernel in self.kernels)
        raise CompileError(f"the code object for {self.target} has no kernel {symbol!r}; it has {known}")


def missing_symbols(code: CodeObject, symbols: tuple[str, ...]) -> list[DsvError]:
    """One error per expected kernel that is not there."""
    present = {kernel.symbol for kernel in code.kernels}
    return [
        CompileError(
            f"{symbol} is not in the code object for {code.target}",
            remedy='kernels need `extern "C"` and the kernel qualifier',
        )
        for symbol in symbols
        if symbol not in present
    ]
