"""Where new files belong: the checkout, or the folder of an extension.

Both are laid out alike, except that the checkout's references are part of the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.base import env, extensions, paths
from dsv4gen.base.errors import OutputError, UsageError


@dataclass(frozen=True)
class Home:
    """A folder with `specs/`, `templates/`, `tests/` and the references' folder."""

    root: Path
    reference: Path

    @property
    def is_searched(self) -> bool:
        """Whether builds find what is put here without being told."""
        return self.root / "specs" == paths.specs() or self.root in {one.folder for one in extensions.extensions()}


def find_home(folder: Path | None) -> Home:
    """The extension folder given, or the checkout.

    Raises:
        UsageError: no folder given, and the specs in use are not those of a checkout.
    """
    if folder is not None:
        return Home(folder.resolve(), folder.resolve() / "reference")
    root = paths.checkout()
    if root is None or paths.specs() != root / "specs":
        raise UsageError(
            "new files belong into a checkout, and the specs in use are not those of one",
            remedy=f"pass --folder DIR, and set {env.EXTENSIONS.name}=DIR for later commands",
        )
    return Home(root, paths.PACKAGE / "reference")


def write_new(files: Mapping[Path, str]) -> list[Path]:
    """Write files that must not exist yet; when one cannot be written, none stays.

    Raises:
        UsageError: a file that exists. OutputError: a folder that cannot be written.
    """
    existing = [path for path in files if path.exists()]
    if existing:
        shown = ", ".join(paths.display(path) for path in existing)
        raise UsageError(f"already there: {shown}", remedy="choose another name, or remove it first")
    written: list[Path] = []
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as stream:
                written.append(path)
                stream.write(text)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        raise OutputError(f"cannot write new files: {error}", remedy="check the folder's permissions") from error
    return written
