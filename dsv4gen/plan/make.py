"""The entry point: one family, one target record -> its plan, or every reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from dsv4gen.base.errors import DsvError, SpecError, raise_all
from dsv4gen.plan.ir import Axis, BenchShapes, FamilyPlan, Kernel, Op, Option, Proof, TargetFacts, Variants
from dsv4gen.plan.kernels import make_kernel
from dsv4gen.plan.paths import make_launch_paths, prove_launch_paths
from dsv4gen.plan.reader import Reader
from dsv4gen.plan.tensors import make_params, make_tensors, make_workspaces, prove_workspaces
from dsv4gen.spec import FamilySpec, Loaded, TuningSpec
from dsv4gen.target import TargetRecord


def make_plan(loaded: Loaded[FamilySpec], record: TargetRecord, tuning: Loaded[TuningSpec] | None = None) -> FamilyPlan:
    """Plan one family for one target; rows of a tuning file take the place of the spec's buckets, kernel by kernel.

    Raises:
        SpecError, Problems: everything wrong with the spec on this target, each at its line.
    """
    reader = Reader(loaded, record, tuning)
    spec = loaded.model
    axes = tuple(_axes(reader))
    proofs: list[Proof] = []
    errors: list[DsvError] = []
    kernels: list[Kernel] = []
    for name in _wanted_kernels(reader):
        try:
            kernel, found = make_kernel(reader, name, axes)
            kernels.append(kernel)
            proofs += found
        except DsvError as error:
            errors += getattr(error, "errors", (error,))
    raise_all(errors)
    ops = tuple(_op(reader, name, axes, proofs) for name in spec.ops)
    return FamilyPlan(
        family=spec.family,
        summary=spec.summary,
        language=spec.language,
        template=spec.template,
        reference=spec.reference,
        target=_target(record),
        axes=axes,
        constants=dict(spec.constants),
        options=tuple(Option(name, o.choices, o.default, o.doc) for name, o in spec.options.items()),
        variants=_variants(reader),
        main=spec.main or next(iter(spec.ops)),
        ops=ops,
        kernels=tuple(kernels),
        proofs=tuple(proofs),
        floor_bytes=reader.expr(spec.floors.bytes, "floors", "bytes"),
        floor_flops=reader.expr(spec.floors.flops, "floors", "flops"),
        hazards=spec.hazards,
        test_shapes=tuple(dict(shape) for shape in spec.shapes.test),
        bench=tuple(_bench(reader, name) for name in spec.bench),
        spec_file=f"specs/families/{spec.family}.yaml",
    )


def _bench(reader: Reader, name: str) -> BenchShapes:
    """One list of shapes with every combination written out, and the floors of its calls."""
    entry, axes = reader.spec.bench[name], reader.spec.axes
    floors = entry.floors or reader.spec.floors
    keys = ("bench", name, "floors") if entry.floors else ("floors",)
    shapes: list[Mapping[str, int]] = []
    for shape in entry.shapes:
        chosen = {axis: shape[axis] for axis in axes if axis in shape}
        columns = [(value,) if isinstance(value, int) else value for value in chosen.values()]
        shapes += [dict(zip(chosen, row, strict=True)) for row in product(*columns)]
    return BenchShapes(
        name=name,
        op=entry.op,
        options=dict(entry.options),
        shapes=tuple(shapes),
        floor_bytes=reader.expr(floors.bytes, *keys, "bytes"),
        floor_flops=reader.expr(floors.flops, *keys, "flops"),
    )


def _wanted_kernels(reader: Reader) -> list[str]:
    """Kernels in order, less those that only rejected launch paths would launch."""
    rejected: set[str] = set()
    launched: set[str] = set()
    for op in reader.spec.ops:
        for path, spec in zip(make_launch_paths(reader, op), reader.spec.ops[op].launch_paths, strict=True):
            (rejected if path.rejected else launched).update(spec.launches)
    return [name for name in reader.spec.kernels if name not in rejected - launched]


def _target(record: TargetRecord) -> TargetFacts:
    arch = record.compile.clang if record.detect.api == "hip" else record.compile.nvrtc
    also = tuple(device.device for device in record.also)
    return TargetFacts(
        record.name,
        record.detect.api,
        arch or record.name,
        also,
        _usual_units(record),
        _dies(record),
        dict(record.facts),
    )


def _usual_units(record: TargetRecord) -> int:
    """Compute units of the target's first product, for explanations where no device runs; 64 when none is known."""
    counts = (product.reported_units or product.units for product in record.products.values())
    return next((count for count in counts if count), 64)


def _dies(record: TargetRecord) -> tuple[tuple[int, int], ...]:
    """Units and XCDs of the products that have several: no API of a running device tells its XCDs."""
    products = ((product.reported_units or product.units, product.xcds) for product in record.products.values())
    return tuple(sorted({(units, xcds) for units, xcds in products if units and xcds and xcds > 1}, reverse=True))


def _axes(reader: Reader) -> Iterator[Axis]:
    for name, axis in reader.spec.axes.items():
        low = reader.expr(axis.min, "axes", name, "min")
        high = reader.expr(axis.max, "axes", name, "max")
        when = reader.expr(axis.when, "axes", name, "when") if axis.when else None
        yield Axis(name, low, high, axis.per, when, axis.doc or "")


def _op(reader: Reader, name: str, axes: tuple[Axis, ...], proofs: list[Proof]) -> Op:
    spec = reader.spec.ops[name]
    paths = make_launch_paths(reader, name)
    proofs += prove_launch_paths(reader, name, paths, axes)
    proofs += prove_workspaces(reader, name, axes)
    return Op(
        name=name,
        summary=spec.summary,
        tensors=make_tensors(reader, name, spec),
        params=make_params(reader, name, spec),
        workspaces=make_workspaces(reader, name, spec),
        launch_paths=paths,
    )


def _variants(reader: Reader) -> Variants:
    spec = reader.spec.variants
    if spec is None:
        return Variants(flag="", choices=("",), default="", doc="")
    default = spec.default
    if default.startswith("defaults."):
        gate = reader.record.defaults.get(default.removeprefix("defaults."))
        if gate not in spec.choices:
            raise SpecError(
                f"{default} is {gate!r} on {reader.record.name}, not one of {', '.join(spec.choices)}",
                place=reader.place("variants", "default"),
                remedy=f"set {default} in specs/platforms/{reader.record.name}.yaml or a parent",
            )
        default = str(gate)
    return Variants(spec.flag, spec.choices, default, spec.doc)
