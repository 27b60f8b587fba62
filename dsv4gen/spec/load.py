"""Load every spec of a folder: all mistakes of all files in one report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from dsv4gen.base import paths
from dsv4gen.base.errors import DsvError, Place, SpecError, raise_all
from dsv4gen.spec.check import validate
from dsv4gen.spec.family import FamilySpec
from dsv4gen.spec.family_references import check_family, check_flags
from dsv4gen.spec.inheritance import check_platforms
from dsv4gen.spec.kernel_references import check_symbols
from dsv4gen.spec.loaded import Loaded
from dsv4gen.spec.platform import PlatformHead, PlatformSpec
from dsv4gen.spec.tuning import TuningSpec, check_tuning
from dsv4gen.spec.yaml_text import read_text

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Specs:
    """Everything under one specs folder, by name.

    `platforms` includes the parents that are no targets; `tuning` is by (target, family).
    """

    families: dict[str, Loaded[FamilySpec]]
    platforms: dict[str, Loaded[PlatformHead]]
    tuning: dict[tuple[str, str], Loaded[TuningSpec]]


def load_specs(root: Path) -> Specs:
    """Load `root/families/*.yaml`, `root/platforms/*.yaml` and `root/tuning/<target>/*.yaml`.

    Raises:
        SpecError, Problems: every mistake found, each with file, line and column.
    """
    errors: list[DsvError] = []
    families = load_folder(root / "families", FamilySpec, "family", errors)
    platforms = load_folder(root / "platforms", PlatformSpec, "target", errors)
    tuning = _load_tuning(root / "tuning", errors)
    for loaded in families.values():
        errors.extend(check_family(loaded))
    specs = Specs(families, platforms, tuning)
    errors.extend(_check_together(root, specs))
    raise_all(errors)
    return specs


def _load_tuning(folder: Path, errors: list[DsvError]) -> dict[tuple[str, str], Loaded[TuningSpec]]:
    found: dict[tuple[str, str], Loaded[TuningSpec]] = {}
    for target in sorted(path for path in folder.glob("*") if path.is_dir()):
        for family, loaded in load_folder(target, TuningSpec, "family", errors).items():
            found[target.name, family] = loaded
            if loaded.model.target != target.name:
                message = f"target is '{loaded.model.target}' but the folder is named '{target.name}'"
                errors.append(SpecError(message, place=loaded.place("target")))
    return found


def _check_together(root: Path, specs: Specs) -> list[SpecError]:
    """Checks across files; those that would need a file with mistakes of its own are left out."""
    unread_families = _stems(root / "families") - set(specs.families)
    unread_platforms = _stems(root / "platforms") - set(specs.platforms)
    errors = [*check_symbols(specs.families), *check_flags(specs.families)]
    errors.extend(check_platforms(specs.platforms, unread_platforms))
    targets = {name for name in {*specs.platforms, *unread_platforms} if not name.startswith("_")}
    for loaded in specs.tuning.values():
        if loaded.model.family not in unread_families:
            errors.extend(check_tuning(loaded, specs.families, targets))
    return errors


def _stems(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.yaml")}


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
