"""Remember finished builds by content, so that a build with nothing to do parses nothing.

A stamp's name is the digest of everything that goes in (spec, template and generator bytes, the request); its
content is the digest of each manifest that came out. A stamp only saves work: without it the build runs in full and
writes the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from dsv4gen.base import extensions, paths
from dsv4gen.base.errors import ManifestError
from dsv4gen.base.manifest import FILE_NAME, digest_bytes, mismatches, read_manifest

_STAGES = ("base", "spec", "target", "prove", "plan", "render", "lint", "emit")


def input_digest(specs: Path, templates: Path) -> str:
    """Digest of all input bytes, those of extensions included."""
    digest = hashlib.sha256()
    further = (*extensions.spec_folders()[1:], *extensions.template_folders()[1:])
    roots = [specs, templates, *further, *(paths.PACKAGE / stage for stage in _STAGES)]
    for root in roots:
        for path in sorted(root.rglob("*")):
            if path.suffix in (".yaml", ".jinja", ".py") and path.is_file():
                digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def request_key(inputs: str, words: Iterable[str]) -> str:
    """The name of the stamp for one request, given the digest of its inputs."""
    return digest_bytes("\0".join((inputs, *words)).encode())


def is_current(key: str, folders: Iterable[Path]) -> bool:
    """Whether a finished build with these inputs made exactly what the folders hold."""
    try:
        recorded = json.loads(_file(key).read_text(encoding="utf-8"))
        return all(recorded[folder.name] == _state(folder) for folder in folders)
    except (OSError, ValueError, KeyError, TypeError, ManifestError):
        return False


def remember(key: str, folders: Iterable[Path]) -> None:
    """Record a finished build; an unwritable cache is no error."""
    try:
        path = _file(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({folder.name: _state(folder) for folder in folders}), encoding="utf-8")
    except (OSError, ManifestError):
        return


def _file(key: str) -> Path:
    return paths.cache() / "builds" / f"{key[:32]}.json"


def _state(folder: Path) -> str:
    manifest = read_manifest(folder)
    if any(mismatches(manifest, folder)):
        raise ManifestError(f"{folder} does not match its manifest")
    return digest_bytes((folder / FILE_NAME).read_bytes())
