"""A generated family as its own module sees it: the manifest entry, options and ops."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from dsv4gen.base.errors import ManifestError
from dsv4gen.base.manifest import Manifest, read_manifest, require_intact
from dsv4gen.runtime.dispatch import Decision, decide


class GeneratedFamily:
    """One family of one target's folder; nothing is read before it is needed."""

    def __init__(self, module_file: str, name: str) -> None:
        self.folder = Path(module_file).resolve().parent
        self.name = name

    @cached_property
    def manifest(self) -> Manifest:
        """The folder's manifest, checked against the files beside it.

        Raises:
            ManifestError: the files do not match the manifest, or the family is not in it.
        """
        manifest = read_manifest(self.folder)
        require_intact(manifest, self.folder)
        if self.name not in manifest.families:
            raise ManifestError(f"{self.folder} holds no family {self.name!r}")
        return manifest

    @property
    def entry(self) -> Mapping[str, Any]:
        """The family's part of the manifest."""
        return self.manifest.families[self.name]

    def explain(self, op: str | None = None, *, options: Mapping[str, str] | None = None, **shape: int) -> Decision:
        """Which launches a call with this shape makes, and why not others; needs no GPU."""
        op = op or next(iter(self.entry["ops"]))
        return decide(self.name, self.entry, self.manifest.target["name"], op, shape, options or {})
