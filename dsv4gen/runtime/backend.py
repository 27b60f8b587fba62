"""What can stand behind a loaded op: the driver, Triton, or the reference. And what they share.

A backend turns a call table into a Python function that takes tensors and numbers by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from dsv4gen.base.errors import ArgumentError, ExpressionError
from dsv4gen.base.expression_json import evaluate_json
from dsv4gen.runtime import arguments
from dsv4gen.runtime.call_table import CallTable, TensorRule
from dsv4gen.runtime.dispatch import Decision

Function = Callable[..., Any]
Sizes = Mapping[str, int]


class Backend(Protocol):
    """One way to run a family with chosen options."""

    #: the target's name, or `reference`
    target: str

    def function(self, table: CallTable, *, checked: bool) -> Function:
        """A function that runs the op; outputs that are not passed are made and returned."""

    def decide(self, op: str, sizes: Sizes) -> Decision:
        """What a call with these sizes would launch."""

    def prewarm(self, table: CallTable, shapes: Sequence[Sizes]) -> None:
        """Load everything that calls with these sizes need; without sizes, everything the options reach."""

    def workspace_bytes(self, table: CallTable, sizes: Sizes) -> dict[str, int]:
        """Bytes of each workspace that a call with these sizes needs."""


def make_outputs(table: CallTable, values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with every missing output made: contiguous, uninitialised, on the inputs' device.

    Raises:
        ArgumentError: a size that only the output would show was not given, or is none.
    """
    import torch

    sizes = input_sizes(table, values)
    for name in table.optional_numbers:
        if name in sizes and (isinstance(sizes[name], (float, str)) or sizes[name] < 0):
            raise ArgumentError(f"{table.title}: {name} is {sizes[name]!r}, not the size of an output")
    found = dict(values)
    device = next(values[rule.name].device for rule in table.inputs if values.get(rule.name) is not None)
    for rule in table.outputs:
        if found.get(rule.name) is None:
            shape = tuple(_size(table, rule, tree, sizes) for tree in rule.shape)
            found[rule.name] = torch.empty(shape, dtype=getattr(torch, rule.dtypes[0]), device=device)
    return found


def input_sizes(table: CallTable, values: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes that the inputs show or the caller gave.

    Raises:
        ArgumentError: an input is no tensor, or has too few dimensions to show its sizes.
    """
    sizes: dict[str, Any] = {name: values[name] for name in _numbers(table) if values.get(name) is not None}
    for rule in table.inputs:
        tensor: Any = values.get(rule.name)
        if tensor is None and rule.optional:
            continue
        if not hasattr(tensor, "shape") or len(tensor.shape) != len(rule.shape):
            arguments.check(table, values, on_cuda=False)
            raise ArgumentError(f"{table.title}: {rule.name} must be a tensor [{rule.shape_text}]")
        for position, tree in enumerate(rule.shape):
            if isinstance(tree, str):
                sizes.setdefault(tree, tensor.shape[position])
    return sizes


def _numbers(table: CallTable) -> tuple[str, ...]:
    return (*table.required_numbers, *table.optional_numbers)


def _size(table: CallTable, rule: TensorRule, tree: Any, sizes: Mapping[str, Any]) -> Any:
    if isinstance(tree, str) and tree in sizes:
        return sizes[tree]
    try:
        return evaluate_json(tree, {**table.constants, **sizes})
    except ExpressionError:
        raise ArgumentError(
            f"{table.title}: the size of {rule.name} [{rule.shape_text}] is not known",
            remedy=f"pass {rule.name}=..., or the sizes {', '.join(table.optional_numbers)}",
        ) from None
