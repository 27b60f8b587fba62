"""A generated family as its own module sees it: `generated/<target>/<family>.py` holds literals and one of these."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dsv4gen.base.errors import ManifestError
from dsv4gen.base.manifest import FILE_NAME, Manifest, read_manifest, require_intact
from dsv4gen.runtime.dispatch import Decision, decide, usual_facts, with_facts

if TYPE_CHECKING:
    from dsv4gen.runtime.loaded import LoadedFamily


#: time, size and inode of a manifest: every build that changes a file puts a new one in its place
Stamp = tuple[int, int, int]


class GeneratedFamily:
    """One family of one target's folder; nothing is read before it is needed, nor again until it is built anew."""

    def __init__(self, module_file: str, name: str) -> None:
        self.folder = Path(module_file).resolve().parent
        self.name = name
        self._manifest_path = self.folder / FILE_NAME
        self._loaded: dict[tuple[str, tuple[tuple[str, str], ...]], LoadedFamily] = {}
        self._latest: dict[tuple[tuple[str, str], ...], tuple[Stamp, LoadedFamily]] = {}

    @property
    def manifest(self) -> Manifest:
        """The folder's manifest as it is now, checked against the files beside it.

        Raises:
            ManifestError: the files do not match the manifest, or the family is not in it.
        """
        manifest = read_manifest(self.folder)
        require_intact(manifest, self.folder)
        if self.name not in manifest.families:
            remedy = f"run: dsv4gen build --target {self.folder.name}"
            raise ManifestError(f"{self.folder} holds no family {self.name!r}", remedy=remedy)
        return manifest

    @property
    def entry(self) -> Mapping[str, Any]:
        """The family's part of the manifest."""
        return self.manifest.families[self.name]

    def explain(self, op: str | None = None, *, options: Mapping[str, str] | None = None, **shape: int) -> Decision:
        """Which launches a call with this shape makes, and why not others; needs no GPU."""
        manifest = self.manifest
        entry = manifest.families[self.name]
        name = op or entry["main"]
        sizes = with_facts(entry, name, shape, usual_facts(manifest.target))
        return decide(self.name, entry, manifest.target["name"], name, sizes, options or {})

    def load(self, **options: str) -> LoadedFamily:
        """The family from this folder with chosen options; the same object as long as its digest does not change.

        Files are compared with their manifest when it is new; a call in between looks at its stamp alone.
        """
        words, stamp = tuple(sorted(options.items())), self._stamp()
        latest = self._latest.get(words)
        if latest is not None and latest[0] == stamp:
            return latest[1]
        loaded = self._load(words)
        if stamp is not None:
            self._latest[words] = stamp, loaded
        return loaded

    def _stamp(self) -> Stamp | None:
        try:
            found = self._manifest_path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _load(self, words: tuple[tuple[str, str], ...]) -> LoadedFamily:
        from dsv4gen.runtime.load import load_from
        from dsv4gen.runtime.loaded import Use
        from dsv4gen.runtime.platform import current
        from dsv4gen.runtime.selection import Accepted

        manifest = self.manifest
        target, entry = manifest.target, manifest.families[self.name]
        key = (entry["digest"], words)
        if key not in self._loaded:
            accepted = Accepted(target["name"], self.folder, manifest, target["arch"])
            self._loaded[key] = load_from(self.name, accepted, dict(words), Use(target["name"]), current())
        return self._loaded[key]

    def op(self, name: str) -> GeneratedOp:
        """One op with the default options, loaded at its first call."""
        return GeneratedOp(self, name)


class GeneratedOp:
    """An op of a generated module with the family's default options; `family.load(...)` chooses others."""

    def __init__(self, family: GeneratedFamily, name: str) -> None:
        self._family = family
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._family.load().op(self.__name__)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<dsv4gen {self._family.name}.{self.__name__} in {self._family.folder.name}>"
