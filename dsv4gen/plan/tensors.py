"""Spec tensors and parameters -> the tensor table and the Params layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from dsv4gen.base.errors import SpecError, did_you_mean
from dsv4gen.base.params import ParamsLayout
from dsv4gen.plan.ir import Axis, Proof, Tensor, Workspace
from dsv4gen.plan.paths import choices_of, proof_axes
from dsv4gen.plan.reader import Reader
from dsv4gen.prove import Axis as ProofAxis
from dsv4gen.prove import prove_size
from dsv4gen.spec.family import Op as OpSpec

#: dtype -> element type in C++; options that choose a dtype print as raw bytes
C_TYPES = {
    "f32": "float", "f16": "u16", "bf16": "u16", "f8e4m3fn": "u8", "f8e4m3fnuz": "u8",
    "u8": "u8", "i32": "i32", "u32": "u32", "i64": "i64", "bool": "u8",
}  # fmt: skip

_SCALAR_RANGES = {"i32": (-(2**31), 2**31 - 1), "u32": (0, 2**32 - 1), "i64": (-(2**63), 2**63 - 1)}


def make_tensors(reader: Reader, op_name: str, op: OpSpec) -> tuple[Tensor, ...]:
    """The op's tensor table in the order of `params`; workspaces are not in it."""
    table = [_tensor(reader, op_name, op, name) for name, spec in op.tensors.items() if spec.role != "workspace"]
    order = {name: position for position, name in enumerate(op.params)}
    return tuple(sorted(table, key=lambda tensor: order.get(tensor.name, len(order))))


def _tensor(reader: Reader, op_name: str, op: OpSpec, name: str) -> Tensor:
    spec = op.tensors[name]
    keys = ("ops", op_name, "tensors", name)
    shape = tuple(reader.expr(size, *keys, "shape", i, extra=op.scalars) for i, size in enumerate(spec.shape or ()))
    return Tensor(
        name=name,
        dtype=spec.dtype,
        shape=shape,
        strides=tuple(int(stride) if stride.isdigit() else stride for stride in spec.strides or ()),
        align=spec.align,
        role=spec.role,
        when=reader.expr(spec.when, *keys, "when") if spec.when else None,
        optional=spec.optional,
        in_place=spec.in_place,
        doc=spec.doc or "",
    )


def make_workspaces(reader: Reader, op_name: str, op: OpSpec) -> tuple[Workspace, ...]:
    """Scratch memory the caller passes."""
    return tuple(
        Workspace(
            name=name,
            dtype=spec.dtype,
            bytes=reader.expr(spec.bytes or "0", "ops", op_name, "tensors", name, "bytes", extra=op.scalars),
            init=spec.init or "none",
            restore=spec.restore or "none",
            scope=spec.scope or "call",
            paths=spec.paths or tuple(path.name for path in op.launch_paths),
        )
        for name, spec in op.tensors.items()
        if spec.role == "workspace"
    )


def prove_workspaces(reader: Reader, op_name: str, axes: Sequence[Axis]) -> list[Proof]:
    """The size of each workspace is a number of bytes for every shape, every choice of options and every device.

    Raises:
        ProofError: a size below zero or too large, with a shape that shows it.
    """
    op = reader.spec.ops[op_name]
    space = (*proof_axes(axes, device=False), *_scalar_axes(op))
    proofs = []
    for workspace in make_workspaces(reader, op_name, op):
        options = choices_of(reader, workspace.bytes.names)
        place = reader.place("ops", op_name, "tensors", workspace.name, "bytes")
        for choices in product(*options.values()):
            chosen = dict(zip(options, choices, strict=True))
            label = " ".join([f"{workspace.name} bytes", *(f"{name}={choice}" for name, choice in chosen.items())])
            proof = prove_size(label, workspace.bytes, space, constants=chosen, place=place)
            proofs.append(Proof(f"{reader.spec.family}.{op_name}", proof))
    return proofs


def _scalar_axes(op: OpSpec) -> Iterator[ProofAxis]:
    """Whole scalars as far as the spec or their type bounds them."""
    for name, scalar in op.scalars.items():
        if scalar.dtype in _SCALAR_RANGES:
            low, high = _SCALAR_RANGES[scalar.dtype]
            yield ProofAxis.of(name, scalar.min or low, scalar.max or high)


def make_params(reader: Reader, op_name: str, op: OpSpec) -> ParamsLayout:
    """The by-value struct: pointers for tensors, 64-bit strides, 32-bit axes, scalars by their type.

    Raises:
        SpecError: a parameter that is no tensor, stride, axis or scalar of the op.
    """
    strides = {stride for tensor in op.tensors.values() for stride in tensor.strides or () if not stride.isdigit()}
    members = []
    for position, name in enumerate(op.params):
        if name in op.tensors:
            const = "const " if op.tensors[name].role == "in" else ""
            members.append((name, "pointer", f"{const}{C_TYPES.get(op.tensors[name].dtype, 'u8')}*"))
        elif name in strides:
            members.append((name, "i64", ""))
        elif name in reader.spec.axes:
            members.append((name, "u32", ""))
        elif name in op.scalars:
            members.append((name, op.scalars[name].dtype, ""))
        else:
            known = [*op.tensors, *strides, *reader.spec.axes, *op.scalars]
            raise SpecError(
                f"parameter {name!r} is no tensor, stride, axis or scalar{did_you_mean(name, known)}",
                place=reader.place("ops", op_name, "params", position),
            )
    return ParamsLayout.of(members).documented(_docs(reader, op))


def _docs(reader: Reader, op: OpSpec) -> dict[str, str]:
    """What each parameter is, in a line: shape and words of the spec for tensors, what strides step over."""
    found = {name: axis.doc or "" for name, axis in reader.spec.axes.items()}
    found |= {name: scalar.doc or "" for name, scalar in op.scalars.items()}
    for name, tensor in op.tensors.items():
        what = f"workspace of {tensor.bytes} bytes" if tensor.shape is None else f"[{', '.join(tensor.shape)}]"
        found[name] = f"{what}: {tensor.doc}" if tensor.doc else what
        for size, stride in zip(tensor.shape or (), tensor.strides or (), strict=False):
            if not stride.isdigit() and stride not in found:
                found[stride] = f"elements from one entry of {name} to the next along {size}"
    return found
