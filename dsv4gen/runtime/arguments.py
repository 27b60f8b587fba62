"""Check the arguments of a call against its table, and say everything that is wrong with them.

This is the definition of a right call. The launch function makes the same tests in a form that only says yes or
no, never yes to a wrong call, and comes here when the answer is no; a property test compares the two.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dsv4gen.base.errors import ArgumentError, ExpressionError, did_you_mean
from dsv4gen.base.expression_json import evaluate_json
from dsv4gen.runtime.call_table import CallTable, TensorRule

Values = Mapping[str, Any]


@dataclass
class Bound:
    """The sizes and strides that a call's tensors stand for, and which tensor each came from."""

    sizes: dict[str, int]
    strides: dict[str, int]
    origin: dict[str, str]


def check(table: CallTable, values: Values, on_cuda: bool) -> Bound:
    """The call's sizes and strides.

    Args:
        values: every argument by name; None or absent means "not passed". Outputs must be there.
        on_cuda: whether tensors must be on a GPU of torch (a stand-in driver works on the host's memory).

    Raises:
        ArgumentError: all that is wrong; for each, the tensor, what it has and what is needed.
    """
    bound = Bound({}, {}, {})
    problems = list(_problems(table, values, on_cuda, bound))
    if problems:
        raise ArgumentError(f"{table.title}: {'; '.join(problems)}")
    return bound


def by_name(table: CallTable, args: Sequence[Any], named: Values) -> dict[str, Any]:
    """A call's arguments by name: tensors in table order, inputs first, then what was named.

    Raises:
        ArgumentError: a name the op does not have, an argument given twice, or one missing.
    """
    problem = misuse(table, args, named)
    if problem:
        raise problem
    return {**dict(zip(_tensor_names(table), args, strict=False)), **named}


def misuse(table: CallTable, args: Sequence[Any], named: Values) -> ArgumentError | None:
    """What is wrong with the names of a call's arguments, or None."""
    tensors = _tensor_names(table)
    numbers = [*table.required_numbers, *table.optional_numbers]
    known = [*tensors, *numbers, *(rule.name for rule in table.workspaces), *table.choices]
    takes = f"{table.title} takes {', '.join(known)}"
    for name in named:
        if name in table.absent:
            return ArgumentError(f"{table.title} takes no {name} with {table.options_text}", remedy=takes)
        if name not in known:
            return ArgumentError(f"{table.title} has no argument {name!r}{did_you_mean(name, known)}", remedy=takes)
    twice = [name for name in tensors[: len(args)] if name in named]
    if twice:
        return ArgumentError(f"{table.title} was given {twice[0]} twice", remedy=takes)
    if len(args) > len(tensors):
        return ArgumentError(f"{table.title} was given {len(args)} tensors", remedy=takes)
    given = {*tensors[: len(args)], *named, *table.defaults}
    needed = [rule.name for rule in table.inputs if not rule.optional] + [*table.required_numbers, *table.choices]
    missing = [name for name in needed if name not in given]
    return ArgumentError(f"{table.title}: {', '.join(missing)} missing", remedy=takes) if missing else None


def dtypes(table: CallTable) -> dict[str, Any]:
    """torch's dtypes of the table by their names in a launch function."""
    import torch

    return {f"_{dtype}": getattr(torch, dtype) for rule in table.tensors for dtype in rule.dtypes}


def _tensor_names(table: CallTable) -> list[str]:
    return [rule.name for rule in (*table.inputs, *table.outputs)]


def _problems(table: CallTable, values: Values, on_cuda: bool, bound: Bound) -> Iterator[str]:
    good: list[TensorRule] = []
    unsaid = {name for name in table.required_numbers if not _is_number(values.get(name), integral=True)}
    for rule in (*table.inputs, *table.outputs):
        found = _tensor_problem(rule, values.get(rule.name))
        if found:
            unsaid |= {tree for tree in rule.shape if isinstance(tree, str)}
            yield found
        elif values.get(rule.name) is not None:
            good.append(rule)
            _bind(rule, values[rule.name], bound)
    yield from _number_problems(table, values, bound)
    yield from _device_problems(good, values, on_cuda)
    shown = set(bound.sizes)
    # A size that only a wrong argument would say stays unknown: what depends on it is no mistake of its own.
    for name in (axis.name for axis in table.axes if axis.name not in unsaid):
        bound.sizes.setdefault(name, 0)
    for rule in good:
        yield from _layout_problems(table, rule, values[rule.name], bound)
    yield from _range_problems(table, bound, shown)
    yield from _workspace_problems(table, values, good)


def _tensor_problem(rule: TensorRule, tensor: Any) -> str:
    """Why a value is not this tensor at all: nothing, no tensor, wrong number of dimensions, wrong dtype."""
    if tensor is None:
        return "" if rule.optional else f"{rule.name} is missing"
    if not hasattr(tensor, "data_ptr"):
        return f"{rule.name} is a {type(tensor).__name__}, not a tensor"
    if tensor.dim() != len(rule.shape):
        return f"{rule.name} has {tensor.dim()} dimension(s); [{rule.shape_text}] is needed"
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in rule.dtypes:
        return f"{rule.name} is {dtype}; {' or '.join(rule.dtypes)} is needed"
    if str(tensor.layout) != "torch.strided":
        return f"{rule.name} has layout {tensor.layout}; a strided tensor is needed"
    return "" if _has_memory(tensor) else f"{rule.name} has no memory: a fake or meta tensor; call .torch_op instead"


