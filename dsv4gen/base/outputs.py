"""Files that a user asked for: refused before a long run where they cannot be written, and never half-written."""

from __future__ import annotations

import os
from pathlib import Path

from dsv4gen.base.errors import OutputError, UsageError

#: names of files that are being written begin so
STAGED = ".dsv4gen-staged-"
_REMEDY = "name another place"


def written_path(text: str | Path, what: str) -> Path:
    """The path that a user wrote.

    Args:
        what: how messages name it, such as `--out`.

    Raises:
        UsageError: an empty one, which would mean the current folder.
    """
    if not str(text):
        raise UsageError(f"{what} is empty", remedy="name a path, . for the current folder, or leave it out")
    return Path(text)


def require_file(path: Path, what: str, *, parents: bool = False) -> None:
    """Make sure that a file can be written; leaves no trace.

    Args:
        what: how messages name the path, such as `--json`.
        parents: whether missing folders are made when it is written.

    Raises:
        UsageError: it is a folder, or its folder is missing, is none, or cannot be written to.
    """
    try:
        if path.is_dir():
            raise UsageError(f"{what} {path} is a folder", remedy="name a file in it")
        if path.exists():
            with path.open("ab"):
                pass
            if not path.is_file():
                return
        _require_room(path.parent, what, path, parents)
    except (OSError, ValueError) as error:
        raise _refused(what, path, error) from error


def require_folder(path: Path, what: str) -> None:
    """Make sure that files can be written to a folder, which need not be there yet; leaves no trace.

    Raises:
        UsageError: it, or what it would be made in, is a file or cannot be written to.
    """
    try:
        _require_room(path, what, path, parents=True)
    except (OSError, ValueError) as error:
        raise _refused(what, path, error) from error


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file by a whole new one; a reader sees the old or the new one. A pipe or device is written to.

    Raises:
        OutputError: it cannot be written; an old file is as it was.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            replace_file(path.resolve(), data)
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror or error}", remedy=_REMEDY) from error


def replace_file(path: Path, data: bytes) -> None:
    """Put a whole new file in the place of an old one, or of none.

    Raises:
        OSError: the old file, if any, is as it was.
    """
    staged = stage(path, data)
    try:
        os.replace(staged, path)  # noqa: PTH105 - the atomic rename itself
    finally:
        staged.unlink(missing_ok=True)


def stage(path: Path, data: bytes) -> Path:
    """Write a file beside its place, on the disk when this returns; the caller renames it."""
    import tempfile

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=STAGED, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o644)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def _require_room(folder: Path, what: str, path: Path, parents: bool) -> None:
    """A file can be made in the folder, or in the nearest one above it that is there."""
    import tempfile

    there = folder
    while parents and not there.exists() and there != there.parent:
        there = there.parent
    if not there.exists():
        raise UsageError(f"{what} {path}: there is no folder {there}", remedy="make it first, or name another")
    if not there.is_dir():
        raise UsageError(f"{what} {path}: {there} is not a folder", remedy=_REMEDY)
    with tempfile.TemporaryFile(dir=there):
        pass


def _refused(what: str, path: Path, error: OSError | ValueError) -> UsageError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return UsageError(f"{what} {path} cannot be written: {reason}", remedy=_REMEDY)
