"""Folders with further specs, templates and references, added beside the package's own.

An extension is a folder laid out like a checkout: `specs/`, `templates/` and `reference/`, of which any may be
missing. It adds; it never replaces: a family, platform, tuning file, template or reference that exists twice is an
error that names both files. A distribution declares its extension as an entry point whose value is the package that
is the folder:

    [project.entry-points."dsv4gen.specs"]
    acme = "acme_kernels"

`DSV4GEN_EXTENSIONS` names folders instead of what is installed, or `none`. Known gap: the parents of a dotted
package name are imported to find it; the package itself never is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from dsv4gen.base import env, paths
from dsv4gen.base.errors import SpecError

GROUP = "dsv4gen.specs"
NONE = "none"


class Extension(NamedTuple):
    """One extension: who added it, in words for messages, and its folder."""

    origin: str
    folder: Path


def extensions() -> tuple[Extension, ...]:
    """All extensions: the folders of DSV4GEN_EXTENSIONS in order, or those of installed distributions by name.

    Raises:
        SpecError: a folder or package that is not there.
    """
    chosen = env.text(env.EXTENSIONS)
    if chosen == NONE:
        return ()
    if chosen:
        return tuple(_named(Path(word).expanduser()) for word in chosen.split(os.pathsep) if word)
    return _installed()


def spec_folders() -> tuple[Path, ...]:
    """The package's specs folder, then those of extensions."""
    return (paths.specs(), *_parts("specs"))


def template_folders() -> tuple[Path, ...]:
    """The package's templates folder, then those of extensions."""
    return (paths.templates(), *_parts("templates"))


def reference_folders(own: Path) -> tuple[Path, ...]:
    """The `reference` folders of extensions, which hold modules beside those in the package's `own` folder.

    Raises:
        SpecError: a module that exists twice.
    """
    found = tuple(_parts("reference"))
    modules: dict[str, Path] = {}
    for path in (path for folder in (own, *found) for path in sorted(folder.glob("*.py"))):
        if path.name in modules and path.name != "__init__.py":
            message = f"the reference {path.stem} exists twice: {modules[path.name]} and {path}"
            raise SpecError(message, remedy="an extension adds and never replaces: rename it")
        modules[path.name] = path
    return found


def _parts(kind: str) -> Iterator[Path]:
    for extension in extensions():
        folder = extension.folder / kind
        if folder.is_dir():
            yield folder


def _named(folder: Path) -> Extension:
    if not folder.is_dir():
        name = env.EXTENSIONS.name
        raise SpecError(f"{name}: {folder} is not a folder", remedy=f"create it, or set {name}={NONE}")
    return Extension(f"{env.EXTENSIONS.name}={folder}", folder.resolve())


@lru_cache(maxsize=1)
def _installed() -> tuple[Extension, ...]:
    """Reading the metadata of all distributions takes milliseconds, so it is done once per process."""
    found = sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))
    return tuple(_located(entry) for entry in found)


def _located(entry: EntryPoint) -> Extension:
    distribution = f" of {entry.dist.name}" if entry.dist is not None else ""
    origin = f"entry point {entry.name}{distribution}"
    try:
        package = find_spec(entry.value)
    except ImportError:
        package = None
    places = list(package.submodule_search_locations or ()) if package is not None else []
    if len(places) != 1:
        message = f"{origin} in {GROUP}: {entry.value!r} is not a package with one folder"
        raise SpecError(message, remedy=f"repair or uninstall it, or set {env.EXTENSIONS.name}={NONE}")
    return Extension(origin, Path(places[0]).resolve())
