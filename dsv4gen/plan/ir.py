"""The IR: everything a template, the manifest or the runtime may know about one family on one target.

Expressions keep the names of axes, strides, tile fields and run-time facts; target facts, constants and options
are already substituted. Every value is immutable; a stage never changes a plan, it makes another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dsv4gen.base.errors import Place
from dsv4gen.base.params import ParamsLayout
from dsv4gen.prove import CoverageProof, Expr, FitProof, WidthProof

Tile: TypeAlias = Mapping[str, int]
Choice: TypeAlias = Mapping[str, str]
FactValue: TypeAlias = "int | float | bool | str | tuple[object, ...] | None"


@dataclass(frozen=True)
class Axis:
    """A symbolic size; `per` names the axis it varies along when the device reads it (seq_len per batch row)."""

    name: str
    minimum: Expr
    maximum: Expr
    per: str | None
    when: Expr | None
    doc: str


@dataclass(frozen=True)
class Tensor:
    """One tensor argument: element type, symbolic shape, strides in elements, alignment of the base in bytes, and the
    inputs that it may be itself where it is written."""

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    strides: tuple[str | int, ...]
    align: int
    role: str
    when: Expr | None
    optional: bool
    in_place: tuple[str, ...]
    doc: str


@dataclass(frozen=True)
class Workspace:
    """Scratch memory the caller owns; `init` and `restore` say what it holds before and after every call."""

    name: str
    dtype: str
    bytes: Expr
    init: str
    restore: str
    scope: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Rejection:
    """Why a path is not emitted for this target: the requirement, its value here, and where the spec says so."""

    reason: str
    key: str


@dataclass(frozen=True)
class Launch:
    """One kernel launch of a path; grid, block and dynamic shared memory are expressions over axes and tile."""

    kernel: str
    grid: tuple[Expr, Expr, Expr]
    block: Expr
    cluster: Expr | None
    shared_bytes: Expr
    dependent: bool


@dataclass(frozen=True)
class LaunchPath:
    """A way to run an op: correct inside `domain`, wanted where `prefer` holds; the first that holds is taken."""

    name: str
    variant: str
    domain: Expr
    prefer: Expr
    launches: tuple[Launch, ...]
    rejected: Rejection | None
    key: str


@dataclass(frozen=True)
class Op:
    """One callable operation: its tensor table, the Params struct its kernels take, and its launch paths."""

    name: str
    summary: str
    tensors: tuple[Tensor, ...]
    params: ParamsLayout
    workspaces: tuple[Workspace, ...]
    launch_paths: tuple[LaunchPath, ...]


@dataclass(frozen=True)
class RowPath:
    """A branch inside a kernel, chosen on the device per row; an optional one is left out where no row reaches it."""

    name: str
    domain: Expr
    prefer: Expr
    optional: bool = False


@dataclass(frozen=True)
class Bucket:
    """The tile a kernel takes where `when` is the first predicate that holds; `origin` is spec or tuning file."""

    when: Expr
    tile: Tile
    origin: str


@dataclass(frozen=True)
class Instance:
    """One emitted kernel symbol: its compile-time options and tile, what it is proven to need, and the row
    paths of its kernel, without optional ones that no launch of this tile takes."""

    symbol: str
    options: Choice
    tile: Tile
    threads: int
    shared_bytes: int
    min_blocks: int
    row_paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spills:
    """Registers that instances may spill where `when` holds for their options, and why that is accepted."""

    registers: int
    when: Expr
    reason: str

    def allowed(self, options: Choice) -> int:
        """Registers that the instance with these options may spill."""
        return self.registers if self.when.evaluate(options) else 0


@dataclass(frozen=True)
class Kernel:
    """A kernel template with its row paths, its legal tiles (refused ones with reasons) and its instances; `place` is
    where the spec has its symbol."""

    name: str
    entry: str
    row_paths: tuple[RowPath, ...]
    tiles: tuple[Tile, ...]
    refused_tiles: tuple[tuple[Tile, str], ...]
    buckets: tuple[Bucket, ...]
    instances: tuple[Instance, ...]
    spills: Spills | None = None
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Option:
    """A compile-time choice made in `load(...)`."""

    name: str
    choices: tuple[str, ...]
    default: str
    doc: str


@dataclass(frozen=True)
class Variants:
    """The flag that chooses between variants of a family, and this platform's default."""

    flag: str
    choices: tuple[str, ...]
    default: str
    doc: str


@dataclass(frozen=True)
class Proof:
    """One row of the proof table; `subject` is an op, a kernel, or a kernel's symbol pattern for one tile."""

    subject: str
    proof: FitProof | CoverageProof | WidthProof


@dataclass(frozen=True)
class TargetFacts:
    """The part of a target record a family plan may use: names for the manifest, facts for templates.

    `dies` has (units the runtime reports, XCDs) of each product with several.
    """

    name: str
    api: str
    arch: str
    also: tuple[str, ...]
    units: int
    dies: tuple[tuple[int, int], ...]
    facts: Mapping[str, FactValue]

    def __getitem__(self, path: str) -> FactValue:
        return self.facts[path]


@dataclass(frozen=True)
class BenchShapes:
    """Shapes to time, under one name; floors are over the axes."""

    name: str
    op: str
    options: Mapping[str, str]
    shapes: tuple[Mapping[str, int], ...]
    floor_bytes: Expr
    floor_flops: Expr


@dataclass(frozen=True)
class FamilyPlan:
    """One family planned for one target."""

    family: str
    summary: str
    language: str
    template: str
    reference: str
    target: TargetFacts
    axes: tuple[Axis, ...]
    constants: Mapping[str, int]
    options: tuple[Option, ...]
    variants: Variants
    main: str
    ops: tuple[Op, ...]
    kernels: tuple[Kernel, ...]
    proofs: tuple[Proof, ...]
    floor_bytes: Expr
    floor_flops: Expr
    hazards: tuple[str, ...]
    test_shapes: tuple[Mapping[str, int], ...]
    bench: tuple[BenchShapes, ...]
    spec_file: str
    places: Mapping[str, Place] = field(compare=False, repr=False, default_factory=dict)

    def op(self, name: str) -> Op:
        """The op of that name."""
        return next(op for op in self.ops if op.name == name)

    def kernel(self, name: str) -> Kernel:
        """The kernel of that name."""
        return next(kernel for kernel in self.kernels if kernel.name == name)
