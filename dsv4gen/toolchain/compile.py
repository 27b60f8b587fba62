"""From generated C++ text and a target record to a code object: choice of compiler, cache, checks.

The cache key is the text, every argument list and the compiler's version text; where a compiler is installed
does not matter. Binary, assembly and the compiler's output are kept; resources are read anew each time.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

from dsv4gen.base.errors import CompileError, OutputError, UsageError, raise_all
from dsv4gen.target.record import TargetRecord
from dsv4gen.toolchain import cuda, diagnostics, hip
from dsv4gen.toolchain.code import Built, CodeObject, Compiler, Job, missing_symbols
from dsv4gen.toolchain.process import DEFAULT_TIMEOUT_S
from dsv4gen.toolchain.resources import check_static_shared
from dsv4gen.toolchain.store import Store, content_key

#: clang's flag that says which line an instruction comes from, and changes no instruction
LINE_TABLES = "-gline-tables-only"

_BINARY, _ASSEMBLY, _LOG = "code", "assembly.s", "log.txt"


def compile_source(
    text: str,
    record: TargetRecord,
    *,
    symbols: Sequence[str] | None = None,
    compiler: str = "auto",
    source_map: diagnostics.SourceMap | None = None,
    name: str = "kernels",
    flags: Sequence[str] = (),
    store: Store | None = None,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> CodeObject:
    """Compile one generated file for one target; all its kernels in one run.

    Args:
        text: HIP or CUDA C++ without includes.
        symbols: kernels that must come out; also named in messages.
        compiler: `auto` (clang, then zig; NVRTC, then nvcc) or one of these words.
        source_map: gives messages their template lines.
        name: names the file in messages: `<name>.hip` or `<name>.cu`.
        flags: added to the compiler's usual ones.

    Raises:
        ToolMissing: no compiler; the remedy says what to install.
        UsageError: a compiler that does not serve this target.
        CompileError, ResourceError, Problems: refused text, a compiler that died, a kernel that is missing,
            or more static shared memory than the platform gives.
    """
    wanted = tuple(symbols or ())
    chosen = choose_compiler(record, compiler)
    job = replace(
        _job(text, record, wanted, name),
        flags=tuple(flags),
        source_map=source_map,
        timeout_s=timeout_s,
        after_crash=_other_ways(record, chosen.kind),
    )
    built = _build_or_fetch(chosen, job, store or Store.open("kernels"))
    found = diagnostics.located(diagnostics.parse(built.log), job.file, source_map)
    code = CodeObject(
        target=record.device,
        compiler=chosen.kind,
        version=chosen.version,
        binary=built.binary,
        assembly=built.assembly,
        kernels=tuple(kernel.for_launch(record) for kernel in chosen.read_kernels(built)),
        warnings=tuple(one for one in found if not one.is_error),
    )
    raise_all([*missing_symbols(code, wanted), *check_static_shared(code.kernels, record)])
    return code


def require_kind(record: TargetRecord, kind: str) -> None:
    """Raises UsageError for a compiler that does not serve the target, whether it is here or not."""
    known = _kinds(record)
    if kind not in ("auto", *known):
        message = f"compiler {kind!r} does not compile for {record.device}"
        raise UsageError(message, remedy=f"auto, {' or '.join(known)}")


def choose_compiler(record: TargetRecord, kind: str = "auto") -> Compiler:
    """The compiler for a target: the one asked for, or the first that this machine has.

    Raises:
        UsageError: that compiler does not serve this target.
        ToolMissing: it is not here.
    """
    require_kind(record, kind)
    return hip.hip_compiler(kind) if record.detect.api == "hip" else cuda.cuda_compiler(kind)


def _kinds(record: TargetRecord) -> tuple[str, ...]:
    return hip.KINDS if record.detect.api == "hip" else cuda.KINDS


def _other_ways(record: TargetRecord, kind: str) -> str:
    others = [f"compiler={other!r}" for other in _kinds(record) if other != kind]
    return f"try {' or '.join(others)}, or build without the path that needs this kernel"


def _job(text: str, record: TargetRecord, symbols: tuple[str, ...], name: str) -> Job:
    is_hip = record.detect.api == "hip"
    architecture = record.compile.clang if is_hip else record.compile.nvrtc
    if architecture is None:
        raise CompileError(f"the record of {record.device} has no architecture name for this compiler")
    file = f"{name}.hip" if is_hip else f"{name}.cu"
    kernels = f" ({', '.join(symbols)})" if symbols else ""
    return Job(
        text=text,
        file=file,
        architecture=architecture,
        what=f"{file} for {record.device}{kernels}",
        static_shared_limit=record.shared.static,
    )


def _build_or_fetch(compiler: Compiler, job: Job, store: Store) -> Built:
    commands = tuple(word for command in compiler.commands(job) for word in (*command, ";"))
    key = content_key((job.text, compiler.kind, compiler.version, *commands))
    folder = store.get(key)
    if folder is not None:
        assembly = folder / _ASSEMBLY
        return Built(
            (folder / _BINARY).read_bytes(),
            assembly.read_text("utf-8") if assembly.is_file() else None,
            (folder / _LOG).read_text("utf-8"),
        )
    built = compiler.build(job)
    compiler.read_kernels(built)
    _keep(store, key, built, f"{compiler.version}: {' '.join(commands)}")
    return built


def _keep(store: Store, key: str, built: Built, described: str) -> None:
    """Publish a result; a machine without any writable cache compiles every time."""
    files = {_BINARY: built.binary, _LOG: built.log.encode()}
    if built.assembly is not None:
        files[_ASSEMBLY] = built.assembly.encode()
    try:
        store.put(key, files, described=described)
    except OutputError as error:
        warnings.warn(str(error), RuntimeWarning, stacklevel=2)
