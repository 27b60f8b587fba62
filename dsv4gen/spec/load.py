"""Load every spec of a folder: all mistakes of all files in one report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from dsv4gen.base import paths
from dsv4gen.base.errors import DsvError, SpecError, raise_all
from dsv4gen.spec.check import validate
from dsv4gen.spec.family import FamilySpec
from dsv4gen.spec.inheritance import check_platforms
from dsv4gen.spec.loaded import Loaded
from dsv4gen.spec.platform import PlatformHead, PlatformSpec
from dsv4gen.spec.yaml_text import read_text

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Specs:
    """Everything under one specs folder, by name; `platforms` includes the parents that are no targets."""

    families: dict[str, Loaded[FamilySpec]]
    platforms: dict[str, Loaded[PlatformHead]]


def load_specs(root: Path) -> Specs:
    """Load `root/families/*.yaml` and `root/platforms/*.yaml`.

    Raises:
        SpecError, Problems: every mistake found, each with file, line and column.
    """
    errors: list[DsvError] = []
    families = load_folder(root / "families", FamilySpec, "family", errors)
    platforms = load_folder(root / "platforms", PlatformSpec, "target", errors)
    if not errors:
        errors.extend(check_platforms(platforms))
    raise_all(errors)
    return Specs(families, platforms)


def load_folder(folder: Path, model: type[M], name_key: str, errors: list[DsvError]) -> dict[str, Loaded[M]]:
    """The `*.yaml` files of one folder by name; each file's `name_key` must equal its file name."""
    found: dict[str, Loaded[M]] = {}
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
    document = read_text(path.read_bytes(), paths.display(path))
    checked = validate(document, model)
    if checked is None:
        errors.extend(document.errors)
        return None
    return Loaded(checked, document.file, document)
