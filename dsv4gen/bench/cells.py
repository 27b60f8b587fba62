"""What is timed: one op, options and shape, with the bytes and operations that no implementation avoids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4gen.base.errors import ManifestError, UsageError, did_you_mean
from dsv4gen.base.expression_json import evaluate_json
from dsv4gen.runtime.dispatch import complete_options, host_axes

Json = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """One line of the table.

    Attributes:
        group: the name of the spec's list, or `given` for a shape of the command line.
        floor_bytes, floor_flops: what a call cannot avoid.
    """

    family: str
    group: str
    op: str
    options: Mapping[str, str]
    shape: Mapping[str, int]
    floor_bytes: int
    floor_flops: int

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two cells the same measurement."""
        return self.family, self.op, tuple(sorted(self.options.items())), tuple(sorted(self.shape.items()))

    def __str__(self) -> str:
        shape = " ".join(f"{name}={value}" for name, value in self.shape.items())
        return f"{self.family}.{self.op} {shape}"


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for.

    Attributes:
        groups: lists by name; all of them when empty.
        sizes, options: words KEY=VALUE. Sizes select shapes of the spec; where none has them, they are a shape.
    """

    groups: Sequence[str]
    sizes: Mapping[str, int]
    options: Mapping[str, str]


def cells_of(name: str, family: Json, wanted: Wanted) -> list[Cell]:
    """The family's cells that are wanted.

    Raises:
        ManifestError: the family lists no shapes.
        UsageError: a list or axis that does not exist.
        ArgumentError: an option or choice that does not exist.
    """
    lists = family.get("bench")
    if not lists:
        raise ManifestError(
            f"{name} lists no shapes to time", remedy=f"add `bench:` to {family['spec']} and build again"
        )
    for group in wanted.groups:
        if group not in lists:
            remedy = f"lists: {', '.join(lists)}"
            raise UsageError(f"{name} has no list of shapes {group!r}{did_you_mean(group, lists)}", remedy=remedy)
    axes = host_axes(family)
    for axis in wanted.sizes:
        if axis not in axes:
            raise UsageError(
                f"{name} has no axis {axis!r}{did_you_mean(axis, axes)}", remedy=f"axes: {', '.join(axes)}"
            )
    chosen = {group: lists[group] for group in wanted.groups or lists}
    found = [
        _cell(name, family, group, entry, shape, wanted.options)
        for group, entry in chosen.items()
        for shape in entry["shapes"]
        if all(shape.get(axis) == value for axis, value in wanted.sizes.items())
    ]
    if found:
        return found
    entry = next(iter(chosen.values()))
    return [_cell(name, family, "given", entry, {**entry["shapes"][0], **wanted.sizes}, wanted.options)]


def _cell(
    name: str, family: Json, group: str, entry: Json, shape: Mapping[str, int], options: Mapping[str, str]
) -> Cell:
    ordered = {axis: shape[axis] for axis in family["axes"] if axis in shape}
    chosen = complete_options(family, {**entry["options"], **options})
    names = {**least_sizes(family), **ordered, **family["constants"], **chosen}
    floors = {kind: int(evaluate_json(entry["floors"][kind]["tree"], names)) for kind in ("bytes", "flops")}
    return Cell(name, group, entry["op"], chosen, ordered, floors["bytes"], floors["flops"])


def option_defaults(family: Json) -> dict[str, str]:
    """Every option with its default."""
    return {name: option["default"] for name, option in family["options"].items()}


def changed_options(options: Mapping[str, str], family: Json) -> dict[str, str]:
    """Options that are not their defaults: what a user would write."""
    return {name: value for name, value in options.items() if value != family["options"][name]["default"]}


def least_sizes(family: Json) -> dict[str, int]:
    """Axes at their minimum: what floors and decisions take for those a shape leaves out."""
    trees = {axis: entry["min"]["tree"] for axis, entry in host_axes(family).items()}
    return {axis: tree for axis, tree in trees.items() if isinstance(tree, int)}
