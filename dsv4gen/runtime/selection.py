"""Which generated folder serves a device. Every folder is a candidate; each is accepted, or rejected with a reason.

Accepted is the folder made for the device's architecture, or one that lists the device under `also`: the same
source compiled for the device's own architecture. Nothing else is close enough: an `a` target runs on one device
only, and tiles are proven to fit the target's shared memory, not that of its relatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dsv4gen.base import paths
from dsv4gen.base.errors import DsvError, LoadError, ManifestError
from dsv4gen.base.manifest import FILE_NAME, Manifest, read_manifest
from dsv4gen.base.target_id import TargetId, parse


class Accepted(NamedTuple):
    """A folder that serves a device, and the architecture to compile its sources for."""

    target: str
    folder: Path
    manifest: Manifest
    arch: str

    def __str__(self) -> str:
        return f"{self.target}: accepted, compiled for {self.arch}"


class Rejected(NamedTuple):
    """A folder that does not serve a device, and why."""

    target: str
    reason: str

    def __str__(self) -> str:
        return f"{self.target}: {self.reason}"


Candidate = Accepted | Rejected


def folders(root: Path) -> tuple[Path, ...]:
    """Target folders below a generated root, by name."""
    try:
        return tuple(sorted(entry for entry in root.iterdir() if (entry / FILE_NAME).is_file()))
    except OSError:
        return ()


def candidates(family: str, wanted: TargetId, root: Path) -> tuple[Candidate, ...]:
    """All folders below `root`, judged."""
    return tuple(_judge(family, wanted, folder) for folder in folders(root))


def choose(family: str, wanted: TargetId, who: str, root: Path) -> Accepted:
    """The one folder that serves `wanted`; `who` names the device or the argument in messages.

    Raises:
        LoadError: none serves it, with each candidate's reason; or several do.
    """
    judged = candidates(family, wanted, root)
    accepted = [candidate for candidate in judged if isinstance(candidate, Accepted)]
    if len(accepted) == 1:
        return accepted[0]
    listed = "".join(f"\n  {candidate}" for candidate in judged) or f"\n  nothing is generated in {paths.display(root)}"
    if accepted:
        raise LoadError(
            f"several folders serve {who}: {', '.join(candidate.target for candidate in accepted)}",
            remedy=f"remove all but one of them from {paths.display(root)}, or pass target=...",
        )
    raise LoadError(f"no {family} kernel for {who}; candidates:{listed}", remedy=_remedy(wanted))


def own_architecture(target_arch: str, device: TargetId) -> str:
    """The compiler's name of a device that a target lists under `also`: its own, with the target's suffix."""
    return f"{device.arch}{parse(target_arch).suffix}"


def _judge(family: str, wanted: TargetId, folder: Path) -> Candidate:
    try:
        manifest = read_manifest(folder)
        target, api = manifest.target["name"], manifest.target["api"]
        if api != wanted.api:
            return Rejected(target, f"made for {api}, and {wanted} is a {wanted.api} device")
        arch = _architecture(manifest, wanted)
    except ManifestError as error:
        return Rejected(folder.name, str(error))
    except (DsvError, KeyError, TypeError) as error:
        return Rejected(folder.name, f"its manifest has no usable target: {error}")
    if not arch:
        return Rejected(target, _why_not(manifest, wanted))
    if family not in manifest.families:
        return Rejected(target, f"holds no {family}, only {', '.join(sorted(manifest.families)) or 'nothing'}")
    return Accepted(target, folder, manifest, arch)


def _architecture(manifest: Manifest, wanted: TargetId) -> str:
    """What to compile for, or nothing. Features the device has fixed are left open: such code runs on either."""
    target = manifest.target
    if parse(target["name"]).arch == wanted.arch:
        return str(target["arch"])
    also: Sequence[str] = target["also"]
    if wanted.arch in {parse(name).arch for name in also}:
        return own_architecture(target["arch"], wanted)
    return ""


def _why_not(manifest: Manifest, wanted: TargetId) -> str:
    arch = manifest.target["arch"]
    if parse(arch).suffix == "a":
        return f"{arch} code runs on {manifest.target['name']} only, not on {wanted}"
    also = ", ".join(manifest.target["also"])
    return f"made for {manifest.target['name']}{f' (also {also})' if also else ''}, not for {wanted}"


def _remedy(wanted: TargetId) -> str:
    return (
        f"run: dsv4gen build --target {wanted.arch}; a device without a record needs specs/platforms/{wanted.arch}.yaml"
    )
