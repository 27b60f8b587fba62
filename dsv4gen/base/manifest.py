"""`generated/<target>/manifest.json`: what was generated, from what, and everything the runtime needs.

Sorted keys, no time, no toolchain, no host. The generator writes it last, so a tree whose files do not match
its manifest was interrupted or edited, and nothing loads from it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsv4gen.base.errors import ManifestError, Place

SCHEMA = 1
FILE_NAME = "manifest.json"


def digest_bytes(data: bytes) -> str:
    """Hex SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def canonical_json(value: object) -> str:
    """JSON with sorted keys and fixed separators, so that equal values have equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_json(value: object) -> str:
    """Digest of a JSON value, independent of key order."""
    return digest_bytes(canonical_json(value).encode())


def family_of(output: str) -> str:
    """The family that an output belongs to; `__init__` for the folder's own file."""
    return output.removeprefix("maps/").split(".")[0]


@dataclass(frozen=True)
class Manifest:
    """A manifest in memory; `data` is the JSON object."""

    data: Mapping[str, Any]

    @property
    def target(self) -> Mapping[str, Any]:
        """name, api, arch, also, facts the runtime needs."""
        value: Mapping[str, Any] = self.data["target"]
        return value

    @property
    def families(self) -> Mapping[str, Mapping[str, Any]]:
        """Family name -> its plan as JSON."""
        value: Mapping[str, Mapping[str, Any]] = self.data["families"]
        return value

    @property
    def outputs(self) -> Mapping[str, str]:
        """File name, relative to the target's folder -> SHA-256 of its bytes."""
        value: Mapping[str, str] = self.data["outputs"]
        return value

    def family_digest(self, family: str) -> str:
        """Digest of one family's plan and of every file generated for it: what results of checks are about."""
        files = {name: digest for name, digest in self.outputs.items() if family_of(name) == family}
        return digest_json([self.families[family]["digest"], files])

    def to_text(self) -> str:
        """The file's text."""
        return json.dumps(self.data, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """Read and check the manifest of one target's folder.

    Raises:
        ManifestError: missing, not JSON, of another schema, or incomplete.
    """
    path = folder / FILE_NAME
    rebuild = f"run: dsv4gen build --target {folder.name}"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ManifestError(f"no {FILE_NAME} in {folder}", remedy=rebuild) from None
    except (OSError, ValueError) as error:
        raise ManifestError(f"unreadable manifest: {error}", place=Place(str(path)), remedy=rebuild) from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else None
        raise ManifestError(
            f"manifest schema {found!r}; this dsv4gen reads schema {SCHEMA}", place=Place(str(path)), remedy=rebuild
        )
    missing = [key for key in ("target", "families", "outputs") if not isinstance(data.get(key), dict)]
    if missing:
        raise ManifestError(f"manifest without {', '.join(missing)}", place=Place(str(path)), remedy=rebuild)
    return Manifest(data)


def mismatches(manifest: Manifest, folder: Path) -> Iterator[tuple[str, str]]:
    """Files that differ from the manifest, as (name, "missing" or "edited")."""
    for name, expected in sorted(manifest.outputs.items()):
        try:
            actual = digest_bytes((folder / name).read_bytes())
        except OSError:
            yield name, "missing"
            continue
        if actual != expected:
            yield name, "edited"


def require_intact(manifest: Manifest, folder: Path) -> None:
    """Refuse a tree whose files do not match its manifest.

    Raises:
        ManifestError: names each file and how it differs.
    """
    bad = [f"{name} ({how})" for name, how in mismatches(manifest, folder)]
    if bad:
        raise ManifestError(
            f"files in {folder} do not match their manifest: {', '.join(bad)}",
            remedy=f"run: dsv4gen build --target {folder.name}",
        )
