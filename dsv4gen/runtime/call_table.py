"""What one op takes under chosen options: tensors, sizes, scalars and workspaces, read from its manifest entry.

The table is what argument checks, the launch function, size functions, fakes and help texts are made from.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dsv4gen.base.errors import ManifestError
from dsv4gen.base.expression_json import choose_json, evaluate_json, names_json
from dsv4gen.runtime.dispatch import host_axes, names_in_bounds, names_read

Json = Mapping[str, Any]

#: dtypes of more than one byte -> bytes, which every address is a multiple of
ITEM_BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "u32": 4, "i64": 8}
#: dtype -> torch dtypes a tensor may have; FP8 bytes may also come as plain bytes
TORCH_DTYPES = {
    "f32": ("float32",),
    "f16": ("float16",),
    "bf16": ("bfloat16",),
    "f8e4m3fn": ("float8_e4m3fn", "uint8"),
    "f8e4m3fnuz": ("float8_e4m3fnuz", "uint8"),
    "u8": ("uint8",),
    "i32": ("int32",),
    "u32": ("uint32",),
    "i64": ("int64",),
    "bool": ("bool",),
}


@dataclass(frozen=True)
class TensorRule:
    """One tensor argument. `shape` holds expression trees; a stride is a number, a run-time stride or an axis."""

    name: str
    dtypes: tuple[str, ...]
    shape: tuple[Any, ...]
    shape_text: str
    strides: tuple[str | int, ...]
    align: int
    role: str
    optional: bool

    @property
    def written(self) -> bool:
        """Whether the kernel writes it."""
        return self.role in ("out", "inout")


@dataclass(frozen=True)
class AxisRule:
    """One size. `source` says where its value comes from: `input` or `output` (a tensor's shape), `given` (the
    caller must say it), or `absent` (only tensors that these options leave out have it, so it is 0)."""

    name: str
    minimum: Any
    maximum: Any
    source: str
    doc: str

    @property
    def constant_range(self) -> tuple[int, int] | None:
        """The range, when it depends on no other size."""
        if isinstance(self.minimum, int) and isinstance(self.maximum, int):
            return int(self.minimum), int(self.maximum)
        return None


@dataclass(frozen=True)
class WorkspaceRule:
    """Scratch memory: bytes as an expression tree, and the launch paths that use it; `dtype` is torch's name."""

    name: str
    dtype: str
    bytes: Any
    init: str
    restore: str
    scope: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class CallTable:
    """Everything a call of one op needs to know.

    `fields` are the members of the kernels' Params struct in order, `pointers` the byte offsets of its addresses.
    """

    family: str
    op: str
    tensors: tuple[TensorRule, ...]
    absent: tuple[str, ...]
    axes: tuple[AxisRule, ...]
    scalars: tuple[str, ...]
    workspaces: tuple[WorkspaceRule, ...]
    fields: tuple[str, ...]
    pointers: Mapping[str, int]
    format: str
    size: int
    key_axes: tuple[str, ...]
    constants: Mapping[str, int]
    options: Mapping[str, str]

    @property
    def options_text(self) -> str:
        """The chosen options as words."""
        return " ".join(f"{name}={value}" for name, value in self.options.items())

    @property
    def title(self) -> str:
        """How messages name the op."""
        return f"{self.family}.{self.op}"

    @property
    def inputs(self) -> tuple[TensorRule, ...]:
        """Tensors the caller must pass, then those it may leave out; outputs are not in it."""
        mine = [tensor for tensor in self.tensors if tensor.role != "out"]
        return tuple(sorted(mine, key=lambda tensor: tensor.optional))

    @property
    def outputs(self) -> tuple[TensorRule, ...]:
        """Tensors that are made when the caller passes none."""
        return tuple(tensor for tensor in self.tensors if tensor.role == "out")

    @property
    def memory(self) -> tuple[str, ...]:
        """Names of all arguments that are memory: inputs, outputs, workspaces."""
        return (*(rule.name for rule in (*self.inputs, *self.outputs)), *(space.name for space in self.workspaces))

    @property
    def required_numbers(self) -> tuple[str, ...]:
        """Keywords without a default: sizes no tensor shows, and scalars."""
        return (*(axis.name for axis in self.axes if axis.source == "given"), *self.scalars)

    @property
    def optional_numbers(self) -> tuple[str, ...]:
        """Sizes that only outputs show; needed to make them, and otherwise checked."""
        return tuple(axis.name for axis in self.axes if axis.source == "output")


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
        align=max(entry["align"], ITEM_BYTES.get(dtype, 1)),
        role=entry["role"],
        optional=entry["optional"],
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


def _plain(shape: tuple[Any, ...]) -> set[str]:
    return {tree for tree in shape if isinstance(tree, str)}


def _check_names(table: CallTable) -> None:
    """Names become parameters and local variables of the launch function."""
    arguments = [t.name for t in table.tensors] + [w.name for w in table.workspaces] + list(table.scalars)
    names = arguments + [axis.name for axis in table.axes] + [*table.fields]
    for name in names:
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise ManifestError(f"{table.title}: {name!r} cannot be the name of an argument")
    repeated = sorted({name for name in arguments if arguments.count(name) > 1 or name in [a.name for a in table.axes]})
    if repeated:
        raise ManifestError(f"{table.title}: {', '.join(repeated)} names two things")