def _has_memory(tensor: Any) -> bool:
    """Fake and meta tensors have none; depending on torch's version asking for the address fails or gives 0."""
    try:
        return bool(tensor.data_ptr() != 0 or tensor.numel() == 0)
    except RuntimeError:
        return False


def _bind(rule: TensorRule, tensor: Any, bound: Bound) -> None:
    """Take the sizes and run-time strides a tensor is the first to show."""
    for position, tree in enumerate(rule.shape):
        if isinstance(tree, str) and tree not in bound.sizes:
            bound.sizes[tree] = int(tensor.shape[position])
            bound.origin[tree] = rule.name
    for position, stride in enumerate(rule.strides):
        if isinstance(stride, str) and stride not in bound.strides:
            bound.strides[stride] = int(tensor.stride(position))
            bound.origin.setdefault(stride, rule.name)


def _number_problems(table: CallTable, values: Values, bound: Bound) -> Iterator[str]:
    for name in table.required_numbers:
        if values.get(name) is None:
            yield f"{name} is missing"
        elif not _is_number(values[name], integral=name not in table.floats):
            yield f"{name} is {values[name]!r}, not a {'number' if name in table.floats else 'whole number'}"
        elif name not in table.scalars:
            bound.sizes[name] = int(values[name])
    for name in table.optional_numbers:
        value = values.get(name)
        if value is not None and not _is_number(value, integral=True):
            yield f"{name} is {value!r}, not a whole number"
        elif value is not None and name in bound.sizes and value != bound.sizes[name]:
            yield f"{name}={value}, but {bound.origin[name]} shows {bound.sizes[name]}"


def _is_number(value: Any, *, integral: bool) -> bool:
    try:
        return bool(value == (operator.index(value) if integral else float(value)))
    except (TypeError, ValueError, OverflowError):
        return False


def _device_problems(good: list[TensorRule], values: Values, on_cuda: bool) -> Iterator[str]:
    devices = {rule.name: values[rule.name].device for rule in good}
    first = next(iter(devices), "")
    for name, device in devices.items():
        if (device.type == "cuda") is not on_cuda:
            wanted = "a GPU" if on_cuda else "the host"
            yield f"{name} is on {device}; this kernel needs its tensors on {wanted}"
        elif device != devices[first]:
            yield f"{name} is on {device} and {first} on {devices[first]}"


def _layout_problems(table: CallTable, rule: TensorRule, tensor: Any, bound: Bound) -> Iterator[str]:
    for position, tree in enumerate(rule.shape):
        expected = bound.sizes.get(tree) if isinstance(tree, str) else _evaluate(tree, table, bound)
        found = int(tensor.shape[position])
        if expected is not None and found != expected:
            text = rule.shape_text.split(", ")[position] if isinstance(tree, str) else f"[{rule.shape_text}]"
            source = f" (from {bound.origin[tree]})" if isinstance(tree, str) and tree in bound.origin else ""
            yield f"{rule.name} has size {found} in dimension {position}; {text} is {expected}{source}"
    for position, stride in enumerate(rule.strides):
        expected = stride if isinstance(stride, int) else bound.sizes.get(stride, bound.strides.get(stride))
        found = int(tensor.stride(position))
        if expected is not None and found != expected and tensor.shape[position] > 1:
            yield (
                f"{rule.name} has stride {found} in dimension {position}; {expected} is needed, "
                "which .contiguous() would give"
            )
    if tensor.data_ptr() % rule.align:
        past = tensor.data_ptr() % rule.align
        yield f"{rule.name} starts {past} byte(s) past a multiple of {rule.align}; its address must be one"
    if rule.written:
        yield from _overlap_problems(rule, tensor)


def _overlap_problems(rule: TensorRule, tensor: Any) -> Iterator[str]:
    """Two entries of an output at one address, as in an expanded tensor or a sliding window."""
    if 0 in tensor.shape:
        return
    dimensions = sorted((int(stride), int(size)) for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    span = 1
    for stride, size in dimensions:
        if size > 1 and stride < span:
            yield f"{rule.name} overlaps itself: shape {tuple(tensor.shape)}, strides {tensor.stride()}"
            return
        span += (size - 1) * stride


def _evaluate(tree: Any, table: CallTable, bound: Bound) -> int | None:
    try:
        return int(evaluate_json(tree, {**table.constants, **bound.sizes}))
    except ExpressionError:
        return None


def _range_problems(table: CallTable, bound: Bound, shown: set[str]) -> Iterator[str]:
    """Sizes out of range, of those that some argument shows."""
    for axis in (axis for axis in table.axes if axis.name in shown):
        low, high = _evaluate(axis.minimum, table, bound), _evaluate(axis.maximum, table, bound)
        value = bound.sizes[axis.name]
        if axis.source == "absent" or low is None or high is None:
            continue
        if not low <= value <= high:
            yield f"{axis.name}={value} is outside {low}..{high} ({axis.doc})"


def _workspace_problems(table: CallTable, values: Values, good: list[TensorRule]) -> Iterator[str]:
    for rule in table.workspaces:
        space = values.get(rule.name)
        if space is None:
            continue
        if not hasattr(space, "data_ptr"):
            yield f"{rule.name} is a {type(space).__name__}, not a tensor"
        elif not space.is_contiguous():
            yield f"{rule.name} is not contiguous"
        elif good and space.device != values[good[0].name].device:
            yield f"{rule.name} is on {space.device} and {good[0].name} on {values[good[0].name].device}"
        elif not _has_memory(space):
            yield f"{rule.name} has no memory: its storage was freed"
        elif space.data_ptr() % 16:
            yield f"{rule.name} must start at a multiple of 16 bytes"
