"""Look up targets by any spelling of their name."""

from __future__ import annotations

from dsv4gen.base import target_id
from dsv4gen.base.errors import DsvError, Problems, SpecError, raise_all
from dsv4gen.spec.load import Specs
from dsv4gen.target.build import build_record
from dsv4gen.target.record import TargetRecord


def list_targets(specs: Specs) -> tuple[str, ...]:
    """Names of all targets; parents are left out."""
    return tuple(name for name, loaded in specs.platforms.items() if not loaded.model.abstract)


def resolve_target(specs: Specs, name: str) -> TargetRecord:
    """The record of the device that `name` spells, e.g. "gfx942:xnack-", "sm_90a", "9.0", "sm_86".

    For one of a target's `also` devices, `record.name` is the target and `record.device` the device.

    Raises:
        UnknownTarget: not a spelling, not a described device, or features it does not have.
        SpecError, Problems: the platform files are incomplete or contradict each other.
    """
    known = list_targets(specs)
    wanted = target_id.parse(name, known)
    owner = _owner(specs, wanted.arch)
    if owner is None:
        raise target_id.unknown(f"no platform file describes '{wanted.arch}'", wanted.arch, known)
    target = build_record(specs, owner)
    record = next(one for one in (target, *target.also) if one.device == wanted.arch)
    foreign = [feature for feature, _ in wanted.features if feature not in record.detect.features]
    if foreign:
        raise target_id.unknown(f"{wanted.arch} has no target-id feature '{foreign[0]}'", wanted.arch, known)
    return record


def resolve_all(specs: Specs) -> tuple[TargetRecord, ...]:
    """Every target's record.

    Raises:
        SpecError, Problems: the mistakes of all platform files.
    """
    records: list[TargetRecord] = []
    errors: list[DsvError] = []
    for name in list_targets(specs):
        try:
            records.append(build_record(specs, name))
        except Problems as problems:
            errors.extend(problems.errors)
        except SpecError as error:
            errors.append(error)
    raise_all(errors)
    return tuple(records)


def _owner(specs: Specs, arch: str) -> str | None:
    """The target whose file describes `arch`, itself or under `also`."""
    for name in list_targets(specs):
        if arch == name or arch in specs.platforms[name].model.also:
            return name
    return None
