"""Specs, generated folders and files of results -> the report.

Every cell is planned and rendered in memory from the specs as they are now, and compared with what its folder holds;
a mistake in one spec is a failed cell, row or column and leaves the rest of the report whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsv4gen import __version__
from dsv4gen.base import extensions, paths
from dsv4gen.base.errors import DsvError, ManifestError, ProofError, UsageError, did_you_mean
from dsv4gen.base.manifest import Manifest, family_of, mismatches, read_manifest
from dsv4gen.emit.build import family_files, make_plans
from dsv4gen.emit.manifest import make_manifest, plan_files
from dsv4gen.emit.select import known_targets
from dsv4gen.report import sources, stages, tables
from dsv4gen.report.evidence import Evidence, gather
from dsv4gen.report.model import Cell, Family, Report, Target
from dsv4gen.spec.load import Specs, read_specs
from dsv4gen.target import resolve_target

Mistake = tuple[str, str]


@dataclass
class Made:
    """What the specs make of one family on one target now.

    `entry` is the plan as the manifest holds it, None where mistakes keep it from being made; `digest` is empty where
    nothing can be written. A mistake is (`spec`, `proof`, `tuning` or `build`, its text).
    """

    manifest: Manifest | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    digest: str = ""
    mistakes: list[Mistake] = field(default_factory=list)


def collect(
    targets: Sequence[str],
    families: Sequence[str],
    verify_files: Sequence[Path],
    bench_files: Sequence[Path],
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """The report on some targets and families; on all of them where none are named.

    Raises:
        UsageError: a family that does not exist.
    """
    known = _known_families()
    for name in families:
        if name not in known:
            raise UsageError(f"no family {name!r}{did_you_mean(name, known)}", remedy=f"families: {', '.join(known)}")
    evidence = gather(verify_files, bench_files)
    specs, errors = read_specs(*extensions.spec_folders())
    texts: dict[str, str] = {}
    rows = [_target(specs, name, texts) for name in targets or sorted(known_targets(), key=_generation)]
    columns = [_family(specs, name, texts) for name in families or known]
    cells: list[Cell] = []
    for target in rows:
        progress(target.name)
        folder = _Folder(target.name)
        for family in columns:
            made = _make(specs, target.name, family.name, errors)
            cells.append(_cell(target, family.name, made, folder, evidence, texts))
    told = {reason for cell in cells for stage in cell.stages for reason in stage.reasons}
    problems = [*evidence.problems, *(f"mistake in a spec: {error}" for error in errors if str(error) not in told)]
    inputs = tuple(evidence.inputs)
    return Report(__version__, tuple(rows), tuple(columns), tuple(cells), inputs, tuple(problems), texts)


class _Folder:
    """A target's folder on disk."""

    def __init__(self, target: str) -> None:
        self.path = paths.generated() / target
        self.problem = ""
        self.manifest: Manifest | None = None
        self.damaged: dict[str, list[str]] = {}
        if not self.path.is_dir():
            return
        try:
            self.manifest = read_manifest(self.path)
        except ManifestError as error:
            self.problem = str(error)
            return
        for name, how in mismatches(self.manifest, self.path):
            self.damaged.setdefault(family_of(name), []).append(f"{paths.display(self.path / name)} is {how}")

    def digest(self, family: str) -> str:
        """What the folder holds of a family; empty where it holds nothing."""
        if self.manifest is None or family not in self.manifest.families:
            return ""
        return self.manifest.family_digest(family)

    def files(self, family: str) -> dict[str, bytes]:
        """A family's files as they are on disk."""
        names = [name for name in self.manifest.outputs if family_of(name) == family] if self.manifest else []
        return {name: (self.path / name).read_bytes() for name in names if (self.path / name).is_file()}


def _make(specs: Specs, target: str, family: str, errors: Sequence[DsvError]) -> Made:
    """Plan and render one cell in memory."""
    known = [(kind, str(error)) for error in errors if (kind := _concerns(error, target, family))]
    made = Made(mistakes=known)
    if known:
        return made
    try:
        (plan,) = make_plans(specs, target, [family])
    except DsvError as error:
        made.mistakes += [("proof" if isinstance(one, ProofError) else "spec", str(one)) for one in _each(error)]
        return made
    made.manifest = make_manifest(plan.target, [family], plan_files([plan]))
    try:
        made.files = family_files(plan)
    except DsvError as error:
        made.mistakes += [("build", str(one)) for one in _each(error)]
        return made
    made.manifest = make_manifest(plan.target, [family], made.files)
    made.digest = made.manifest.family_digest(family)
    return made


def _each(error: DsvError) -> Sequence[DsvError]:
    errors: Sequence[DsvError] = getattr(error, "errors", (error,))
    return errors


