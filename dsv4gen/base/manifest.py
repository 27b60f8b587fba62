"""`generated/<target>/manifest.json`: what was generated and from what; `plans/<family>.json`: all the runtime needs.

The manifest is small, because choosing a target reads those of all targets; a family's plan is read when the family is
used. Sorted keys, no time, no toolchain, no host. The generator writes the manifest last, so a tree whose files do not
match it was interrupted or edited, and nothing loads from it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsv4gen.base.errors import ManifestError, Place
from dsv4gen.base.plain_data import PlainDataError
from dsv4gen.base.plan_shape import check_manifest, check_plan

SCHEMA = 5
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
    return output.rpartition("/")[2].split(".")[0]


def plan_file(family: str) -> str:
    """The file of a family's plan, relative to the target's folder."""
    return f"plans/{family}.json"


def json_text(value: object) -> str:
    """A JSON file for readers: one value a line, sorted keys."""
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


class Plans(Mapping[str, Mapping[str, Any]]):
    """Family name -> its plan as JSON, read from its file and checked when first asked for."""

    def __init__(self, names: Iterable[str], read: Callable[[str], bytes], folder: Path | None = None) -> None:
        self._names = tuple(sorted(names))
        self._read = read
        self._folder = folder or Path()
        self._known: dict[str, Mapping[str, Any]] = {}

    def __getitem__(self, family: str) -> Mapping[str, Any]:
        if family not in self._names:
            raise KeyError(family)
        if family not in self._known:
            self._known[family] = _plan(self._folder / plan_file(family), self._read(plan_file(family)))
        return self._known[family]

    def __contains__(self, family: object) -> bool:
        return family in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True)
class Manifest:
    """A manifest in memory: `data` is the JSON object, `families` the plans of the families it lists."""

    data: Mapping[str, Any]
    families: Mapping[str, Mapping[str, Any]]

    @property
    def target(self) -> Mapping[str, Any]:
        """name, api, arch, also, units and dies of its products, facts the runtime needs."""
        value: Mapping[str, Any] = self.data["target"]
        return value

    @property
    def outputs(self) -> Mapping[str, str]:
        """File name, relative to the target's folder -> SHA-256 of its bytes."""
        value: Mapping[str, str] = self.data["outputs"]
        return value

    def family_digest(self, family: str) -> str:
        """Digest of every file generated for one family, its plan included: what results of checks are about."""
        return digest_json({name: digest for name, digest in self.outputs.items() if family_of(name) == family})

    def to_text(self) -> str:
        """The file's text."""
        return json_text(self.data)


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
    except IsADirectoryError:
        raise ManifestError(
            "a folder is in the manifest's place", place=Place(str(path)), remedy=_remove(path)
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ManifestError(f"unreadable manifest: {error}", place=Place(str(path)), remedy=rebuild) from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        found = data.get("schema") if isinstance(data, dict) else None
        raise ManifestError(
            f"manifest schema {found!r}; this dsv4gen reads schema {SCHEMA}", place=Place(str(path)), remedy=rebuild
        )
    try:
        check_manifest(data, "")
    except PlainDataError as error:
        raise ManifestError(f"damaged manifest: {error}", place=Place(str(path)), remedy=rebuild) from None
    return Manifest(data, Plans(data["families"], lambda name: _read_listed(folder, name, data["outputs"]), folder))


def _read_listed(folder: Path, name: str, outputs: Mapping[str, str]) -> bytes:
    """A file's bytes, if they are those the manifest lists."""
    rebuild = f"run: dsv4gen build --target {folder.name}"
    try:
        data = (folder / name).read_bytes()
    except IsADirectoryError:
        raise ManifestError(f"{folder / name} is a folder", remedy=_remove(folder / name)) from None
    except (OSError, ValueError) as error:
        raise ManifestError(f"cannot read {folder / name}: {error}", remedy=rebuild) from error
    if digest_bytes(data) != outputs.get(name):
        raise ManifestError(f"{folder / name} does not match its manifest", remedy=rebuild)
    return data


def _plan(path: Path, data: bytes) -> Mapping[str, Any]:
    """A family's plan from its file.

    Raises:
        ManifestError: no JSON, or a value that no plan has.
    """
    try:
        plan = json.loads(data)
        check_plan(plan)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"damaged plan: {error}", place=Place(str(path)), remedy="run: dsv4gen build") from None
    found: Mapping[str, Any] = plan
    return found


def _remove(path: Path) -> str:
    return f"remove {path}, which dsv4gen did not make, then run: dsv4gen build --target {path.parent.name}"


def mismatches(manifest: Manifest, folder: Path) -> Iterator[tuple[str, str]]:
    """Files that differ from the manifest, as (name, "missing", "edited" or "a folder")."""
    for name, expected in sorted(manifest.outputs.items()):
        try:
            actual = digest_bytes((folder / name).read_bytes())
        except IsADirectoryError:
            yield name, "a folder"
            continue
        except (OSError, ValueError):
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
            remedy=f"{'remove what is a folder, then ' * any('(a folder)' in one for one in bad)}run: "
            f"dsv4gen build --target {folder.name}",
        )
