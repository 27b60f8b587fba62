"""What one tensor of a call shows of the call's sizes, and all that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dsv4gen.base.errors import ExpressionError
from dsv4gen.base.expression_json import evaluate_json
from dsv4gen.runtime.call_table import CallTable, TensorRule


@dataclass
class Bound:
    """The sizes and strides that a call's tensors stand for, and which tensor each came from."""

    sizes: dict[str, int] = field(default_factory=dict)
    strides: dict[str, int] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)

    def take(self, rule: TensorRule, tensor: Any) -> None:
        """The sizes and run-time strides a tensor is the first to show."""
        for position, tree in enumerate(rule.shape):
            if isinstance(tree, str) and tree not in self.sizes:
                self.sizes[tree] = int(tensor.shape[position])
                self.origin[tree] = rule.name
        for position, stride in enumerate(rule.strides):
            if isinstance(stride, str) and stride not in self.strides:
                self.strides[stride] = int(tensor.stride(position))
                self.origin.setdefault(stride, rule.name)

    def value(self, tree: Any, table: CallTable) -> int | None:
        """An expression over sizes; None where one of them is not known."""
        try:
            return int(evaluate_json(tree, {**table.constants, **self.sizes}))
        except ExpressionError:
            return None


def tensor_problem(rule: TensorRule, tensor: Any) -> str:
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
    return "" if has_memory(tensor) else f"{rule.name} has no memory: a fake or meta tensor; call .torch_op instead"


def has_memory(tensor: Any) -> bool:
    """Whether there is an address: of fake and meta tensors torch, by its version, says 0 or fails."""
    try:
        return bool(tensor.data_ptr() != 0 or tensor.numel() == 0)
    except RuntimeError:
        return False


def layout_problems(table: CallTable, rule: TensorRule, tensor: Any, bound: Bound) -> Iterator[str]:
    """Sizes and strides that are not what the call's others ask for, an address between two elements, an overlap."""
    for position, tree in enumerate(rule.shape):
        expected = bound.sizes.get(tree) if isinstance(tree, str) else bound.value(tree, table)
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
