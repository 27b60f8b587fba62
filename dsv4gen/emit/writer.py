"""Write one target's folder so that it is whole, or refused by name.

Each file is written beside its place and renamed; the manifest comes last. A journal file marks a build in
progress: it tells a later build that files without a manifest are ours. Nothing but files that the old manifest
or the journal lists is ever removed, and unchanged files keep their time stamps.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from dsv4gen.base.errors import ManifestError, OutputError
from dsv4gen.base.manifest import FILE_NAME, Manifest, read_manifest
from dsv4gen.base.outputs import STAGED, replace_file, stage

JOURNAL = ".dsv4gen-building.json"


def write_tree(folder: Path, files: Mapping[str, bytes], manifest: Manifest) -> list[str]:
    """Make `folder` hold exactly `files` and the manifest (plus what is not ours); returns the changed names.

    Raises:
        OutputError: not a folder of ours, not writable, or no space; nothing half-written is left.
    """
    files = {**files, FILE_NAME: manifest.to_text().encode()}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        ours = _owned_names(folder)
        _remove_staged(folder)
        changed = [name for name in files if not _same(folder / name, files[name])]
        orphans = sorted(name for name in ours if name not in files and (folder / name).is_file())
        if changed or orphans:
            _replace(folder, {name: files[name] for name in changed}, orphans, sorted(ours | set(files)))
        (folder / JOURNAL).unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot write {folder}: {error.strerror or error}",
            remedy="check the path, its permissions and the free space, or choose another folder with --out",
        ) from error
    return sorted({*changed, *orphans})


def _owned_names(folder: Path) -> set[str]:
    """Files an earlier build of ours put here.

    Raises:
        OutputError: the folder holds files and no trace of an earlier build.
    """
    journal = folder / JOURNAL
    names: set[str] = set()
    if journal.is_file():
        try:
            names |= set(json.loads(journal.read_text(encoding="utf-8")))
        except ValueError:
            names |= {FILE_NAME}
    try:
        names |= set(read_manifest(folder).outputs) | {FILE_NAME}
    except ManifestError:
        names |= {FILE_NAME} if (folder / FILE_NAME).is_file() else set()
    strangers = [entry.name for entry in folder.iterdir() if not entry.name.startswith((".", "__pycache__"))]
    if not names and strangers and not journal.is_file():
        raise OutputError(
            f"{folder} is not empty and was not made by dsv4gen (it holds {', '.join(sorted(strangers)[:3])})",
            remedy="choose an empty folder with --out, or move these files away",
        )
    return names


def _replace(folder: Path, changed: Mapping[str, bytes], orphans: Iterable[str], journal: list[str]) -> None:
    replace_file(folder / JOURNAL, json.dumps(journal).encode())
    ordered = sorted(changed, key=lambda name: (name == FILE_NAME, name))
    staged: dict[str, Path] = {}
    try:
        for name in ordered:
            staged[name] = stage(folder / name, changed[name])
        for name in ordered:
            os.replace(staged.pop(name), folder / name)  # noqa: PTH105 - the atomic rename itself
    finally:
        for path in staged.values():
            path.unlink(missing_ok=True)
    for name in orphans:
        (folder / name).unlink(missing_ok=True)


def _same(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data
    except OSError:
        return False


def _remove_staged(folder: Path) -> None:
    for left_over in folder.rglob(f"{STAGED}*"):
        left_over.unlink(missing_ok=True)
