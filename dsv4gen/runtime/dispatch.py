"""From a shape to launches: which path, which tile, which symbol, and why not the others.

One function over the manifest's JSON serves `explain` on the command line, `.explain()` on a loaded kernel and
the launch itself.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4gen.base.errors import ArgumentError, EnvironmentValueError, ExpressionError, LoadError, did_you_mean
from dsv4gen.base.expression_json import evaluate_json, names_json
from dsv4gen.base.runtime_facts import RUNTIME_FACTS

Json = Mapping[str, Any]
Shape = Mapping[str, int]


@dataclass(frozen=True)
class Considered:
    """One launch path that was looked at: taken or not, and why."""

    name: str
    taken: bool
    reason: str


@dataclass(frozen=True)
class PlannedLaunch:
    """One kernel launch with every number filled in."""

    kernel: str
    symbol: str
    tile: Mapping[str, int]
    bucket: str
    grid: tuple[int, int, int]
    block: int
    cluster: int
    shared_bytes: int
    dependent: bool


@dataclass(frozen=True)
class Decision:
    """What a call with this shape launches; `considered` lists the paths in order with reasons."""

    family: str
    op: str
    target: str
    variant: str
    variant_reason: str
    options: Mapping[str, str]
    shape: Shape
    path: str
    considered: tuple[Considered, ...]
    launches: tuple[PlannedLaunch, ...]

    def __str__(self) -> str:
        shape = " ".join(f"{name}={value}" for name, value in self.shape.items())
        lines = [f"{self.family}.{self.op} on {self.target}: {shape}"]
        if self.variant:
            lines.append(f"  variant {self.variant} ({self.variant_reason})")
        lines += [f"  {'->' if c.taken else '  '} {c.name}: {c.reason}" for c in self.considered]
        for launch in self.launches:
            grid = " x ".join(map(str, launch.grid))
            lines.append(f"  launch {launch.symbol} grid {grid} block {launch.block} (tile where {launch.bucket})")
        return "\n".join(lines)


def decide(
    family_name: str,
    family: Json,
    target: str,
    op: str,
    shape: Shape,
    options: Mapping[str, str],
    environ: Mapping[str, str] | None = None,
    disabled: Mapping[str, str] | None = None,
) -> Decision:
    """Choose path, tiles and symbols for one call.

    Args:
        shape: values of the axes the host knows, and of facts of the running device (`units`); those that no
            expression reads may be left out.
        disabled: paths that this device turned out not to take, with the reason. What then takes a shape is the
            next path that is preferred for it, or else the first that is correct for it.

    Raises:
        ArgumentError: an axis that is unknown, missing or outside its range; an unknown option value.
        LoadError: no path takes the shape (proofs make this impossible for shapes in range).
    """
    chosen_options = complete_options(family, options)
    variant, variant_reason = choose_variant(family, environ)
    check_shape(family, shape)
    names = {**shape, **family["constants"], **chosen_options}
    try:
        considered, path = _choose_path(family["ops"][op]["paths"], variant, names, disabled or {})
        launches = tuple(_plan_launch(family, launch, names, chosen_options) for launch in path["launches"])
    except ExpressionError as error:
        missing = [name for name in sizes_read(family, op) if name not in shape]
        if not missing:
            raise ArgumentError(error.message) from None
        raise ArgumentError(
            f"no value for {', '.join(map(repr, missing))}",
            remedy=f"give every size that {op} reads: {'; '.join(_size_words(family, name) for name in missing)}",
        ) from None
    return Decision(
        family=family_name,
        op=op,
        target=target,
        variant=variant,
        variant_reason=variant_reason,
        options=chosen_options,
        shape=dict(shape),
        path=path["name"],
        considered=considered,
        launches=launches,
    )


def host_axes(family: Json) -> dict[str, Json]:
    """The axes whose value the host knows; the others are read on the device."""
    return {name: axis for name, axis in family["axes"].items() if axis["per"] is None}


def names_read(family: Json, op: Json) -> set[str]:
    """Names that paths, tiles, grids and workspace sizes depend on."""
    trees = [path[part]["tree"] for path in op["paths"] for part in ("domain", "prefer")]
    for launch in (launch for path in op["paths"] for launch in path["launches"]):
        trees += [size["tree"] for size in launch["grid"]]
        trees += [launch[part]["tree"] for part in ("block", "cluster", "shared_bytes") if launch[part]]
        trees += [bucket["when"]["tree"] for bucket in family["kernels"][launch["kernel"]]["buckets"]]
    trees += [entry["bytes"]["tree"] for entry in op["workspaces"]]
    return {name for tree in trees for name in names_json(tree)}


def names_in_bounds(family: Json, axes: Collection[str]) -> set[str]:
    """Names that the bounds of these axes depend on, as the least bytes of a page on the tokens in it."""
    host = host_axes(family)
    trees = [host[axis][end]["tree"] for axis in axes if axis in host for end in ("min", "max")]
    return {name for tree in trees for name in names_json(tree)}


def sizes_read(family: Json, op: str) -> list[str]:
    """Axes and facts of the device that the op's decision depends on, in the spec's order."""
    read = names_read(family, family["ops"][op])
    return [name for name in (*host_axes(family), *RUNTIME_FACTS) if name in read]


def with_facts(family: Json, op_name: str, shape: Shape, facts: Shape) -> dict[str, int]:
    """A shape and those facts of the running device that the op's paths and tiles depend on."""
    read = names_read(family, family["ops"][op_name])
    return {**{name: value for name, value in facts.items() if name in read}, **shape}


