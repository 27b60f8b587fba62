"""What one op takes under chosen options: tensors, sizes, scalars and workspaces.

The table is what argument checks, the launch function, size functions, fakes and help texts are made from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

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
#: torch's dtype -> bytes of an element
ITEM_BYTES = {
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "uint8", "bool"), 1),
    **dict.fromkeys(("float16", "bfloat16"), 2),
    **dict.fromkeys(("float32", "int32", "uint32"), 4),
    "int64": 8,
}
#: bytes that the address of a workspace is a multiple of; torch's allocators give more
WORKSPACE_ALIGN = 16


class TensorRule(NamedTuple):
    """One tensor argument. `shape` holds expression trees; a stride is a number, a run-time stride or an axis.

    `in_place` names inputs that a written tensor may be itself.
    """

    name: str
    dtypes: tuple[str, ...]
    shape: tuple[Any, ...]
    shape_text: str
    strides: tuple[str | int, ...]
    align: int
    role: str
    optional: bool
    in_place: tuple[str, ...] = ()

    @property
    def item(self) -> int:
        """Bytes of an element."""
        return ITEM_BYTES[self.dtypes[0]]

    @property
    def written(self) -> bool:
        """Whether the kernel writes it."""
        return self.role in ("out", "inout")


class AxisRule(NamedTuple):
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


class WorkspaceRule(NamedTuple):
    """Scratch memory: bytes as an expression tree, and the launch paths that use it; `dtype` is torch's name."""

    name: str
    dtype: str
    bytes: Any
    init: str
    restore: str
    scope: str
    paths: tuple[str, ...]


class Launcher(NamedTuple):
    """Keywords of the function in a Triton module that launches an op: those it needs, and those with a default."""

    required: tuple[str, ...]
    defaults: Mapping[str, Any]

    @property
    def names(self) -> frozenset[str]:
        """All of its keywords."""
        return frozenset((*self.required, *self.defaults))


class CallTable(NamedTuple):
    """Everything a call of one op needs to know.

    `fields` are the members of the kernels' Params struct in order, `pointers` the byte offsets of its addresses.
    Scalars in `floats` are float32, the others whole numbers.
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
    launcher: Launcher | None = None
    floats: frozenset[str] = frozenset()

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

    @property
    def choices(self) -> tuple[str, ...]:
        """Keywords of the launcher that the spec does not know, choices of its own that no check looks at; by name."""
        if self.launcher is None:
            return ()
        axes = {axis.name for axis in self.axes}
        known = {*self.memory, *self.absent, *self.options, *self.required_numbers, *axes}
        return tuple(sorted(self.launcher.names - known))

    @property
    def numbers(self) -> tuple[str, ...]:
        """All keywords that are no memory."""
        return (*self.required_numbers, *self.optional_numbers, *self.choices)

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Defaults of required numbers and choices."""
        defaults = self.launcher.defaults if self.launcher else {}
        return {name: defaults[name] for name in (*self.required_numbers, *self.choices) if name in defaults}
