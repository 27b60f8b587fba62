"""`extends` between platform files: the chain from a target to its outermost parent."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dsv4gen.base.errors import SpecError, did_you_mean
from dsv4gen.spec.leaves import check_sources, group_leaves, product_leaves
from dsv4gen.spec.loaded import Loaded


def chain(platforms: Mapping[str, Loaded[Any]], name: str) -> list[Loaded[Any]]:
    """The file of `name`, then its parent, and so on.

    Raises:
        SpecError: a parent that does not exist, or a cycle.
    """
    found = [platforms[name]]
    visited = [name]
    while (parent := found[-1].model.extends) is not None:
        place = found[-1].place("extends")
        if parent in visited:
            raise SpecError(f"'extends' goes in a circle: {' -> '.join([*visited, parent])}", place=place)
        if parent not in platforms:
            hint = did_you_mean(parent, platforms)
            raise SpecError(f"'extends' names '{parent}', which is no platform file{hint}", place=place)
        visited.append(parent)
        found.append(platforms[parent])
    return found


def cited_works(files: list[Loaded[Any]]) -> dict[str, str]:
    """The works declared by a file and its parents."""
    works: dict[str, str] = {}
    for file in files:
        works.update({key: title for key, title in file.model.sources.items() if key not in works})
    return works


def check_platforms(platforms: Mapping[str, Loaded[Any]], unread: Collection[str]) -> list[SpecError]:
    """Broken chains, and facts without a source, in all platform files.

    Files that extend one of `unread`, which have mistakes of their own, are left alone.
    """
    errors = _check_devices(platforms)
    for name, loaded in platforms.items():
        if _extends_any(platforms, name, unread):
            continue
        try:
            works = cited_works(chain(platforms, name))
        except SpecError as error:
            errors.append(error)
            continue
        errors.extend(check_sources(group_leaves(loaded.model, loaded.document), works))
        errors.extend(check_sources(product_leaves(loaded.model.products, loaded.document), works))
        for device, overrides in loaded.model.also.items():
            leaves = group_leaves(overrides, loaded.document, ("also", device))
            errors.extend(check_sources(leaves, works))
    return errors


def _check_devices(platforms: Mapping[str, Loaded[Any]]) -> list[SpecError]:
    """Devices that two files describe, as a target or under `also`."""
    owners = {name: name for name in platforms}
    errors: list[SpecError] = []
    for name, loaded in platforms.items():
        for device in loaded.model.also:
            if device in owners:
                message = f"also: the file {owners[device]}.yaml describes {device} too"
                errors.append(SpecError(message, place=loaded.key_place("also", device)))
            owners[device] = name
    return errors


def _extends_any(platforms: Mapping[str, Loaded[Any]], name: str, unread: Collection[str]) -> bool:
    """Whether the chain of `name` reaches one of `unread`; a circle is no such chain."""
    visited: set[str] = set()
    current: str | None = name
    while current is not None and current in platforms and current not in visited:
        visited.add(current)
        current = platforms[current].model.extends
    return current in unread
