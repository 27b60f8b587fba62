"""Triton kernels to hsaco or cubin without a GPU, in worker processes, for any target; resources included.

Triton does not enforce shared memory or thread limits when it compiles, so they are checked here. It must be told
which pointers and sizes are multiples of 16: without that its loads are scalar and its register counts mean
nothing. The contraction of a*b+c is pinned, because its default differs between versions.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dsv4gen.base import paths
from dsv4gen.base.errors import CompileError, DsvError, Place, ResourceError, ToolMissing, raise_all
from dsv4gen.target.record import TargetRecord
from dsv4gen.toolchain import cubin, hsaco, process
from dsv4gen.toolchain.code import CodeObject
from dsv4gen.toolchain.diagnostics import SourceMap
from dsv4gen.toolchain.parallel import TRITON_BYTES, Finished, Task, job_count, run_tasks
from dsv4gen.toolchain.store import Store, content_key

Constant = int | float | bool | str | None
# Pinned on, as the generated modules do; a kernel's option `enable_fp_fusion` still decides.
_FP_FUSION = "1"
# fp8 dots that a target emulates took up to 71 s each.
TIMEOUT_S = 180.0


@dataclass(frozen=True)
class TritonKernel:
    """One kernel of a generated module with everything that decides its code.

    Attributes:
        module: the module's file; it must hold all jitted functions that the kernel calls.
        function: the kernel's name there.
        signature: Triton type of each parameter that is no constant, e.g. `{"x": "*fp32", "n": "i32"}`.
        constexprs: values of the constant parameters; `tl.bfloat16` and the like as text.
        attrs: parameters that are multiples of a number: `{"x": 16}`.
        options: num_warps, num_stages, ...
        source_map: gives messages their template lines.
    """

    module: Path
    function: str
    signature: Mapping[str, str]
    constexprs: Mapping[str, Constant] = field(default_factory=dict)
    attrs: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, int | bool | str] = field(default_factory=dict)
    source_map: SourceMap | None = None


@dataclass(frozen=True)
class TritonObject:
    """A compiled kernel and what a launch needs.

    Attributes:
        code: binary, assembly (amdgcn or PTX) and the one kernel's resources.
        symbol: the name to look up in the binary.
        threads: block size.
        shared_bytes: dynamic shared memory of a launch.
        global_scratch_bytes, profile_scratch_bytes: buffers behind the two hidden pointer parameters.
    """

    code: CodeObject
    symbol: str
    threads: int
    num_warps: int
    num_ctas: int
    shared_bytes: int
    global_scratch_bytes: int
    profile_scratch_bytes: int


def compile_triton(
    module: Path,
    function: str,
    signature: Mapping[str, str],
    constexprs: Mapping[str, Constant],
    attrs: Mapping[str, int],
    options: Mapping[str, int | bool | str],
    record: TargetRecord,
    *,
    source_map: SourceMap | None = None,
    store: Store | None = None,
) -> TritonObject:
    """Compile one kernel for one target; for several, `compile_triton_many` starts fewer workers.

    Raises:
        ToolMissing: Triton is not installed.
        CompileError, ResourceError, Problems: refused, crashed, or too large for the target.
    """
    kernel = TritonKernel(module, function, signature, constexprs, attrs, options, source_map)
    (finished,) = compile_triton_many([(kernel, record)], store=store)
    if finished.error is not None or finished.value is None:
        raise finished.error or CompileError(f"{finished.name} was not compiled")
    return finished.value


def compile_triton_many(
    work: Sequence[tuple[TritonKernel, TargetRecord]],
    *,
    jobs: int | None = None,
    store: Store | None = None,
    timeout_s: float = TIMEOUT_S,
) -> list[Finished[TritonObject]]:
    """Compile kernels for targets and return what became of each, in order; a crash costs only its kernel.

    Args:
        timeout_s: per kernel; a worker gets the sum of its share.

    Raises:
        ToolMissing: Triton is not installed.
    """
    kept = store or Store.open("triton")
    items = [_Item(kernel, record, _key(kernel, record)) for kernel, record in work]
    missing = [item for item in items if kept.get(item.key) is None]
    count = min(job_count(jobs, bytes_per_job=TRITON_BYTES), len(missing))
    shares = [missing[start::count] for start in range(count)]
    tasks = [
        Task(str(number), lambda share=share: _compile_share(share, kept, timeout_s))  # type: ignore[misc]
        for number, share in enumerate(shares)
    ]
    failures: dict[str, DsvError] = {}
    for finished in run_tasks(tasks, jobs=count or 1):
        if finished.error is not None:
            raise finished.error
        failures.update(finished.value or {})
    return [_finish(item, kept, failures) for item in items]


@dataclass(frozen=True)
class _Item:
    kernel: TritonKernel
    record: TargetRecord
    key: str

    @property
    def what(self) -> str:
        return f"{self.kernel.function} of {self.kernel.module.name} for {self.record.device}"


def triton_version() -> str:
    """The installed Triton's version.

    Raises:
        ToolMissing: there is none.
    """
    try:
        return version("triton")
    except PackageNotFoundError as missing:
        raise ToolMissing("Triton is not installed", remedy="pip install 'dsv4gen[runtime]'") from missing


def _key(kernel: TritonKernel, record: TargetRecord) -> str:
    """The module's text, the request without the module's folder, the target, the compiler."""
    request = {**_request(kernel, record), "module": kernel.module.name}
    parts = (kernel.module.read_bytes(), json.dumps(request, sort_keys=True), triton_version(), _FP_FUSION)
    return content_key(parts)


def _request(kernel: TritonKernel, record: TargetRecord) -> dict[str, Any]:
    target = record.compile.triton
    return {
        "module": str(kernel.module.resolve()),
        "function": kernel.function,
        "signature": dict(kernel.signature),
        "constexprs": dict(kernel.constexprs),
        "attrs": dict(kernel.attrs),
        "options": dict(kernel.options),
        "target": [target.backend, target.arch, target.wave],
    }


def _compile_share(share: Sequence[_Item], store: Store, timeout_s: float) -> dict[str, DsvError]:
    """Compile one worker's share into the store; returns the errors by key."""
    failures: dict[str, DsvError] = {}
    rest = list(share)
    while rest:
        with process.private_folder("triton") as folder:
            outcome = _run_worker(rest, folder, timeout_s)
            done = 0
            while (folder / f"{done}.json").is_file():
                failures.update(_take(rest[done], folder, done, store))
                done += 1
        if done < len(rest):
            lost = rest[done]
            message = f"Triton's compiler failed on {lost.what}: {outcome.reason}"
            failures[lost.key] = CompileError(f"{message}\n  {outcome.output.strip()[-2000:]}".rstrip())
        rest = rest[done + 1 :]
    return failures


