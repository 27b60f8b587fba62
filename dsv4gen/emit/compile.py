"""`build --compile`: code objects beside the generated sources, for each target and the devices that share its source.

Names and records are those of `dsv4gen.base.prebuilt`, which the runtime looks for. An object is written whole and
its record after it, so one that lacks a matching record was interrupted and is never loaded; nothing is written for
a source that does not compile, and the others are not held up. Triton modules have no ahead-of-time form here: Triton
compiles them for the arguments of the call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsv4gen.base import extensions
from dsv4gen.base.errors import DsvError, OutputError
from dsv4gen.base.manifest import digest_bytes, read_manifest, require_intact
from dsv4gen.base.outputs import replace_file
from dsv4gen.base.prebuilt import binary_name, read_record, record_name, record_text
from dsv4gen.render.source_map import SourceMap
from dsv4gen.spec import Specs, load_specs
from dsv4gen.target import TargetRecord, resolve_target
from dsv4gen.toolchain import Task, choose_compiler, compile_source, run_tasks
from dsv4gen.toolchain.compile import require_kind

#: suffix of a family's source by API
SOURCE_SUFFIX = {"hip": "hip", "cuda": "cu"}


@dataclass(frozen=True)
class CodeFile:
    """One code object beside its source; `changed` is False when it was current and nothing was compiled."""

    target: str
    device: str
    file: str
    kernels: int
    compiler: str
    changed: bool


@dataclass(frozen=True)
class Compiled:
    """All code objects that are in place now, and why the others are not."""

    files: tuple[CodeFile, ...]
    errors: tuple[DsvError, ...]


@dataclass(frozen=True)
class _Work:
    """One family's source for one device."""

    folder: Path
    family: str
    entry: Mapping[str, Any]
    record: TargetRecord
    compiler: str

    @property
    def api(self) -> str:
        return self.record.detect.api

    @property
    def source(self) -> str:
        return f"{self.family}.{SOURCE_SUFFIX[self.api]}"

    @property
    def arch(self) -> str:
        """The compiler's name of the device; the device's own where no compiler names it, which is then refused."""
        names = self.record.compile
        return (names.clang if self.api == "hip" else names.nvrtc) or self.record.device

    @property
    def file(self) -> str:
        return binary_name(self.family, self.arch, self.api)

    @property
    def symbols(self) -> list[str]:
        kernels: Mapping[str, Any] = self.entry["kernels"]
        return [instance["symbol"] for kernel in kernels.values() for instance in kernel["instances"]]


def compile_folders(
    folders: Iterable[Path],
    families: Sequence[str] = (),
    *,
    compiler: str = "auto",
    on_finish: Callable[[str], None] = lambda _: None,
) -> Compiled:
    """Compile the HIP/CUDA sources in some targets' folders, all families when none is named.

    Args:
        compiler: `auto`, or one of the toolchain's words.
        on_finish: called with the name of each piece of work as it ends, from several threads.

    Raises:
        ManifestError: a folder that is not whole.
    """
    specs = load_specs(*extensions.spec_folders())
    works = [work for folder in folders for work in _works(specs, folder, families, compiler)]
    tasks = [Task(f"{work.file} of {work.record.name}", lambda work=work: _compile(work)) for work in works]  # type: ignore[misc]
    files: list[CodeFile] = []
    errors: list[DsvError] = []
    for done in run_tasks(tasks, on_finish=lambda one: on_finish(one.name)):
        if done.value is not None:
            files.append(done.value)
        elif done.error is not None:
            errors += getattr(done.error, "errors", (done.error,))
    return Compiled(tuple(files), tuple(errors))


def require_compiler(targets: Iterable[str], compiler: str) -> None:
    """Make sure, before anything is built, that a compiler serves targets; it need not be here.

    Raises:
        UsageError: it does not serve one of them.
    """
    specs = load_specs(*extensions.spec_folders())
    for target in targets:
        require_kind(resolve_target(specs, target), compiler)


def _works(specs: Specs, folder: Path, families: Sequence[str], compiler: str) -> Iterator[_Work]:
    manifest = read_manifest(folder)
    require_intact(manifest, folder)
    record = resolve_target(specs, manifest.target["name"])
    for family, entry in sorted(manifest.families.items()):
        if entry["language"] == "hip_cuda" and (not families or family in families):
            for device in (record, *record.also):
                yield _Work(folder, family, entry, device, compiler)


def _compile(work: _Work) -> CodeFile:
    """Make one code object current.

    Raises:
        ToolMissing, CompileError, ResourceError, OutputError, Problems: nothing was written.
    """
    text = (work.folder / work.source).read_bytes()
    chosen = choose_compiler(work.record, work.compiler)
    if _is_current(work, text, chosen.version):
        return _code_file(work, chosen.kind, changed=False)
    code = compile_source(
        text.decode(),
        work.record,
        symbols=work.symbols,
        compiler=chosen.kind,
        source_map=_source_map(work),
        name=work.family,
    )
    try:
        replace_file(work.folder / work.file, code.binary)
        record = record_text(text, code.binary, chosen.version)
        replace_file(work.folder / record_name(work.family, work.arch), record.encode())
    except OSError as error:
        raise OutputError(f"cannot write {work.folder / work.file}: {error.strerror or error}") from error
    return _code_file(work, chosen.kind, changed=True)


def _is_current(work: _Work, source: bytes, compiler: str) -> bool:
    record = read_record(work.folder, work.family, work.arch)
    if record is None or record.source != digest_bytes(source) or record.compiler != compiler:
        return False
    try:
        return record.binary == digest_bytes((work.folder / work.file).read_bytes())
    except OSError:
        return False


def _source_map(work: _Work) -> SourceMap:
    text = (work.folder / "maps" / f"{work.source}.json").read_text(encoding="utf-8")
    return SourceMap.from_json(json.loads(text))


def _code_file(work: _Work, compiler: str, *, changed: bool) -> CodeFile:
    return CodeFile(work.record.name, work.record.device, work.file, len(work.symbols), compiler, changed)