def _concerns(error: DsvError, target: str, family: str) -> str:
    """Whether a mistake in a spec concerns a cell: `tuning` where it is in the cell's tuning file, else `spec`."""
    file = error.place.file if error.place else ""
    if "tuning/" in file:
        return "tuning" if file.endswith(f"tuning/{target}/{family}.yaml") else ""
    hit = file.endswith((f"families/{family}.yaml", f"platforms/{target}.yaml")) or "platforms/_" in file
    return "spec" if hit else ""


def _cell(target: Target, family: str, made: Made, folder: _Folder, evidence: Evidence, texts: dict[str, str]) -> Cell:
    """One cell; where its spec has mistakes, its tables are those of what the folder still holds."""
    manifest = made.manifest or (folder.manifest if folder.digest(family) else None)
    entry = _entry(manifest, family)
    digest = made.digest or folder.digest(family)  # results of what the folder holds are not old while specs are wrong
    outcome = evidence.verified.get((target.name, family))
    timed = evidence.measured.get((target.name, family), [])
    damaged = ([folder.problem] if folder.problem else []) + folder.damaged.get(family, [])
    proofs = tuple(tables.proofs_of(entry)) if entry else ()
    paths_ = tuple(tables.paths_of(entry)) if entry else ()
    tiles = tuple(tables.tiles_of(entry)) if entry else ()
    rejected = [f"{path.op}.{path.name}: {path.rejected}" for path in paths_ if path.rejected]
    unproven = [mistake for mistake in made.mistakes if mistake[0] != "build"]
    unbuilt = [text for kind, text in made.mistakes if kind == "build"]
    five = (
        stages.built(target.name, made.digest, folder.digest(family), damaged, unbuilt),
        stages.proven(len(proofs), sum(bool(tile.refused) for tile in tiles), rejected, unproven),
        stages.compiled(outcome, digest),
        stages.executed(outcome, digest, target.evidence),
        stages.measured(timed, digest, target.evidence),
    )
    words, state = stages.headline(five)
    return Cell(
        target=target.name,
        family=family,
        headline=words,
        state=state,
        stages=five,
        paths=paths_,
        tiles=tiles,
        decisions=tuple(tables.decisions_of(family, entry, manifest)) if entry and manifest else (),
        proofs=proofs,
        resources=outcome.kernels if outcome else (),
        executed=outcome.executed if outcome else (),
        gaps=outcome.not_executed if outcome else (),
        counters=outcome.counters if outcome else (),
        bench=tuple(one.bench for one in timed),
        sources=tuple(sources.sources_of(target.name, made.files or folder.files(family), texts)),
    )


def _generation(target: str) -> tuple[str, int, str]:
    """Sorts gfx90a, gfx942, gfx1100 and sm_80, sm_100: by maker, then by the number, which is hexadecimal for gfx."""
    maker = target.rstrip("0123456789abcdef")
    number = target[len(maker) :]
    return maker, int(number, 16) if number else 0, target


def _entry(manifest: Manifest | None, family: str) -> Mapping[str, Any] | None:
    """A family's plan; None where the folder's file of it is damaged, which its stage says."""
    try:
        return manifest.families[family] if manifest else None
    except ManifestError:
        return None


def _known_families() -> list[str]:
    """By file name, so that a spec with mistakes keeps its column."""
    return sorted({path.stem for folder in extensions.spec_folders() for path in (folder / "families").glob("*.yaml")})


def _target(specs: Specs, name: str, texts: dict[str, str]) -> Target:
    """A row; what a platform file with mistakes cannot say stays empty."""
    loaded = specs.platforms.get(name)
    file = loaded.file if loaded else f"specs/platforms/{name}.yaml"
    sources.add_spec(file, texts)
    try:
        record = resolve_target(specs, name)
    except DsvError as error:
        return Target(name, (), error.message, "", 0, file)
    also = tuple(other.device for other in record.also)
    return Target(name, also, record.summary, record.evidence, record.wave.launch, file)


def _family(specs: Specs, name: str, texts: dict[str, str]) -> Family:
    """A column, with the line of every key of its spec."""
    loaded = specs.families.get(name)
    if loaded is None:
        file = f"specs/families/{name}.yaml"
        sources.add_spec(file, texts)
        return Family(name, "", "the spec has mistakes", file, {})
    sources.add_spec(loaded.file, texts)
    lines = {_dotted(keys): span.key.line or 1 for keys, span in loaded.document.spans.items() if keys}
    return Family(name, loaded.model.language, loaded.model.summary, loaded.file, lines)


def _dotted(keys: Sequence[str | int]) -> str:
    """`ops.select.launch_paths[0]`, as manifests write it."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".")