def usual_facts(target: Json) -> dict[str, int]:
    """What a usual device of a target would say of itself, for explanations where none runs."""
    return with_dies(target, {"units": int(target.get("units", 64)), "xcds": 1})


def with_dies(target: Json, facts: Shape) -> dict[str, int]:
    """A device's facts with the XCDs that a product of as many units has, or a partition of one.

    A product of 304 units on 8 XCDs can be partitioned into devices of 152, 76 or 38 units on 4, 2 or 1.
    """
    for units, xcds in target.get("dies", ()):
        parts = units // facts["units"] if facts.get("units") else 0
        if parts and parts * facts["units"] == units and xcds % parts == 0:
            return {**facts, "xcds": xcds // parts}
    return dict(facts)


def complete_options(family: Json, options: Mapping[str, str]) -> dict[str, str]:
    """All compile-time options with defaults filled in.

    Raises:
        ArgumentError: an option or a choice that does not exist.
    """
    declared: Json = family["options"]
    for name, value in options.items():
        if (name in family["axes"] or name in RUNTIME_FACTS) and isinstance(value, str):
            raise ArgumentError(f"{name}={value!r} is not a whole number", remedy=f"give {_size_words(family, name)}")
        if name not in declared:
            known = ", ".join(declared) or "none"
            raise ArgumentError(f"no option {name!r}{did_you_mean(name, declared)}; options: {known}")
        if value not in declared[name]["choices"]:
            raise ArgumentError(f"{name}={value!r} is not one of {', '.join(declared[name]['choices'])}")
    return {name: options.get(name, entry["default"]) for name, entry in declared.items()}


def choose_variant(family: Json, environ: Mapping[str, str] | None = None) -> tuple[str, str]:
    """The family's variant and why: its environment flag, else the platform's default.

    Raises:
        EnvironmentValueError: the flag holds a value that is no variant.
    """
    variants = family["variants"]
    value = (os.environ if environ is None else environ).get(variants["flag"], "")
    if not value:
        return variants["default"], "platform default"
    if value not in variants["choices"]:
        raise EnvironmentValueError(
            f"{variants['flag']}={value!r} is not one of {', '.join(variants['choices'])}",
            remedy=f"set {variants['flag']} to one of these, or unset it",
        )
    return value, f"{variants['flag']}={value}"


def _choose_path(
    paths: Sequence[Json], variant: str, names: Json, disabled: Mapping[str, str]
) -> tuple[tuple[Considered, ...], Json]:
    """The first path that is wanted here; where the device disabled the wanted ones, the first that is correct."""
    refusals = [_why_not(path, variant, disabled) for path in paths]
    open_paths = [path for path, refusal in zip(paths, refusals, strict=True) if not refusal]
    taken = next((path for path in open_paths if evaluate_json(path["prefer"]["tree"], names)), None)
    reason = f"{taken['prefer']['text']} holds" if taken else ""
    if taken is None and disabled:
        taken = next((path for path in open_paths if evaluate_json(path["domain"]["tree"], names)), None)
        reason = f"stands in; {taken['domain']['text']} holds" if taken else ""
    considered = []
    for path, refusal in zip(paths, refusals, strict=True):
        if path is taken:
            considered.append(Considered(path["name"], True, reason))
            continue
        holds = not refusal and evaluate_json(path["prefer"]["tree"], names)
        passed_over = f"not needed: {taken['name'] if taken else ''} took it"
        unwanted = passed_over if holds else f"{path['prefer']['text']} does not hold"
        considered.append(Considered(path["name"], False, refusal or unwanted))
    if taken is None:
        raise LoadError(f"no launch path takes this shape; {'; '.join(f'{c.name}: {c.reason}' for c in considered)}")
    return tuple(considered), taken


def _why_not(path: Json, variant: str, disabled: Mapping[str, str]) -> str:
    if path["rejected"]:
        return f"not on this target: {path['rejected']['reason']} ({path['rejected']['key']})"
    if path["variant"] not in ("", variant):
        return f"belongs to variant {path['variant']}"
    return disabled.get(path["name"], "")


def check_shape(family: Json, shape: Shape) -> None:
    """Refuse sizes that the family does not take.

    Raises:
        ArgumentError: no such axis or fact of the device, or a value outside its range.
    """
    axes = host_axes(family)
    for name, value in shape.items():
        if name in family["options"]:
            raise ArgumentError(f"{name}={value} is not one of {', '.join(family['options'][name]['choices'])}")
        if name in RUNTIME_FACTS:
            _check_range(family, name, value, *RUNTIME_FACTS[name])
            continue
        if name not in axes:
            raise ArgumentError(f"no axis {name!r}{did_you_mean(name, axes)}; axes: {', '.join(axes)}")
        low, high = (evaluate_json(axes[name][end]["tree"], {**family["constants"], **shape}) for end in ("min", "max"))
        _check_range(family, name, value, int(low), int(high))


def _check_range(family: Json, name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        remedy = f"give {_size_words(family, name)} in that range"
        raise ArgumentError(f"{name}={value} is outside {low}..{high}", remedy=remedy)


def _size_words(family: Json, name: str) -> str:
    """`k=N, entries selected per row`; facts of the device have no text of their own."""
    doc = family["axes"][name]["doc"] if name in family["axes"] else "a fact of the device"
    return f"{name}=N{doc and ', '}{doc or ''}"


def _plan_launch(family: Json, launch: Json, names: Json, options: Mapping[str, str]) -> PlannedLaunch:
    kernel = family["kernels"][launch["kernel"]]
    bucket = next((b for b in kernel["buckets"] if evaluate_json(b["when"]["tree"], names)), None)
    if bucket is None:
        raise LoadError(f"no tile of {launch['kernel']} takes this shape", remedy="run: dsv4gen build")
    inside = {**names, **bucket["tile"]}
    x, y, z = (int(evaluate_json(size["tree"], inside)) for size in launch["grid"])
    return PlannedLaunch(
        kernel=launch["kernel"],
        symbol=_symbol(kernel, bucket["tile"], options),
        tile=bucket["tile"],
        bucket=bucket["when"]["text"],
        grid=(x, y, z),
        block=int(evaluate_json(launch["block"]["tree"], inside)),
        cluster=int(evaluate_json(launch["cluster"]["tree"], inside)) if launch["cluster"] else 1,
        shared_bytes=int(evaluate_json(launch["shared_bytes"]["tree"], inside)),
        dependent=launch["dependent"],
    )


def _symbol(kernel: Json, tile: Json, options: Mapping[str, str]) -> str:
    for instance in kernel["instances"]:
        if instance["tile"] == tile and all(options[name] == value for name, value in instance["options"].items()):
            return str(instance["symbol"])
    words = " ".join(f"{name}={value}" for name, value in options.items())
    raise LoadError(f"no kernel was generated for {words}", remedy="run: dsv4gen build")
