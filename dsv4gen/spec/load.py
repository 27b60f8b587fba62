"""Load every spec of the package's folder and of its extensions: all mistakes of all files in one report."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from dsv4gen.base import paths
from dsv4gen.base.errors import DsvError, Place, SpecError, raise_all
from dsv4gen.spec.check import validate
from dsv4gen.spec.family import FamilySpec
from dsv4gen.spec.family_references import check_family, check_flags
from dsv4gen.spec.files import check_files
from dsv4gen.spec.inheritance import check_platforms
from dsv4gen.spec.kernel_references import check_symbols
from dsv4gen.spec.loaded import Loaded
from dsv4gen.spec.platform import PlatformHead, PlatformSpec
from dsv4gen.spec.tuning import TuningSpec, check_tuning
from dsv4gen.spec.yaml_text import read_text

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Specs:
    """Everything under the specs folders, by name.

    `platforms` includes the parents that are no targets; `tuning` is by (target, family).
    """

    families: dict[str, Loaded[FamilySpec]]
    platforms: dict[str, Loaded[PlatformHead]]
    tuning: dict[tuple[str, str], Loaded[TuningSpec]]


def load_specs(*roots: Path) -> Specs:
    """Load `families/*.yaml`, `platforms/*.yaml` and `tuning/<target>/*.yaml` of every root as one set.

    The first root has families and platforms; the others, those of extensions, add to it.

    Raises:
        SpecError, Problems: every mistake found, each with file, line and column; a name described twice.
    """
    specs, errors = read_specs(*roots)
    raise_all(errors)
    return specs


def read_specs(*roots: Path) -> tuple[Specs, list[DsvError]]:
    """What `load_specs` loads, and every mistake; files that could not be read as their kind are left out.

    For reports on specs with mistakes. Nothing may be generated from specs that have any.
    """
    errors: list[DsvError] = []
    families = _load_kind(roots, "families", FamilySpec, "family", errors)
    platforms = _load_kind(roots, "platforms", PlatformSpec, "target", errors)
    tuning = _load_tuning(roots, errors)
    for loaded in families.values():
        errors.extend(check_family(loaded))
    errors.extend(check_files(families.values()))
    specs = Specs(families, platforms, tuning)
    errors.extend(_check_together(roots, specs))
    return specs, errors


def _load_kind(
    roots: Sequence[Path], kind: str, model: type[M], name_key: str, errors: list[DsvError]
) -> dict[str, Loaded[M]]:
    """One kind of file from every root that has it."""
    found: dict[str, Loaded[M]] = {}
    for folder in (root / kind for root in roots if root is roots[0] or (root / kind).is_dir()):
        for name, loaded in load_folder(folder, model, name_key, errors).items():
            if name in found:
                errors.append(_described_twice(found[name], loaded, name_key))
            else:
                found[name] = loaded
    return dict(sorted(found.items()))


def _described_twice(first: Loaded[M], second: Loaded[M], name_key: str) -> SpecError:
    name = getattr(second.model, name_key)
    return SpecError(
        f"the {name_key} '{name}' is described in {first.file} too",
        place=second.place(name_key),
        remedy="an extension adds and never replaces: rename it, or leave the extension out",
    )


def _load_tuning(roots: Iterable[Path], errors: list[DsvError]) -> dict[tuple[str, str], Loaded[TuningSpec]]:
    found: dict[tuple[str, str], Loaded[TuningSpec]] = {}
    for target in sorted(path for root in roots for path in (root / "tuning").glob("*") if path.is_dir()):
        for family, loaded in load_folder(target, TuningSpec, "family", errors).items():
            if (target.name, family) in found:
                errors.append(_described_twice(found[target.name, family], loaded, "family"))
            found[target.name, family] = loaded
            if loaded.model.target != target.name:
                message = f"target is '{loaded.model.target}' but the folder is named '{target.name}'"
                errors.append(SpecError(message, place=loaded.place("target")))
    return found


def _check_together(roots: Iterable[Path], specs: Specs) -> list[SpecError]:
    """Checks across files; those that would need a file with mistakes of its own are left out."""
    unread_families = _stems(roots, "families") - set(specs.families)
    unread_platforms = _stems(roots, "platforms") - set(specs.platforms)
    errors = [*check_symbols(specs.families), *check_flags(specs.families)]
    errors.extend(check_platforms(specs.platforms, unread_platforms))
    targets = {name for name in {*specs.platforms, *unread_platforms} if not name.startswith("_")}
    for loaded in specs.tuning.values():
        if loaded.model.family not in unread_families:
            errors.extend(check_tuning(loaded, specs.families, targets))
    return errors


def _stems(roots: Iterable[Path], kind: str) -> set[str]:
    return {path.stem for root in roots for path in (root / kind).glob("*.yaml")}


def load_folder(folder: Path, model: type[M], name_key: str, errors: list[DsvError]) -> dict[str, Loaded[M]]:
    """The `*.yaml` files of one folder by name; each file's `name_key` must equal its file name."""
    found: dict[str, Loaded[M]] = {}
    if not folder.is_dir():
        errors.append(SpecError("there is no such folder", place=Place(paths.display(folder))))
    for path in sorted(folder.glob("*.yml")):
        remedy = f"rename it to {path.stem}.yaml"
        errors.append(SpecError("only *.yaml files are read", place=Place(paths.display(path)), remedy=remedy))
    for path in sorted(folder.glob("*.yaml")):
        loaded = load_file(path, model, errors)
        if loaded is None:
            continue
        name = getattr(loaded.model, name_key)
        if name != path.stem:
            message = f"{name_key} is '{name}' but the file is named '{path.name}'"
            place = loaded.place(name_key)
            errors.append(SpecError(message, place=place, remedy=f"rename the file to {name}.yaml"))
        found[path.stem] = loaded
    return found


def load_file(path: Path, model: type[M], errors: list[DsvError]) -> Loaded[M] | None:
    """One file, or None after adding its mistakes to `errors`."""
    try:
        if stat.S_ISFIFO(path.stat().st_mode):  # reading would wait for whoever writes
            errors.append(SpecError("cannot be read: Is a pipe", place=Place(paths.display(path))))
            return None
        raw = path.read_bytes()
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        errors.append(SpecError(message, place=Place(paths.display(path))))
        return None
    document = read_text(raw, paths.display(path))
    checked = validate(document, model)
    if checked is None:
        errors.extend(document.errors)
        return None
    return Loaded(checked, document.file, document)
