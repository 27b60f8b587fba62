"""Reads the table of one op from its manifest entry."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from dsv4gen.base.argument_names import why_not_a_name
from dsv4gen.base.errors import ManifestError
from dsv4gen.base.expression_json import choose_json, evaluate_json, names_json
from dsv4gen.runtime.call_table import (
    ITEM_BYTES,
    TORCH_DTYPES,
    AxisRule,
    CallTable,
    Launcher,
    TensorRule,
    WorkspaceRule,
)
from dsv4gen.runtime.dispatch import host_axes, names_in_bounds, names_read

Json = Mapping[str, Any]


def make_table(family_name: str, family: Json, op_name: str, options: Mapping[str, str]) -> CallTable:
    """The table of one op.

    Raises:
        ManifestError: names that are no identifiers or collide, or a dtype the runtime does not know.
    """
    op = family["ops"][op_name]
    names = {**family["constants"], **options}
    present = [t for t in op["tensors"] if t["when"] is None or evaluate_json(t["when"]["tree"], names)]
    tensors = tuple(_tensor(entry, options) for entry in present)
    absent = tuple(entry["name"] for entry in op["tensors"] if entry not in present)
    fields = tuple(str(name) for name, _, _ in op["params"]["fields"])
    workspaces = tuple(_workspace(entry) for entry in op["workspaces"])
    decided = names_read(family, op)
    axes = tuple(_axes(family, op, tensors, {*fields, *decided}, names))
    strides = {stride for entry in op["tensors"] for stride in entry["strides"] if isinstance(stride, str)}
    known = {*(entry["name"] for entry in op["tensors"]), *(w.name for w in workspaces), *strides, *family["axes"]}
    launcher = _launcher(family, op_name)
    if launcher:
        axes = (*_launcher_axes(family, launcher, axes, known - {*family["axes"]}),)
    table = CallTable(
        family=family_name,
        op=op_name,
        tensors=tensors,
        absent=absent,
        axes=axes,
        scalars=tuple(name for name in fields if name not in known),
        workspaces=workspaces,
        fields=fields,
        pointers={name: offset for name, kind, offset in op["params"]["fields"] if kind == "pointer"},
        format=op["params"]["format"],
        size=op["params"]["size"],
        key_axes=tuple(axis.name for axis in axes if axis.name in decided or axis.constant_range is None),
        constants=family["constants"],
        options=dict(options),
        launcher=launcher,
        floats=frozenset(name for name, kind, _ in op["params"]["fields"] if kind == "f32"),
    )
    _check_names(table)
    return table


def _tensor(entry: Json, options: Mapping[str, str]) -> TensorRule:
    dtype = options.get(entry["dtype"], entry["dtype"])
    if dtype not in TORCH_DTYPES:
        raise ManifestError(f"tensor {entry['name']} has the unknown dtype {dtype!r}")
    shape = tuple(choose_json(size["tree"], options) for size in entry["shape"])
    words = (tree if isinstance(tree, str) else size["text"] for tree, size in zip(shape, entry["shape"], strict=True))
    return TensorRule(
        name=entry["name"],
        dtypes=TORCH_DTYPES[dtype],
        shape=shape,
        shape_text=", ".join(words),
        strides=tuple(entry["strides"]),
        align=max(entry["align"], ITEM_BYTES[TORCH_DTYPES[dtype][0]]),
        role=entry["role"],
        optional=entry["optional"],
        in_place=tuple(entry.get("in_place", ())),
    )


def _workspace(entry: Json) -> WorkspaceRule:
    return WorkspaceRule(
        name=entry["name"],
        dtype=TORCH_DTYPES[entry["dtype"]][0],
        bytes=entry["bytes"]["tree"],
        init=entry["init"],
        restore=entry["restore"],
        scope=entry["scope"],
        paths=tuple(entry["paths"]),
    )


def _axes(
    family: Json, op: Json, tensors: tuple[TensorRule, ...], used: set[str], names: Mapping[str, object]
) -> Iterator[AxisRule]:
    shown = {name for tensor in tensors if tensor.role != "out" for name in _plain(tensor.shape)}
    made = {name for tensor in tensors if tensor.role == "out" for name in _plain(tensor.shape)}
    hidden = {name for entry in op["tensors"] for size in entry["shape"] for name in names_json(size["tree"])}
    needed = used | {name for tensor in tensors for tree in tensor.shape for name in names_json(tree)}
    needed |= names_in_bounds(family, shown | made)
    for name, axis in host_axes(family).items():
        if name not in needed and name not in shown | made:
            continue
        if name in shown or name in made:
            source = "input" if name in shown else "output"
        else:
            outside = axis.get("when") is not None and not evaluate_json(axis["when"]["tree"], names)
            unseen = name in hidden and not any(name in names_json(tree) for t in tensors for tree in t.shape)
            source = "absent" if outside or unseen else "given"
        yield AxisRule(name, axis["min"]["tree"], axis["max"]["tree"], source, axis["doc"])


def _launcher(family: Json, op: str) -> Launcher | None:
    words = family.get("launchers", {}).get(op)
    return Launcher(tuple(words["required"]), dict(words["defaults"])) if words else None


def _launcher_axes(
    family: Json, launcher: Launcher, axes: Iterable[AxisRule], other: Collection[str]
) -> Iterator[AxisRule]:
    """The sizes that a launcher takes: it may need one only to compile, such as a page's, and it finds out by itself
    what only the manifest's grids read.
    """
    sizes = {*launcher.required, *(name for name, value in launcher.defaults.items() if value is not None)}
    known = set(other)
    for axis in axes:
        known.add(axis.name)
        if axis.source != "given" or axis.name in sizes:
            yield axis
    for name, size in host_axes(family).items():
        if name in sizes and name not in known:
            yield AxisRule(name, size["min"]["tree"], size["max"]["tree"], "given", size["doc"])


def _plain(shape: tuple[Any, ...]) -> set[str]:
    return {tree for tree in shape if isinstance(tree, str)}


def _check_names(table: CallTable) -> None:
    """The op's name is the launch function's; the others become its parameters and local variables."""
    arguments = [t.name for t in table.tensors] + [w.name for w in table.workspaces] + list(table.scalars)
    names = arguments + [axis.name for axis in table.axes] + [*table.fields]
    for what, name in [("an op", table.op), *(("an argument", name) for name in names)]:
        if why := why_not_a_name(name):
            raise ManifestError(f"{table.title}: {name!r} cannot be the name of {what}: it {why}")
    repeated = sorted({name for name in arguments if arguments.count(name) > 1 or name in [a.name for a in table.axes]})
    if repeated:
        raise ManifestError(f"{table.title}: {', '.join(repeated)} names two things")
