"""Cross references of a family spec: options, variants, axes, shapes, and what each op takes and launches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dsv4gen.base.argument_names import why_not_a_name
from dsv4gen.base.env import VARIABLES
from dsv4gen.base.errors import SpecError
from dsv4gen.base.hazard_names import HAZARD_NAMES
from dsv4gen.spec.family import BenchShapes, FamilySpec, Op
from dsv4gen.spec.findings import Findings
from dsv4gen.spec.kernel_references import check_kernel
from dsv4gen.spec.loaded import Loaded
from dsv4gen.spec.tensor_references import check_tensor, chosen_axes, stride_names


def check_family(loaded: Loaded[FamilySpec]) -> list[SpecError]:
    """Names that refer to nothing, and tables that contradict each other, within one family."""
    family, findings = loaded.model, Findings(loaded)
    _check_head(family, findings)
    _check_names(family, findings)
    _check_axes(family, findings)
    _check_shapes(family, findings)
    for name, op in family.ops.items():
        _check_params(family, op, findings, name)
        _check_launch_paths(family, op, findings, name)
        for tensor_name, tensor in op.tensors.items():
            check_tensor(family, op, tensor, findings, ("ops", name, "tensors", tensor_name))
    launched = {kernel for op in family.ops.values() for path in op.launch_paths for kernel in path.launches}
    for name in family.kernels:
        check_kernel(family, name, findings)
        if name not in launched:
            remedy = "launch it or remove it"
            findings.add("no launch path launches this kernel", "kernels", name, remedy=remedy)
    return findings.errors


def _check_head(family: FamilySpec, findings: Findings) -> None:
    for table in ("ops", "kernels"):
        if not getattr(family, table):
            findings.add("a family needs at least one", table)
    if family.main is not None:
        findings.known(family.main, family.ops, "not among the ops", "main")
    elif len(family.ops) > 1:
        findings.add("several ops, and none is said to be meant where none is named", "ops", remedy="add `main: OP`")
    for name, option in family.options.items():
        findings.unique(option.choices, "options", name, "choices")
        findings.known(option.default, option.choices, "not among the choices", "options", name, "default")
    if family.variants:
        default, choices = family.variants.default, family.variants.choices
        findings.unique(choices, "variants", "choices")
        if not default.startswith("defaults."):
            findings.known(default, choices, "not among the choices", "variants", "default")
    findings.unique(family.hazards, "hazards")
    for position, hazard in enumerate(family.hazards):
        findings.known(hazard, HAZARD_NAMES, "no hazard", "hazards", position)
    for name, value in family.constants.items():
        if value < 0:
            remedy = "constants are sizes and counts: write what is subtracted, and subtract it where it is used"
            findings.add(f"{value} is negative", "constants", name, remedy=remedy)
    for table in ("constants", "options"):
        for name in getattr(family, table):
            others = [other for other in ("axes", "constants", "options") if other != table]
            if any(name in getattr(family, other) for other in others):
                findings.add("the same name stands for something else in this file", table, name)


def _check_names(family: FamilySpec, findings: Findings) -> None:
    for name, keys in _argument_names(family):
        if why := why_not_a_name(name):
            findings.add(f"'{name}' {why}", *keys, remedy="choose another name")


def _argument_names(family: FamilySpec) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Names that become names of Python, and where they stand: ops, tensors, scalars, axes, run-time strides."""
    yield from ((axis, ("axes", axis)) for axis in family.axes)
    for name, op in family.ops.items():
        yield name, ("ops", name)
        for table in ("tensors", "scalars"):
            yield from ((member, ("ops", name, table, member)) for member in getattr(op, table))
        for position, param in enumerate(op.params):
            if param in stride_names(op):
                yield param, ("ops", name, "params", position)


