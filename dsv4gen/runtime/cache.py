"""Compiled code objects kept by content: a file is whole and right, or it counts as absent.

Layout: `<root>/code/<two digits>/<key>.<compiler>.<suffix>`. A file is one line of JSON (length and SHA-256 of the
code object, and the text of the key for people) and then the code object. It is written in a private staging file
beside its place, synced, and renamed; afterwards nobody changes it. A reader checks the digest, and what fails the
check is compiled again and replaced.

Locks only save work: a process that holds none is slower, never wrong. The kernel drops a lock with its process, a
wait is bounded, and lock files are never removed, because removing one races with whoever waits on it.

Known gap: nothing is ever evicted. Deleting the folder is always safe.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
import stat
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.base import paths

#: raise this when the layout of a file or the meaning of a key changes
FORMAT = 1
LOCK_TIMEOUT_S = 120.0
_POLL_S = 0.01
_RETRIES = 2
_log = logging.getLogger("dsv4gen")


@dataclass(frozen=True)
class Key:
    """What a code object is made from: everything but the compiler, whose identity is part of the file's name."""

    source: str
    symbol: str
    options: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Hex digest over all fields; lengths are hashed too, so fields cannot run together."""
        digest = hashlib.sha256(f"format {FORMAT}".encode())
        for part in (self.source, self.symbol, *self.options):
            raw = part.encode()
            digest.update(len(raw).to_bytes(8, "little") + raw)
        return digest.hexdigest()


@dataclass(frozen=True)
class Cache:
    """Folders searched in order; the first that can be written takes new entries."""

    roots: tuple[Path, ...]

    @classmethod
    def open(cls, chosen: Path | None = None) -> Cache:
        """The option, else the environment or the user's cache; then a private temporary folder."""
        first = chosen if chosen is not None else paths.cache()
        return cls(tuple(dict.fromkeys((first, _temporary_root()))))

    def get(self, key: Key, compiler: str, suffix: str) -> bytes | None:
        """A valid code object, or None; an empty `compiler` takes one of any, the first by the hashes in names."""
        for root in self.roots:
            if not _is_safe(root):
                continue
            for path in _entries(root, key, compiler, suffix):
                content = _read(path)
                if content is not None:
                    return content
        return None

    def put(self, key: Key, compiler: str, suffix: str, content: bytes, described: Mapping[str, str]) -> Path | None:
        """Publish a code object; None when no folder takes it, which costs time but breaks nothing."""
        refusals: list[str] = []
        for root in self.roots:
            path = _path(root, key, compiler, suffix)
            try:
                _make_folder(root, path.parent)
                _publish(path, content, described)
            except OSError as error:
                refusals.append(f"{root}: {error.strerror or error}")
                continue
            if refusals:
                _warn_once(f"compiled kernels go to {root}, because {'; '.join(refusals)}")
            return path
        _warn_once(f"compiled kernels are not kept, because {'; '.join(refusals)}; set DSV4GEN_CACHE_DIR")
        return None

    @contextlib.contextmanager
    def lock(self, key: Key, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[bool]:
        """One compile per key at a time, where that can be had; yields whether it was."""
        handle = self._open_lock(key)
        if handle is None:
            yield False
            return
        try:
            yield _wait_for(handle, timeout_s)
        finally:
            os.close(handle)

    def _open_lock(self, key: Key) -> int | None:
        for root in self.roots:
            path = root / "locks" / f"{key.digest}.lock"
            try:
                _make_folder(root, path.parent)
                return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError:
                continue
        return None


def _path(root: Path, key: Key, compiler: str, suffix: str) -> Path:
    tag = hashlib.sha256(compiler.encode()).hexdigest()[:12]
    return root / "code" / key.digest[:2] / f"{key.digest}.{tag}.{suffix}"


def _entries(root: Path, key: Key, compiler: str, suffix: str) -> Sequence[Path]:
    if compiler:
        return (_path(root, key, compiler, suffix),)
    return sorted((root / "code" / key.digest[:2]).glob(f"{key.digest}.*.{suffix}"))


def _read(path: Path) -> bytes | None:
    """The content of a whole entry. Network file systems fail a read now and then, so errors get a second try."""
    for _ in range(_RETRIES):
        try:
            header, _, content = path.read_bytes().partition(b"\n")
            recorded = json.loads(header)
            if recorded["format"] == FORMAT and recorded["sha256"] == hashlib.sha256(content).hexdigest():
                return content
            _log.warning("damaged cache entry %s: it is compiled again", path)
            return None
        except FileNotFoundError:
            return None
        except OSError as error:
            _log.info("cannot read %s: %s", path, error)
        except (ValueError, KeyError, TypeError):
            _log.warning("damaged cache entry %s: it is compiled again", path)
            return None
    return None


def _publish(path: Path, content: bytes, described: Mapping[str, str]) -> None:
    header = {"format": FORMAT, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), **described}
    handle, name = tempfile.mkstemp(prefix=".staging-", dir=path.parent)
    staging = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(json.dumps(header, sort_keys=True).encode() + b"\n" + content)
            stream.flush()
            os.fsync(stream.fileno())
        staging.chmod(0o644)
        staging.replace(path)
    except OSError:
        staging.unlink(missing_ok=True)
        raise


def _make_folder(root: Path, folder: Path) -> None:
    """Create a folder below a root. A root below the shared temporary folder is private and must be ours."""
    root.mkdir(parents=True, exist_ok=True, mode=0o700 if root == _temporary_root() else 0o777)
    if not _is_safe(root):
        raise PermissionError(errno.EPERM, "it belongs to another user or others can write to it")
    folder.mkdir(parents=True, exist_ok=True)


def _is_safe(root: Path) -> bool:
    """Whether what lies in a root may be run: a stranger can prepare a folder in the shared temporary folder."""
    if root != _temporary_root():
        return True
    try:
        status = root.lstat()
    except OSError:
        return True
    shared = stat.S_IWGRP | stat.S_IWOTH
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & shared


def _wait_for(handle: int, timeout_s: float) -> bool:
    import fcntl

    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                _log.warning("waited %.0f s for another process that compiles; compiling here as well", timeout_s)
                return False
            time.sleep(_POLL_S)
        except OSError:
            return False


def _temporary_root() -> Path:
    return Path(tempfile.gettempdir()) / f"dsv4gen-{os.getuid()}"


_warned: set[str] = set()


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=4)
