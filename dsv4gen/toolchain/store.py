"""Compiled results kept by content under the user cache.

Layout: `<root>/<kind>/<first two digits>/<key>/` holds the result's files and `entry.json`, which has the
size and SHA-256 of each file and the text of the key. An entry is written in a private staging folder beside
its final place and published by one rename; it is never modified afterwards, and a reader checks it.
There is no lock: two processes may compile the same thing, and the loser of the rename drops its copy.

Known gap: entries are never removed; deleting the folder is always safe.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.base import paths
from dsv4gen.base.errors import OutputError

# Raise this when the layout of an entry or the meaning of a key changes.
FORMAT = 1
_ENTRY = "entry.json"


def content_key(parts: Sequence[str | bytes]) -> str:
    """SHA-256 over the parts in order; each part's length is hashed too, so parts cannot run together."""
    digest = hashlib.sha256(f"format {FORMAT}".encode())
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.hexdigest()


@dataclass(frozen=True)
class Store:
    """Results of one kind. `roots` are searched in order; the first writable one takes new entries."""

    kind: str
    roots: tuple[Path, ...]

    @classmethod
    def open(cls, kind: str, root: Path | None = None) -> Store:
        """The store of one kind in `root`, or in the user cache, then a per-user temporary folder."""
        if root is not None:
            return cls(kind, (root,))
        return cls(kind, (paths.cache() / "toolchain", *_private_fallback()))

    def get(self, key: str) -> Path | None:
        """The folder of a valid entry, or None; a damaged entry counts as absent."""
        for root in self.roots:
            folder = self._folder(root, key)
            if _is_valid(folder):
                return folder
        return None

    def put(self, key: str, files: Mapping[str, bytes], *, described: str = "") -> Path:
        """Publish files (name -> content) under a key and return the entry's folder.

        Raises:
            OutputError: none of the roots can be written.
        """
        refusals: list[str] = []
        for root in self.roots:
            try:
                folder = _publish(self._folder(root, key), files, described)
            except OSError as error:
                refusals.append(f"{root}: {error.strerror or error}")
                continue
            if refusals:
                _warn_once(f"compiled results go to {root}, because {'; '.join(refusals)}")
            return folder
        raise OutputError(
            "no folder for compiled results can be written: " + "; ".join(refusals),
            remedy="set DSV4GEN_CACHE_DIR to a folder you can write",
        )

    def _folder(self, root: Path, key: str) -> Path:
        return root / self.kind / key[:2] / key


def _publish(folder: Path, files: Mapping[str, bytes], described: str) -> Path:
    """Write a staging folder beside `folder` and rename it into place."""
    _make_folders(folder.parent)
    staging = Path(tempfile.mkdtemp(prefix=".staging-", dir=folder.parent))
    try:
        for name, content in files.items():
            _write_synced(staging / name, content)
        _write_synced(staging / _ENTRY, _entry_text(files, described).encode())
        staging.chmod(0o755)
        _rename_into_place(staging, folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return folder


def _make_folders(folder: Path) -> None:
    """Create a folder and its missing parents, writable by this user only."""
    for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        missing.mkdir(mode=0o755, exist_ok=True)


def _rename_into_place(staging: Path, folder: Path) -> None:
    """Publish; an existing valid entry wins, a damaged one is moved aside first."""
    try:
        staging.rename(folder)
    except OSError:
        if _is_valid(folder):
            return
        if not folder.exists():
            raise
        damaged = Path(tempfile.mkdtemp(prefix=".damaged-", dir=folder.parent))
        folder.rename(damaged / "entry")
        shutil.rmtree(damaged, ignore_errors=True)
        staging.rename(folder)


def _entry_text(files: Mapping[str, bytes], described: str) -> str:
    listed = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in sorted(files.items())
    }
    return json.dumps({"format": FORMAT, "files": listed, "key": described}, indent=1, sort_keys=True) + "\n"


def _is_valid(folder: Path) -> bool:
    """True when every listed file is there with the recorded size and digest."""
    try:
        entry = json.loads((folder / _ENTRY).read_bytes())
        return entry["format"] == FORMAT and all(
            hashlib.sha256((folder / name).read_bytes()).hexdigest() == recorded["sha256"]
            for name, recorded in entry["files"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _private_fallback() -> tuple[Path, ...]:
    """A per-user folder for temporary files; none when somebody else could have put files there."""
    folder = Path(tempfile.gettempdir()) / f"dsv4gen-{os.getuid()}"
    try:
        state = folder.lstat()
    except FileNotFoundError:
        return (folder,)
    is_ours = stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid() and not state.st_mode & 0o022
    return (folder,) if is_ours else ()


_warned: set[str] = set()


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=3)