def _run_worker(items: Sequence[_Item], folder: Path, timeout_s: float) -> process.Outcome:
    requests = [_request(item.kernel, item.record) for item in items]
    (folder / "requests.json").write_text(json.dumps(requests), encoding="utf-8")
    variables = {
        **process.own_package_variables(),
        "TRITON_CACHE_DIR": str(folder / "cache"),
        "TRITON_HOME": str(folder),
        "TRITON_DEFAULT_FP_FUSION": _FP_FUSION,
        "TRITON_DUMP_PTXAS_LOG": "1",
    }
    command = [sys.executable, "-m", "dsv4gen.toolchain.triton_worker", "requests.json", "."]
    return process.run(command, folder, timeout_s=timeout_s * len(items), variables=variables)


def _take(item: _Item, folder: Path, number: int, store: Store) -> dict[str, DsvError]:
    """Move one result into the store, or return its error."""
    reply = json.loads((folder / f"{number}.json").read_text(encoding="utf-8"))
    if "error" in reply:
        return {item.key: _refused(item, reply)}
    files = {name: (folder / f"{number}.{name}").read_bytes() for name in ("code", "asm", "log")}
    files["metadata.json"] = json.dumps(reply, sort_keys=True).encode()
    store.put(item.key, files, described=f"{item.what}, Triton {triton_version()}")
    return {}


def _refused(item: _Item, reply: Mapping[str, Any]) -> CompileError:
    line = reply["line"]
    origin = item.kernel.source_map.origin(line) if item.kernel.source_map and line else None
    return CompileError(
        f"{reply['error']} [{item.what}]", place=origin or Place(paths.display(item.kernel.module), line)
    )


def _finish(item: _Item, store: Store, failures: Mapping[str, DsvError]) -> Finished[TritonObject]:
    try:
        if item.key in failures:
            raise failures[item.key]
        folder = store.get(item.key)
        if folder is None:
            raise CompileError(f"the result of {item.what} vanished from the cache")
        compiled = _read(item, folder)
        raise_all(_limit_errors(compiled, item.record))
        return Finished(item.what, compiled, None)
    except DsvError as error:
        return Finished(item.what, None, error)


def _read(item: _Item, folder: Path) -> TritonObject:
    facts = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
    binary = (folder / "code").read_bytes()
    log = (folder / "log").read_text(encoding="utf-8")
    is_hip = item.record.compile.triton.backend == "hip"
    kernels = hsaco.read_kernels(binary) if is_hip else cubin.read_kernels(binary, log)
    code = CodeObject(
        target=item.record.device,
        compiler="triton",
        version=f"Triton {triton_version()}",
        binary=binary,
        assembly=(folder / "asm").read_text(encoding="utf-8"),
        # Triton's shared memory is dynamic: the code object itself says nothing of it.
        kernels=tuple(
            kernel.for_launch(item.record, dynamic_shared_bytes=facts["shared"])
            for kernel in kernels
            if kernel.symbol == facts["name"]
        ),
    )
    return TritonObject(
        code=code,
        symbol=facts["name"],
        # Warp specialisation adds warps to num_warps, and clang caps what it records at 1024 threads.
        threads=max(code.kernel(facts["name"]).max_threads, facts["num_warps"] * facts["warp_size"]),
        num_warps=facts["num_warps"],
        num_ctas=facts["num_ctas"],
        shared_bytes=facts["shared"],
        global_scratch_bytes=facts["global_scratch_size"],
        profile_scratch_bytes=facts["profile_scratch_size"],
    )


def _limit_errors(compiled: TritonObject, record: TargetRecord) -> list[ResourceError]:
    """Limits that a launch would meet; spills are left to the budget."""
    where = f"{compiled.symbol} on {record.device}"
    found = []
    if compiled.shared_bytes > record.shared.block:
        found.append(f"{compiled.shared_bytes} bytes of shared memory, the limit is {record.shared.block}")
    if compiled.threads > record.block.threads:
        found.append(f"blocks of {compiled.threads} threads, the limit is {record.block.threads}")
    return [ResourceError(f"{where}: {text}", remedy="choose a smaller tile") for text in found]
