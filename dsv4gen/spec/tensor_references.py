"""Cross references of the tensor table of an op."""

from __future__ import annotations

from dsv4gen.spec.family import DTYPES, FamilySpec, Op, Tensor
from dsv4gen.spec.findings import Findings, identifiers, quoted

#: Sizes only the running device knows, allowed where a caller-visible size is computed.
RUNTIME_NAMES = ("units", "xcds")

_WORKSPACE_ONLY = ("bytes", "init", "restore", "scope", "paths")


def stride_names(op: Op) -> set[str]:
    """Run-time strides: plain names in `strides` that are parameters of the op."""
    found = {stride for tensor in op.tensors.values() for stride in tensor.strides or ()}
    return {stride for stride in found if stride.isidentifier() and stride in op.params}


def chosen_axes(family: FamilySpec) -> set[str]:
    """Axes whose values a caller chooses."""
    return {name for name, axis in family.axes.items() if axis.per is None}


def check_tensor(family: FamilySpec, op: Op, tensor: Tensor, findings: Findings, keys: tuple[str, ...]) -> None:
    """One tensor or workspace: what goes with its role, and names that it uses."""
    workspace = tensor.role == "workspace"
    if workspace and tensor.bytes is None:
        findings.add("a workspace needs 'bytes'", *keys)
    if not workspace and tensor.shape is None:
        findings.add("a tensor needs 'shape'", *keys)
    for field in _WORKSPACE_ONLY if not workspace else ("shape", "strides"):
        if getattr(tensor, field) is not None:
            findings.add(f"'{field}' does not go with role {tensor.role}", *keys, field)
    if tensor.shape is not None and tensor.strides is not None and len(tensor.shape) != len(tensor.strides):
        findings.add(f"{len(tensor.strides)} strides for {len(tensor.shape)} dimensions", *keys, "strides")
    if tensor.align & (tensor.align - 1):
        findings.add(f"{tensor.align} is not a power of two", *keys, "align")
    paths = {path.name for path in op.launch_paths}
    for position, path in enumerate(tensor.paths or ()):
        findings.known(path, paths, "no launch path", *keys, "paths", position)
    _check_in_place(op, tensor, findings, keys)
    _check_dtype(family, tensor, findings, keys)
    _check_sizes(family, op, tensor, findings, keys)


def _check_in_place(op: Op, tensor: Tensor, findings: Findings, keys: tuple[str, ...]) -> None:
    if tensor.in_place and tensor.role not in ("out", "inout"):
        findings.add(f"only a written tensor can be in place, and the role is {tensor.role}", *keys, "in_place")
    read = [name for name, other in op.tensors.items() if other.role == "in"]
    for position, name in enumerate(tensor.in_place):
        place: tuple[str | int, ...] = (*keys, "in_place", position)
        if findings.known(name, read, "no input of this op", *place):
            other = op.tensors[name]
            for field in ("shape", "dtype", "when"):
                if getattr(other, field) != getattr(tensor, field):
                    findings.add(f"{name} has another {field}, so that the two cannot be one tensor", *place)


def _check_dtype(family: FamilySpec, tensor: Tensor, findings: Findings, keys: tuple[str, ...]) -> None:
    option = family.options.get(tensor.dtype)
    if option is None:
        findings.known(tensor.dtype, {*DTYPES, *family.options}, "no dtype and no option", *keys, "dtype")
        return
    for choice in option.choices:
        findings.known(choice, DTYPES, f"a choice of '{tensor.dtype}' but no dtype", *keys, "dtype")


def _check_sizes(family: FamilySpec, op: Op, tensor: Tensor, findings: Findings, keys: tuple[str, ...]) -> None:
    sizes = {*chosen_axes(family), *family.constants, *op.scalars, *RUNTIME_NAMES}
    for position, size in enumerate(tensor.shape or ()):
        findings.names(size, sizes | set(family.options), *keys, "shape", position)
        _check_quoted(family, size, findings, *keys, "shape", position)
    for position, stride in enumerate(tensor.strides or ()):
        findings.names(stride, sizes | stride_names(op), *keys, "strides", position)
    if tensor.when is not None:
        findings.names(tensor.when, family.options, *keys, "when")
        _check_quoted(family, tensor.when, findings, *keys, "when")


def _check_quoted(family: FamilySpec, expression: str, findings: Findings, *keys: str | int) -> None:
    """Quoted words are choices of the options that the expression reads."""
    used = [family.options[name] for name in identifiers(expression) if name in family.options]
    choices = {choice for option in used for choice in option.choices}
    for word in quoted(expression):
        findings.known(word, choices, "no choice of the options named here", *keys)
