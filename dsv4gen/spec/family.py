"""The model of `specs/families/<family>.yaml`: one kernel family, for every target.

Expressions stay text here. Cross references (names, tiles, kernels) are checked in `dsv4gen.spec.references`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dsv4gen.spec.models import Distinct, Expression, Model, Name, Positive, Table, Text

#: Element types a tensor may have; u8 also carries raw FP8 and UE8M0 bytes.
DTYPES = ("f32", "f16", "bf16", "f8e4m3fn", "f8e4m3fnuz", "u8", "i32", "u32", "i64", "bool")

#: Several values of an axis.
Values = Annotated[Distinct[int], Field(min_length=1)]


class Axis(Model):
    """A size the caller chooses; with `per`, one value per entry of that axis, known on the device only.

    Attributes:
        min, max: the range for which the kernels must be right; checked on every call, and what proofs assume.
        per: the axis along which the device reads one value per entry.
        when: the axis exists only if this holds for the chosen options.
    """

    min: Expression
    max: Expression
    per: Name | None = None
    when: Expression | None = None
    doc: Text | None = None


class Option(Model):
    """A compile-time choice made in `load(...)`.

    Attributes:
        choices: its values, one word each.
        default: the value when the caller names none.
    """

    choices: Annotated[tuple[Name, ...], Field(min_length=1)]
    default: Name
    doc: Text


class Variants(Model):
    """Implementations that an environment variable selects; `default` may name a platform gate.

    Attributes:
        flag: the environment variable.
        choices: its values.
        default: one of the choices, or `defaults.<gate>`, which the platform file sets.
    """

    flag: Annotated[str, Field(pattern=r"^DSV4GEN_[A-Z0-9_]+$")]
    choices: Annotated[tuple[Name, ...], Field(min_length=1)]
    default: Annotated[str, Field(pattern=r"^(defaults\.)?[a-z][a-z0-9_]*$")]
    doc: Text


class Tensor(Model):
    """One tensor argument.

    Attributes:
        dtype: one of DTYPES, or the name of an option whose choices are DTYPES.
        shape: elements per dimension, expressions over axes, constants, scalars and options.
        strides: elements between neighbours per dimension; a plain new name declares a run-time stride.
        align: bytes the base address is a multiple of, beside those of an element.
        when: the tensor exists only if this holds for the chosen options.
        bytes: size of a workspace, which has no shape.
        init, restore: what a workspace must hold before the first launch, and holds again after each.
        scope: who may share a workspace; `stream` means one per stream.
        paths: launch paths that use a workspace; all of them when absent.
        role: what kernels do with it; a workspace is scratch memory that the caller owns.
        optional: the caller may leave it out.
        in_place: inputs that a written tensor may be itself, as each element is read before its place is written; with
            all other tensors it may share no memory.
    """

    dtype: Name
    shape: tuple[Expression, ...] | None = None
    strides: tuple[Expression, ...] | None = None
    align: Positive = 4
    role: Literal["in", "out", "inout", "workspace"]
    optional: bool = False
    in_place: Distinct[Name] = ()
    when: Expression | None = None
    bytes: Expression | None = None
    init: Literal["zero", "none"] | None = None
    restore: Literal["zero", "none"] | None = None
    scope: Literal["call", "stream"] | None = None
    paths: tuple[Name, ...] | None = None
    doc: Text | None = None


class Scalar(Model):
    """A run-time number that is neither an axis nor a stride.

    Attributes:
        dtype: its type in the Params struct.
        min, max: its range.
    """

    dtype: Literal["i32", "u32", "i64", "f32"]
    min: Expression | None = None
    max: Expression | None = None
    doc: Text | None = None


class LaunchPath(Model):
    """One way to run an op, chosen on the host.

    Attributes:
        variant: the variant this path belongs to; every variant when absent.
        requires: expressions over target facts; the path is not built where one is false.
        domain: shapes for which the path is correct.
        prefer: shapes for which it is wanted; the first path whose `prefer` holds is taken.
        launches: kernels in launch order.
        name: how `explain` calls it.
    """

    name: Name
    variant: Name | None = None
    requires: tuple[Expression, ...] = ()
    domain: Expression
    prefer: Expression
    launches: Annotated[tuple[Name, ...], Field(min_length=1)]
    doc: Text | None = None


class Op(Model):
    """One callable operation; `params` is the order of the kernel's arguments.

    Attributes:
        summary: one sentence for help texts and stubs.
        params: members of the by-value struct: tensors, strides, scalars and axes in order.
    """

    summary: Text
    tensors: Table[Tensor]
    scalars: Table[Scalar] = Table({})
    params: Annotated[tuple[Name, ...], Field(min_length=1)]
    launch_paths: Annotated[tuple[LaunchPath, ...], Field(min_length=1)]


class Bound(Model):
    """What a tile may not exceed for its kernel to be right, such as rows read at a time against rows there are.

    Attributes:
        value: over constants, tile values and target facts.
        most: the largest value that is right.
    """

    value: Expression
    most: Annotated[int, Field(gt=0)]
    doc: Text | None = None


class Fits(Model):
    """What one block needs, as expressions over constants, tile values and target facts.

    Attributes:
        threads: threads of a block.
        shared_bytes: bytes of shared memory of a block.
        bounds: what else limits a tile, by what is counted.
    """

    threads: Expression
    shared_bytes: Expression
    bounds: Table[Bound] = Table({})


class Spills(Model):
    """Registers a kernel may spill, vector and scalar together, and why that is accepted.

    Attributes:
        registers: how many at most, over target facts.
        when: which instances and builds may, over target facts and options; the others may spill none.
        reason: why fewer would be worse.
    """

    registers: Expression
    when: Expression = "true"
    reason: Text


class RowPath(Model):
    """One way to process a row, chosen on the device; `domain` and `prefer` as in a launch path.

    Attributes:
        name: how `explain` calls it, and what the template calls.
        domain: rows for which it is correct.
        prefer: rows for which it is taken; the first that holds.
        optional: the template leaves its code out where launches of no tile bring a row to it.
    """

    name: Name
    domain: Expression
    prefer: Expression
    optional: bool = False
    doc: Text | None = None


class Bucket(Model):
    """A host-side choice of tile: the first bucket whose `when` holds.

    Attributes:
        when: shapes that take this tile; the last bucket says `true`.
        tile: one of the legal values per tile dimension.
    """

    when: Expression
    tile: Table[int]


class Index(Model):
    """The largest value of an address computation, and the width of the signed type it is computed in.

    Attributes:
        value: the largest value.
        bits: bits of the type.
    """

    value: Expression
    bits: Literal[32, 64]
    doc: Text | None = None


class Kernel(Model):
    """One kernel template instantiated per option and tile.

    Attributes:
        symbol: name pattern; `{x}` is an option or a tile dimension.
        entry: the body's function (hip_cuda); the template's function otherwise.
        grid: blocks along x, y, z.
        cluster: blocks per cluster along x; no cluster when absent.
        min_blocks: blocks that must fit one multiprocessor or compute unit at once, over tile dimensions.
        pdl: launched as a programmatic dependent of the launch before it, where the target can.
        spills: what it may spill; nothing when absent.
        tiles: legal values per tile dimension; Triton kernels include num_warps and num_stages.
        constexprs: further compile-time arguments of a Triton kernel.
    """

    symbol: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*(\{[a-z_][a-z0-9_]*\}[a-z0-9_]*)*$")]
    entry: Name
    grid: tuple[Expression, Expression, Expression]
    cluster: Expression | None = None
    min_blocks: Expression = "1"
    pdl: bool = False
    tiles: Table[Annotated[tuple[int, ...], Field(min_length=1)]]
    constexprs: Table[Expression] = Table({})
    fits: Fits
    spills: Spills | None = None
    row_paths: tuple[RowPath, ...] = ()
    buckets: Annotated[tuple[Bucket, ...], Field(min_length=1)]
    indices: Table[Index] = Table({})
    doc: Text | None = None


class Floors(Model):
    """What no implementation can avoid: bytes moved and operations, for explain and bench.

    Attributes:
        bytes: bytes moved at least.
        flops: operations at least.
    """

    bytes: Expression
    flops: Expression


class Shapes(Model):
    """Axis values for tests.

    Attributes:
        test: for tests and `verify`.
    """

    test: tuple[Table[int], ...]


class BenchShapes(Model):
    """Shapes that `bench` times and `tune` measures, under one name.

    Attributes:
        op: the op that is called.
        options: compile-time choices; the others take their defaults.
        shapes: axis values; a list of values stands for each of them, several lists for all combinations.
        floors: what a call with these shapes cannot avoid, instead of the family's floors.
    """

    op: Name
    options: Table[Name] = Table({})
    shapes: Annotated[tuple[Table[int | Values], ...], Field(min_length=1)]
    floors: Floors | None = None
    doc: Text | None = None


class FamilySpec(Model):
    """One kernel family.

    Attributes:
        family: its name, which is the file's.
        summary: one sentence for people.
        language: what the kernels are written in.
        template: the file below `templates/<language>/`.
        reference: the module of `dsv4gen.reference` that defines what is right.
        constants: numbers that expressions and the template share.
        hazards: inputs that break kernels, by the names of `dsv4gen.reference.hazards`.
        main: the op that is meant where none is named, and whose cost `floors` state; not needed where there is one op.
        bench: named lists of shapes for `bench` and `tune`.
    """

    family: Name
    summary: Text
    language: Literal["hip_cuda", "triton"]
    template: Annotated[str, Field(pattern=r"^[a-z0-9_]+\.(cu|py)\.jinja$")]
    reference: Name
    axes: Table[Axis]
    constants: Table[int] = Table({})
    options: Table[Option] = Table({})
    variants: Variants | None = None
    main: Name | None = None
    ops: Table[Op]
    kernels: Table[Kernel]
    floors: Floors
    hazards: tuple[Name, ...]
    shapes: Shapes
    bench: Table[BenchShapes] = Table({})