def _check_axes(family: FamilySpec, findings: Findings) -> None:
    for name, axis in family.axes.items():
        if axis.per is not None:
            findings.known(axis.per, family.axes, "no axis", "axes", name, "per")
        others = {*family.axes, *family.constants} - {name}
        for bound in ("min", "max"):
            findings.names(getattr(axis, bound), others, "axes", name, bound)
        if axis.min.isdigit() and axis.max.isdigit() and int(axis.min) > int(axis.max):
            findings.add(f"min {axis.min} is above max {axis.max}", "axes", name, "min")


def _check_shapes(family: FamilySpec, findings: Findings) -> None:
    for position, shape in enumerate(family.shapes.test):
        for name, value in shape.items():
            _check_size(family, findings, name, (value,), "shapes", "test", position, name)
    for title, entry in family.bench.items():
        _check_bench(family, entry, findings, ("bench", title))


def _check_bench(family: FamilySpec, entry: BenchShapes, findings: Findings, keys: tuple[str, ...]) -> None:
    findings.known(entry.op, family.ops, "no op", *keys, "op")
    for name, choice in entry.options.items():
        if findings.known(name, family.options, "no option", *keys, "options", name):
            findings.known(choice, family.options[name].choices, "not among the choices", *keys, "options", name)
    for position, shape in enumerate(entry.shapes):
        for name, value in shape.items():
            values = (value,) if isinstance(value, int) else value
            _check_size(family, findings, name, values, *keys, "shapes", position, name)
    for field in ("bytes", "flops") if entry.floors else ():
        names = {*chosen_axes(family), *family.constants, *family.options}
        findings.names(getattr(entry.floors, field), names, *keys, "floors", field)


def _check_size(family: FamilySpec, findings: Findings, name: str, values: Iterable[int], *keys: str | int) -> None:
    """Values of an axis that a caller chooses, inside its range where that is written in numbers."""
    if not findings.known(name, chosen_axes(family), "no axis a caller chooses", *keys):
        return
    axis = family.axes[name]
    for value in values:
        if axis.min.isdigit() and value < int(axis.min):
            findings.add(f"{value} is below the axis's min {axis.min}", *keys)
        if axis.max.isdigit() and value > int(axis.max):
            findings.add(f"{value} is above the axis's max {axis.max}", *keys)


def _check_params(family: FamilySpec, op: Op, findings: Findings, name: str) -> None:
    findings.unique(op.params, "ops", name, "params")
    known = {*op.tensors, *stride_names(op), *op.scalars, *chosen_axes(family)}
    for position, param in enumerate(op.params):
        findings.known(param, known, "no tensor, stride, axis or scalar", "ops", name, "params", position)
    for table in ("tensors", "scalars"):
        for member in getattr(op, table):
            if member not in op.params:
                findings.add("missing from params, so no kernel can see it", "ops", name, table, member)


def _check_launch_paths(family: FamilySpec, op: Op, findings: Findings, name: str) -> None:
    variants = family.variants.choices if family.variants else ()
    findings.unique((path.name for path in op.launch_paths), "ops", name, "launch_paths")
    for position, path in enumerate(op.launch_paths):
        keys = ("ops", name, "launch_paths", position)
        if path.variant is not None:
            findings.known(path.variant, variants, "no variant", *keys, "variant")
        for place, kernel in enumerate(path.launches):
            findings.known(kernel, family.kernels, "no kernel", *keys, "launches", place)


def check_flags(families: Mapping[str, Loaded[FamilySpec]]) -> list[SpecError]:
    """Variant flags that two families share, or that are process-wide variables."""
    owners = {variable.name: "the process-wide variables" for variable in VARIABLES}
    errors: list[SpecError] = []
    for name, loaded in families.items():
        if loaded.model.variants is None:
            continue
        flag = loaded.model.variants.flag
        if flag in owners:
            place = loaded.place("variants", "flag")
            errors.append(SpecError(f"variants.flag: {flag} already belongs to {owners[flag]}", place=place))
        owners[flag] = name
    return errors
