"""From a shape to launches: which path, which tile, which symbol, and why not the others.

One function over the manifest's JSON serves `explain` on the command line, `.explain()` on a loaded kernel and
the launch itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dsv4gen.base.errors import ArgumentError, EnvironmentValueError, LoadError, did_you_mean
from dsv4gen.base.expression_json import evaluate_json

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
) -> Decision:
    """Choose path, tiles and symbols for one call.

    Raises:
        ArgumentError: an axis that is unknown, missing or outside its range; an unknown option value.
        LoadError: no path takes the shape (proofs make this impossible for shapes in range).
    """
    chosen_options = complete_options(family, options)
    variant, variant_reason = choose_variant(family, environ)
    names = {**shape, **family["constants"], **chosen_options}
    considered, path = _choose_path(family["ops"][op]["paths"], variant, names)
    _check_shape(family, path, shape)
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
        launches=tuple(_plan_launch(family, launch, names, chosen_options) for launch in path["launches"]),
    )


def complete_options(family: Json, options: Mapping[str, str]) -> dict[str, str]:
    """All compile-time options with defaults filled in.

    Raises:
        ArgumentError: an option or a choice that does not exist.
    """
    declared: Json = family["options"]
    for name, value in options.items():
        if name not in declared:
            raise ArgumentError(f"no option {name!r}{did_you_mean(name, declared)}; options: {', '.join(declared)}")
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


def _choose_path(paths: list[Json], variant: str, names: Mapping[str, object]) -> tuple[tuple[Considered, ...], Json]:
    considered: list[Considered] = []
    taken: Json | None = None
    for path in paths:
        reason = _why_not(path, variant, names)
        takes = taken is None and not reason
        if takes:
            taken = path
            reason = f"{path['prefer']['text']} holds"
        considered.append(Considered(path["name"], takes, reason or f"not needed: {taken['name'] if taken else ''} took it"))
    if taken is None:
        raise LoadError(f"no launch path takes this shape; {'; '.join(f'{c.name}: {c.reason}' for c in considered)}")
    return tuple(considered), taken


def _why_not(path: Json, variant: str, names: Mapping[str, object]) -> str:
    if path["rejected"]:
        return f"not on this target: {path['rejected']['reason']} ({path['rejected']['key']})"
    if path["variant"] not in ("", variant):
        return f"belongs to variant {path['variant']}"
    try:
        holds = evaluate_json(path["prefer"]["tree"], names)
    except KeyError as error:
        raise ArgumentError(f"no value for {error.args[0]}", remedy=f"give {error.args[0]}=VALUE") from None
    return "" if holds else f"{path['prefer']['text']} does not hold"


def _check_shape(family: Json, path: Json, shape: Shape) -> None:
    axes = {name: axis for name, axis in family["axes"].items() if axis["per"] is None}
    for name, value in shape.items():
        if name not in axes:
            raise ArgumentError(f"no axis {name!r}{did_you_mean(name, axes)}; axes: {', '.join(axes)}")
        low, high = (evaluate_json(axes[name][end]["tree"], {**family["constants"], **shape}) for end in ("min", "max"))
        if not low <= value <= high:
            raise ArgumentError(f"{name}={value} is outside {low}..{high}", remedy=axes[name]["doc"])


def _plan_launch(family: Json, launch: Json, names: Mapping[str, object], options: Mapping[str, str]) -> PlannedLaunch:
    kernel = family["kernels"][launch["kernel"]]
    bucket = next(b for b in kernel["buckets"] if evaluate_json(b["when"]["tree"], names))
    inside = {**names, **bucket["tile"]}
    symbol = next(
        instance["symbol"]
        for instance in kernel["instances"]
        if instance["tile"] == bucket["tile"] and all(options[name] == value for name, value in instance["options"].items())
    )
    x, y, z = (int(evaluate_json(size["tree"], inside)) for size in launch["grid"])
    return PlannedLaunch(
        kernel=launch["kernel"],
        symbol=symbol,
        tile=bucket["tile"],
        bucket=bucket["when"]["text"],
        grid=(x, y, z),
        block=int(evaluate_json(launch["block"]["tree"], inside)),
        cluster=int(evaluate_json(launch["cluster"]["tree"], inside)) if launch["cluster"] else 1,
        shared_bytes=int(evaluate_json(launch["shared_bytes"]["tree"], inside)),
        dependent=launch["dependent"],
    )
