"""Build: specs and templates -> one folder per target, written only where something changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dsv4gen.base import extensions, paths, stamp
from dsv4gen.base.errors import DsvError, ManifestError, OutputError, UsageError, did_you_mean, raise_all
from dsv4gen.base.manifest import Manifest, family_of, read_manifest, require_intact
from dsv4gen.emit.drift import Drift, find_drift
from dsv4gen.emit.parallel import run_forked
from dsv4gen.emit.writer import write_tree

if TYPE_CHECKING:
    from dsv4gen.plan.ir import FamilyPlan
    from dsv4gen.spec import Specs

LOCK_TIMEOUT_S = 120
#: fewer targets per process do not repay starting it
TARGETS_PER_JOB = 3


@dataclass(frozen=True)
class Request:
    """What to build.

    Attributes:
        targets: by name.
        families: all of them when empty.
        out: the folder that holds one folder per target.
        jobs: processes; 0 takes as many as cores and targets make worth while. More than one forks, which is not
            for processes that hold a GPU or threads, so the default does not.
    """

    targets: tuple[str, ...]
    families: tuple[str, ...] = ()
    out: Path | None = None
    jobs: int = 1

    @property
    def root(self) -> Path:
        """Where target folders go."""
        return self.out if self.out is not None else paths.generated()


@dataclass(frozen=True)
class Built:
    """One target after a build: the files that changed, none when it was current."""

    target: str
    folder: Path
    changed: tuple[str, ...]


@dataclass(frozen=True)
class TargetTree:
    """Everything a target's folder should hold."""

    files: Mapping[str, bytes]
    manifest: Manifest


def build(request: Request, progress: Callable[[str], None] = lambda _: None) -> list[Built]:
    """Make the folders of all requested targets whole and current.

    Raises:
        SpecError, TemplateError, LintError, Problems: everything wrong with the inputs; nothing was written.
        OutputError: a folder that cannot be written or is not ours.
    """
    words = (*sorted(request.targets), "--", *sorted(request.families))
    key = stamp.request_key(stamp.input_digest(paths.specs(), paths.templates()), words)
    folders = [request.root / target for target in request.targets]
    if stamp.is_current(key, folders):
        return [Built(folder.name, folder, ()) for folder in folders]
    with _lock(request.root):
        trees = make_trees(request, progress)
        built = [
            Built(target, request.root / target, tuple(write_tree(request.root / target, tree.files, tree.manifest)))
            for target, tree in trees.items()
        ]
    stamp.remember(key, folders)
    return built


def check(request: Request) -> list[Drift]:
    """What differs between the folders and what their specs make; writes nothing."""
    drift: list[Drift] = []
    for target, tree in make_trees(request).items():
        folder = request.root / target
        command = f"dsv4gen build --target {target}" + (f" --out {request.out}" if request.out else "")
        drift += find_drift(folder, tree.files, tree.manifest, paths.display(folder), command)
    return drift


def make_trees(request: Request, progress: Callable[[str], None] = lambda _: None) -> dict[str, TargetTree]:
    """Plan, render and lint everything requested, in memory."""
    from dsv4gen.spec import load_specs

    specs = load_specs(*extensions.spec_folders())
    names = _families(specs, request.families)

    def work(target: str) -> TargetTree | tuple[DsvError, ...]:
        try:
            return _make_tree(specs, target, names, request)
        except DsvError as error:
            return tuple(getattr(error, "errors", (error,)))

    trees: dict[str, TargetTree] = {}
    errors: list[DsvError] = []
    made = run_forked(work, request.targets, request.jobs or _worthwhile_jobs(len(request.targets)))
    for target, result in zip(request.targets, made, strict=True):
        progress(target)
        if isinstance(result, TargetTree):
            trees[target] = result
        else:
            errors += result
    raise_all(errors)
    return trees


