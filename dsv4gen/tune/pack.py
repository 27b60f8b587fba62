"""Candidates in a file: the family as it is, and once more per tile that may replace one kernel's."""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsv4gen.base.errors import Place, UsageError
from dsv4gen.base.manifest import FILE_NAME, Manifest, digest_bytes, digest_json, json_text, plan_file
from dsv4gen.base.outputs import write_whole
from dsv4gen.base.tiles import tile_words

KIND, SCHEMA = "dsv4gen candidates", 1
Json = Mapping[str, Any]


@dataclass(frozen=True)
class Variant:
    """The family with one kernel's tile replaced; `entry` is its part of the manifest, `files` its modules."""

    kernel: str
    tile: Mapping[str, int]
    entry: Json
    files: Mapping[str, str]

    @property
    def name(self) -> str:
        """Kernel and tile in words; `base` for the family as it is."""
        return f"{self.kernel} {tile_words(self.tile)}" if self.kernel else "base"

    @property
    def digest(self) -> str:
        """Of everything that decides what runs."""
        return digest_json({"files": dict(self.files), "kernels": self.entry["kernels"]})


@dataclass(frozen=True)
class Pack:
    """All candidates of one family on one target.

    Attributes:
        manifest: the target's, with this family only and without outputs.
        axes: per kernel, the sizes that its predicates may use.
    """

    target: str
    family: str
    manifest: Json
    base: Variant
    variants: Sequence[Variant]
    axes: Mapping[str, Sequence[str]]

    def write(self, path: Path) -> None:
        """One compressed file.

        Raises:
            OutputError: it cannot be written.
        """
        data = {
            "kind": KIND,
            "schema": SCHEMA,
            "target": self.target,
            "family": self.family,
            "manifest": self.manifest,
            "axes": {kernel: list(names) for kernel, names in self.axes.items()},
            "variants": [_plain(variant, self.base) for variant in (self.base, *self.variants)],
        }
        write_whole(path, lzma.compress(json.dumps(data, sort_keys=True).encode()))

    def unpack(self, variant: Variant, root: Path) -> Path:
        """The target's folder of one variant, made below `root` when it is not there."""
        folder = root / digest_bytes(variant.name.encode())[:12] / self.target
        if (folder / FILE_NAME).exists():
            return folder
        (folder / "plans").mkdir(parents=True, exist_ok=True)
        files = {**variant.files, plan_file(self.family): json_text(variant.entry)}
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        outputs = {name: digest_bytes(text.encode()) for name, text in files.items()}
        manifest = Manifest({**self.manifest, "outputs": outputs}, {self.family: variant.entry})
        (folder / FILE_NAME).write_text(manifest.to_text(), encoding="utf-8")
        return folder


def read_pack(path: Path) -> Pack:
    """Read what `write` wrote.

    Raises:
        UsageError: not there, or no pack of this schema.
    """
    place = Place(str(path))
    try:
        data = json.loads(lzma.decompress(path.read_bytes()))
    except (OSError, ValueError, RecursionError, lzma.LZMAError) as error:
        raise UsageError(f"no pack of candidates: {error}", place=place, remedy="write one with tune --pack") from error
    if not isinstance(data, dict) or data.get("kind") != KIND or data.get("schema") != SCHEMA:
        raise UsageError(f"not a pack of schema {SCHEMA}", place=place, remedy="write it again with tune --pack")
    try:
        return _pack(data)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise UsageError(f"a damaged pack: {error!r}", place=place, remedy="write it again with tune --pack") from error


def _pack(data: Json) -> Pack:
    base = data["variants"][0]
    found = [
        Variant(one["kernel"], one["tile"], {**base["entry"], **one["entry"]}, {**base["files"], **one["files"]})
        for one in data["variants"]
    ]
    axes = {str(kernel): [*names] for kernel, names in data["axes"].items()}
    manifest = {**data["manifest"]}
    return Pack(str(data["target"]), str(data["family"]), manifest, found[0], found[1:], axes)


def _plain(variant: Variant, base: Variant) -> dict[str, Any]:
    """A variant as plain data; what it has in common with the base is left out."""
    if variant is base:
        return {"kernel": "", "tile": {}, "entry": dict(base.entry), "files": dict(base.files)}
    return {
        "kernel": variant.kernel,
        "tile": dict(variant.tile),
        "entry": {key: value for key, value in variant.entry.items() if base.entry.get(key) != value},
        "files": {name: text for name, text in variant.files.items() if base.files.get(name) != text},
    }
