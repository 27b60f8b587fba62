"""Where specs, templates, generated files and caches live.

Order for inputs: environment variable, then the data inside an installed wheel (`dsv4gen/_data`), then the
folder beside the package (a checkout). The packaged data comes before the sibling because in a plain install
a sibling named `specs` would belong to another distribution.
"""

from __future__ import annotations

import os
from pathlib import Path

from dsv4gen.base import env
from dsv4gen.base.errors import EnvironmentValueError

PACKAGE = Path(__file__).resolve().parent.parent


def checkout() -> Path | None:
    """The checkout's root when the package runs from one, else None."""
    root = PACKAGE.parent
    return root if (root / "specs").is_dir() and (root / "pyproject.toml").is_file() else None


def _input(variable: env.Variable, kind: str) -> Path:
    chosen = env.path(variable)
    if chosen is not None:
        if not chosen.is_dir():
            remedy = f"create it or unset {variable.name}"
            raise EnvironmentValueError(f"{variable.name}={chosen} is not a folder", remedy=remedy)
        return chosen
    packaged = PACKAGE / "_data" / kind
    return packaged if packaged.is_dir() else PACKAGE.parent / kind


def specs() -> Path:
    """The folder with `families/` and `platforms/`."""
    return _input(env.SPECS_DIR, "specs")


def templates() -> Path:
    """The folder with `hip_cuda/`, `triton/`, `device/` and `macros/`."""
    return _input(env.TEMPLATES_DIR, "templates")


def generated() -> Path:
    """The folder that holds one folder per built target.

    A checkout uses its own `generated/`; an installed package reads its wheel's copy unless the environment
    names another folder.
    """
    chosen = env.path(env.GENERATED_DIR)
    if chosen is not None:
        return chosen
    root = checkout()
    if root is not None:
        return root / "generated"
    packaged = PACKAGE / "_data" / "generated"
    return packaged if packaged.is_dir() else Path.cwd() / "generated"


def cache() -> Path:
    """The folder for compiled code objects and emulator builds; not created here."""
    chosen = env.path(env.CACHE_DIR)
    if chosen is not None:
        return chosen
    home = os.environ.get("XDG_CACHE_HOME")
    if home:
        return Path(home) / "dsv4gen"
    try:
        return Path.home() / ".cache" / "dsv4gen"
    except RuntimeError:
        import tempfile

        return Path(tempfile.gettempdir()) / f"dsv4gen-{os.getuid()}"


def require_cache() -> None:
    """For commands: a cache that was named can be a folder. The runtime does without one, and warns.

    Raises:
        EnvironmentValueError: it, or what it would be made in, is something else.
    """
    chosen = env.path(env.CACHE_DIR)
    if chosen is None:
        return
    try:
        there = next(path for path in (chosen, *chosen.absolute().parents) if path.exists())
    except OSError:  # a place that cannot be looked at is one that cannot be written to, which commands do without
        return
    if not there.is_dir():
        name, which = env.CACHE_DIR.name, "" if there == chosen else f": {there}"
        raise EnvironmentValueError(f"{name}={chosen}{which} is not a folder", remedy=f"name a folder or unset {name}")


def display(path: Path) -> str:
    """A path as shown to users and written to files: relative to the checkout or to the working folder."""
    try:
        resolved = path.resolve()
    except (OSError, RuntimeError):  # a link that leads to itself
        return str(path)
    for root in (checkout(), Path.cwd().resolve()):
        if root is not None and resolved.is_relative_to(root):
            return resolved.relative_to(root).as_posix()
    return str(path)
