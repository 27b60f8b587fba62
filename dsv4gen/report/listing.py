"""`dsv4gen list`: targets x families, and what is built."""

from __future__ import annotations

from dataclasses import dataclass

from dsv4gen.base import extensions, paths
from dsv4gen.base.errors import ManifestError
from dsv4gen.base.manifest import mismatches, read_manifest


@dataclass(frozen=True)
class TargetRow:
    """One target: devices its sources also serve, wave size, families, and the state of its folder."""

    target: str
    also: tuple[str, ...]
    wave: int
    families: tuple[str, ...]
    built: str

    def cells(self) -> tuple[str, ...]:
        """The row of the printed table."""
        return self.target, " ".join(self.also), str(self.wave), " ".join(self.families), self.built


def listing() -> list[TargetRow]:
    """All targets in name order."""
    from dsv4gen.spec import load_specs
    from dsv4gen.target import list_targets, resolve_target

    specs = load_specs(*extensions.spec_folders())
    rows = []
    for name in list_targets(specs):
        record = resolve_target(specs, name)
        rows.append(
            TargetRow(
                name,
                tuple(other.device for other in record.also),
                record.wave.launch,
                tuple(sorted(specs.families)),
                _state(name),
            )
        )
    return rows


def _state(target: str) -> str:
    folder = paths.generated() / target
    if not folder.is_dir():
        return "no"
    try:
        manifest = read_manifest(folder)
    except ManifestError:
        return "broken: no usable manifest"
    bad = list(mismatches(manifest, folder))
    return f"broken: {bad[0][0]} {bad[0][1]}" if bad else "yes"
