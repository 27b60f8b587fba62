"""What differs between a target's folder and what its specs make today."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.base.errors import ManifestError
from dsv4gen.base.manifest import FILE_NAME, Manifest, digest_bytes, read_manifest


@dataclass(frozen=True)
class Drift:
    """One file that is not as it should be: `stale`, `edited`, `missing` or `orphan`, and the repair."""

    file: str
    kind: str
    repair: str


def find_drift(folder: Path, files: Mapping[str, bytes], manifest: Manifest, shown: str, command: str) -> list[Drift]:
    """Compare a folder with the files and manifest its specs make.

    stale: unchanged since it was built, but the specs moved on. edited: changed by hand. missing: gone.
    orphan: listed by the folder's manifest, no longer made. `shown` is the folder as users see it.
    """
    try:
        old: Mapping[str, str] = read_manifest(folder).outputs
    except ManifestError:
        return [Drift(f"{shown}/{FILE_NAME}", "missing", command)]
    found = [
        Drift(f"{shown}/{name}", kind, command)
        for name, data in sorted(files.items())
        if (kind := _kind(folder / name, data, old.get(name)))
    ]
    found += [
        Drift(f"{shown}/{name}", "orphan", command)
        for name in sorted(set(old) - set(files))
        if (folder / name).exists()
    ]
    if not found and (folder / FILE_NAME).read_text(encoding="utf-8") != manifest.to_text():
        found.append(Drift(f"{shown}/{FILE_NAME}", "stale", command))
    return found


def _kind(path: Path, data: bytes, recorded: str | None) -> str:
    if not path.is_file():
        return "missing"
    actual = path.read_bytes()
    if actual == data:
        return ""
    return "stale" if recorded == digest_bytes(actual) else "edited"
