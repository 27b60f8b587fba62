"""Check the arguments of a call against its table, and say everything that is wrong with them.

This is the definition of a right call. The launch function makes the same tests in a form that only says yes or
no, never yes to a wrong call, and comes here when the answer is no; a property test compares the two.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

from dsv4gen.base.errors import ArgumentError
from dsv4gen.runtime import sharing
from dsv4gen.runtime.call_table import WORKSPACE_ALIGN, CallTable, TensorRule
from dsv4gen.runtime.tensor_checks import Bound, has_memory, layout_problems, tensor_problem

Values = Mapping[str, Any]


def check(table: CallTable, values: Values, on_cuda: bool) -> Bound:
    """The call's sizes and strides.

    Args:
        values: every argument by name; None or absent means "not passed". Outputs must be there.
        on_cuda: whether tensors must be on a GPU of torch (a stand-in driver works on the host's memory).

    Raises:
        ArgumentError: all that is wrong; for each, the tensor, what it has and what is needed.
    """
    bound = Bound()
    problems = list(_problems(table, values, on_cuda, bound))
    if problems:
        raise ArgumentError(f"{table.title}: {'; '.join(problems)}")
    return bound


def _problems(table: CallTable, values: Values, on_cuda: bool, bound: Bound) -> Iterator[str]:
    good: list[TensorRule] = []
    unsaid = {name for name in table.required_numbers if not _is_number(values.get(name), integral=True)}
    for rule in (*table.inputs, *table.outputs):
        found = tensor_problem(rule, values.get(rule.name))
        if found:
            unsaid |= {tree for tree in rule.shape if isinstance(tree, str)}
            yield found
        elif values.get(rule.name) is not None:
            good.append(rule)
            bound.take(rule, values[rule.name])
    yield from _number_problems(table, values, bound)
    yield from _device_problems(good, values, on_cuda)
    shown = set(bound.sizes)
    # A size that only a wrong argument would say stays unknown: what depends on it is no mistake of its own.
    for name in (axis.name for axis in table.axes if axis.name not in unsaid):
        bound.sizes.setdefault(name, 0)
    for rule in good:
        yield from layout_problems(table, rule, values[rule.name], bound)
    yield from _range_problems(table, bound, shown)
    wrong = dict(_workspace_problems(table, values, good))
    yield from wrong.values()
    spaces = {space.name for space in table.workspaces if values.get(space.name) is not None} - {*wrong}
    yield from _sharing_problems(table, values, {rule.name for rule in good} | spaces)


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


def _range_problems(table: CallTable, bound: Bound, shown: set[str]) -> Iterator[str]:
    """Sizes out of range, of those that some argument shows."""
    for axis in (axis for axis in table.axes if axis.name in shown):
        low, high = bound.value(axis.minimum, table), bound.value(axis.maximum, table)
        value = bound.sizes[axis.name]
        if axis.source == "absent" or low is None or high is None:
            continue
        if not low <= value <= high:
            yield f"{axis.name}={value} is outside {low}..{high} ({axis.doc})"


def _workspace_problems(table: CallTable, values: Values, good: list[TensorRule]) -> Iterator[tuple[str, str]]:
    """The workspace, and what is wrong with it."""
    for name in (rule.name for rule in table.workspaces):
        space = values.get(name)
        if space is None:
            continue
        if not hasattr(space, "data_ptr"):
            yield name, f"{name} is a {type(space).__name__}, not a tensor"
        elif not space.is_contiguous():
            yield name, f"{name} is not contiguous"
        elif good and space.device != values[good[0].name].device:
            yield name, f"{name} is on {space.device} and {good[0].name} on {values[good[0].name].device}"
        elif not has_memory(space):
            yield name, f"{name} has no memory: its storage was freed"
        elif space.data_ptr() % WORKSPACE_ALIGN:
            yield name, f"{name} must start at a multiple of {WORKSPACE_ALIGN} bytes"


def _sharing_problems(table: CallTable, values: Values, present: set[str]) -> Iterator[str]:
    for pair in sharing.pairs(table):
        if {pair.written, pair.other} <= present:
            found = sharing.problem(pair, values[pair.written], values[pair.other])
            if found:
                yield found