def _worthwhile_jobs(targets: int) -> int:
    from dsv4gen.toolchain.parallel import core_count

    return max(1, min(core_count(), targets // TARGETS_PER_JOB))


def make_plans(specs: Specs, target: str, families: Iterable[str]) -> list[FamilyPlan]:
    """The plans of some families on one target; all mistakes of all of them at once."""
    from dsv4gen.plan.make import make_plan
    from dsv4gen.target import resolve_target

    record = resolve_target(specs, target)
    plans: list[FamilyPlan] = []
    errors: list[DsvError] = []
    for name in families:
        try:
            plans.append(make_plan(specs.families[name], record, specs.tuning.get((target, name))))
        except DsvError as error:
            errors += getattr(error, "errors", (error,))
    raise_all(errors)
    return plans


def _make_tree(specs: Specs, target: str, families: Sequence[str], request: Request) -> TargetTree:
    from dsv4gen.emit.manifest import make_manifest

    plans = make_plans(specs, target, families)
    files: dict[str, bytes] = {"__init__.py": _package_text(target).encode()}
    for plan in plans:
        files.update(family_files(plan))
    kept, kept_files = _carried(request, target, families)
    files.update(kept_files)
    return TargetTree(files, make_manifest(plans[0].target, (*kept, *families), files))


def family_files(plan: FamilyPlan) -> dict[str, bytes]:
    """Every file of one family by its name in the target's folder, plan and maps included.

    Raises:
        TemplateError, LintError, Problems: a template that cannot be rendered, or text that must not be written.
    """
    from dsv4gen.base.manifest import canonical_json
    from dsv4gen.emit.manifest import plan_files
    from dsv4gen.lint import check_file
    from dsv4gen.render import launchers_in, missing_entries, render_family

    files: dict[str, bytes] = {}
    errors: list[DsvError] = []
    rendered = render_family(plan)
    for file in rendered:
        errors += check_file(file, plan.target.facts)
        files[file.name] = file.text.encode()
        if not file.name.endswith(".pyi"):
            files[f"maps/{file.name}.json"] = (canonical_json(file.source_map.to_json()) + "\n").encode()
    if plan.language == "hip_cuda":
        errors += missing_entries(rendered[0].text, plan)
    raise_all(errors)
    return {**files, **plan_files([plan], launchers_in(rendered[0], plan))}


def _package_text(target: str) -> str:
    return f'"""Kernels generated by dsv4gen for {target}; see plans/."""\n'


def _families(specs: Specs, wanted: Sequence[str]) -> tuple[str, ...]:
    unknown = [name for name in wanted if name not in specs.families]
    if unknown:
        known = ", ".join(sorted(specs.families))
        raise UsageError(
            f"no family {unknown[0]!r}{did_you_mean(unknown[0], specs.families)}", remedy=f"families: {known}"
        )
    return tuple(sorted(wanted or specs.families))


def _carried(request: Request, target: str, building: Sequence[str]) -> tuple[list[str], dict[str, bytes]]:
    """Families that an intact folder already holds and this build leaves alone, with their files."""
    folder = request.root / target
    if not request.families:
        return [], {}
    try:
        manifest = read_manifest(folder)
        require_intact(manifest, folder)
    except ManifestError:
        return [], {}
    families = [name for name in manifest.families if name not in building]
    names = [name for name in manifest.outputs if family_of(name) in families]
    return families, {name: (folder / name).read_bytes() for name in names}


@contextmanager
def _lock(root: Path) -> Iterator[None]:
    """One build per output folder at a time. The lock only saves work; renames give safety."""
    from filelock import FileLock, Timeout

    name = hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:16]
    folder = paths.cache() / "locks"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / f"{name}.lock", timeout=LOCK_TIMEOUT_S)
        lock.acquire()
    except Timeout:
        raise OutputError(
            f"another build of {root} has been running for {LOCK_TIMEOUT_S} s", remedy="wait for it, or choose --out"
        ) from None
    except OSError:
        yield
        return
    try:
        yield
    finally:
        lock.release()
