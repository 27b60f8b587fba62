"""`dsv4gen new-target`: a platform file that takes its facts from the nearest target until it states its own.

Only names are stated: what compilers and drivers call the device. They are marked `infer`, as nobody has confirmed
them. All other facts follow as comments with the values that hold, so that stating one is to uncomment and correct
it; until then its source is the other target's, which `extends` says openly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsv4gen.base import extensions, target_id
from dsv4gen.base.errors import UsageError
from dsv4gen.base.target_id import TargetId
from dsv4gen.scaffold.home import find_home, write_new
from dsv4gen.spec import load_specs
from dsv4gen.spec.facts import GROUPS
from dsv4gen.target import TargetRecord, list_targets, resolve_target

#: groups that are names, stated in the new file
_NAMES = ("compile", "detect")
_HEAD = """\
# {name}, begun by `dsv4gen new-target`: every fact that is not stated here is that of {like}.
# docs/adding-a-target.md goes through them.
target: {name}
extends: {like}
summary: Say which devices these are.
evidence: compiled                 # compiled, emulated or device: the best check that can be made

sources:                           # the works that `source:` texts cite by key
  NEW: "assumed when the file was begun; not confirmed"

compile:
  source: "NEW: the names compilers are expected to use"
  mark: infer                      # ran, read or infer; proofs refuse a fact that is only inferred
"""
_DETECT = """\
detect:
  source: "NEW: what the driver is expected to report"
  mark: infer
"""
_FACTS = """\

# The facts of {like}. Uncomment a group or a single fact with its group's name, correct it, and name where that was
# found; docs/specs.md says what each means.
"""


@dataclass(frozen=True)
class NewTarget:
    """The new file, and the target whose facts it takes."""

    file: Path
    like: str


def new_target(name: str, *, like: str | None = None, folder: Path | None = None) -> NewTarget:
    """Write a platform file for a new target.

    Args:
        like: the target whose facts hold until the file says otherwise; the nearest of the same vendor when None.
        folder: an extension's folder; the checkout when None.

    Raises:
        UsageError, UnknownTarget: not an architecture's name, one that is described already, another vendor's target.
        OutputError: the file cannot be written.
    """
    specs = load_specs(*extensions.spec_folders())
    known = list_targets(specs)
    wanted = target_id.parse(name, known)
    if wanted.arch != name:
        raise UsageError(f"{name!r} is not an architecture's plain name", remedy=f"write {wanted.arch}")
    owners = {device: target for target in known for device in (target, *specs.platforms[target].model.also)}
    if name in owners:
        raise UsageError(
            f"{name} is described already, in specs/platforms/{owners[name]}.yaml",
            remedy=f"change that file, or build it: dsv4gen build --target {owners[name]}",
        )
    model = resolve_target(specs, like or nearest(wanted, known))
    if model.detect.api != wanted.api:
        raise UsageError(
            f"{name} is a {wanted.api} device and {model.name} a {model.detect.api} one",
            remedy=f"leave --like out, or name one of {', '.join(one.arch for one in _of_api(wanted.api, known))}",
        )
    home = find_home(folder)
    file = home.root / "specs" / "platforms" / f"{name}.yaml"
    write_new({file: platform_text(wanted, model)})
    return NewTarget(file, model.name)


def nearest(wanted: TargetId, known: Sequence[str]) -> str:
    """The known target of the same vendor with the closest version; of two equally close ones the newer stepping of one
    version, or the older version.

    Raises:
        UsageError: no target of that vendor.
    """
    ids = _of_api(wanted.api, known)
    if not ids:
        raise UsageError(
            f"no {wanted.api} target to start from", remedy="write its platform file by hand: docs/specs.md"
        )

    def distance(one: TargetId) -> tuple[bool, int, int, int]:
        away = abs(_version(one) - _version(wanted))
        return one.capability[0] != wanted.capability[0], away, _version(one), -_stepping(one)

    return min(ids, key=distance).arch


def _of_api(api: str, known: Sequence[str]) -> list[TargetId]:
    return [one for one in map(target_id.parse, known) if one.api == api]


def _version(one: TargetId) -> int:
    """Major and minor as one number, in which 7.5 lies closer to 8.0 than to 8.9. A minor has one digit."""
    major, minor = one.capability
    return 10 * major + minor


def _stepping(one: TargetId) -> int:
    """The last digit of a HIP name; CUDA names have none."""
    return int(one.arch[-1], 16) if one.api == "hip" else 0


def platform_text(wanted: TargetId, model: TargetRecord) -> str:
    """The new file."""
    head = _HEAD.format(name=wanted.arch, like=model.name)
    names = "".join(f"  {line}\n" for line in _yaml_lines(_compiler_names(wanted, model)))
    detect = "".join(f"  {line}\n" for line in _yaml_lines(_driver_names(wanted)))
    return head + names + _DETECT + detect + _FACTS.format(like=model.name) + "".join(_commented(model))


def _compiler_names(wanted: TargetId, model: TargetRecord) -> dict[str, Any]:
    if wanted.api == "hip":
        return {"clang": wanted.arch, "generic": None, "triton": {"arch": wanted.arch}}
    number = wanted.arch.removeprefix("sm_")
    suffix = target_id.parse(model.compile.nvrtc or model.name).suffix
    return {
        "nvrtc": f"{wanted.arch}{suffix}",
        "family": None,
        "ptx": f"compute_{number}",
        "triton": {"arch": int(number)},
    }


def _driver_names(wanted: TargetId) -> dict[str, Any]:
    arch = {"arch": wanted.arch} if wanted.api == "hip" else {}
    return {**arch, "capability": list(wanted.capability)}


def _commented(model: TargetRecord) -> Iterator[str]:
    """All groups of facts as YAML comments."""
    for group in (name for name in GROUPS if name not in _NAMES):
        yield f"# {group}:\n"
        yield '#   source: "NEW: where this was found"\n#   mark: infer\n'
        facts = getattr(model, group).model_dump(mode="json")
        yield from (f"#   {line}\n" for line in _yaml_lines(facts))


def _yaml_lines(table: Mapping[str, Any]) -> Iterator[str]:
    """A mapping as lines of YAML; JSON is the flow style of YAML 1.2."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield f"{key}:"
            yield from (f"  {line}" for line in _yaml_lines(value))
        else:
            plain = isinstance(value, str) and value.isidentifier()
            yield f"{key}: {value if plain else json.dumps(value)}"
