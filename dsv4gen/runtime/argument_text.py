"""Lines of a launch function that read and test arguments, written for one op's tensor table.

The text holds nothing but names that `call_table` has checked to be identifiers, integers, and operators of the
expression language; it reads no input of a caller.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsv4gen.base.errors import ManifestError
from dsv4gen.base.expression_json import names_json
from dsv4gen.runtime import repeat, sharing
from dsv4gen.runtime.call_table import WORKSPACE_ALIGN, CallTable, TensorRule

_INFIX = ("+", "-", "*", "//", "%", "<", "<=", ">", ">=", "==", "!=")


def reads(table: CallTable, checked: bool) -> Iterator[str]:
    """Sizes, strides and addresses of every tensor; the first tensor also names the device."""
    seen: set[str] = set()
    for index, rule in enumerate((*table.inputs, *table.outputs)):
        lines = list(_tensor_reads(rule, seen, checked))
        if index == 0:
            lines.append(f"_device = {rule.name}.get_device()")
        if rule.optional:
            absent = [line.split(" = ")[0].rstrip(",") for line in lines]
            yield f"if {rule.name} is None:"
            yield from (f"    {' = '.join(names.split(', '))} = 0" for names in absent)
            yield "else:"
            yield from (f"    {line}" for line in lines)
        else:
            yield from lines
    for space in table.workspaces:
        yield f"_at_{space.name} = 0 if {space.name} is None else {space.name}.data_ptr()"
        yield f"_bytes_{space.name} = 0 if {space.name} is None else {space.name}.nbytes"
        if checked:
            yield f"_end_{space.name} = _at_{space.name} + _bytes_{space.name}"


def _tensor_reads(rule: TensorRule, seen: set[str], checked: bool) -> Iterator[str]:
    sizes = [_size_name(rule, position, seen) for position in range(len(rule.shape))]
    strides = [_stride_name(rule, position, seen) for position in range(len(rule.strides))]
    shows_sizes = rule.role == "out" and any(isinstance(tree, str) for tree in rule.shape)
    if checked or shows_sizes or any(not name.startswith("_") for name in sizes):
        yield f"{_targets(sizes)} = {rule.name}.shape"
    if checked or any(not name.startswith("_") for name in strides):
        yield f"{_targets(strides)} = {rule.name}.stride()"
    yield f"_at_{rule.name} = {rule.name}.data_ptr()"
    if checked:
        steps = "".join(f" + ({size} - 1) * {stride}" for size, stride in zip(sizes, strides, strict=True))
        yield f"_end_{rule.name} = _at_{rule.name} + {rule.item} * (1{steps})"


def _targets(names: list[str]) -> str:
    return ", ".join(names) + ("," if len(names) == 1 else "")


def _size_name(rule: TensorRule, position: int, seen: set[str]) -> str:
    """The size itself where this tensor is the first to show it, else a local name to compare."""
    tree = rule.shape[position]
    if isinstance(tree, str) and tree not in seen and rule.role != "out":
        seen.add(tree)
        return tree
    return f"_{rule.name}_size{position}"


def _stride_name(rule: TensorRule, position: int, seen: set[str]) -> str:
    stride = rule.strides[position]
    if isinstance(stride, str) and stride not in seen:
        seen.add(stride)
        return stride
    return f"_{rule.name}_stride{position}"


def defaults(table: CallTable) -> Iterator[str]:
    """Sizes that outputs show, unless the caller said them; sizes of tensors that these options leave out."""
    for axis in table.axes:
        if axis.source == "output":
            rule, position = next(
                (rule, position)
                for rule in table.outputs
                for position, tree in enumerate(rule.shape)
                if tree == axis.name
            )
            yield f"if {axis.name} is None:"
            yield f"    {axis.name} = _{rule.name}_size{position}"
        if axis.source == "absent":
            yield f"{axis.name} = 0"


def addresses(table: CallTable) -> Iterator[str]:
    optional = repeat.optional_tensors(table)
    for name in table.memory:
        address = f"{name}.data_ptr()"
        yield f"_at_{name} = " + (f"0 if {name} is None else {address}" if name in optional else address)


def plain_numbers(table: CallTable) -> Iterator[str]:
    """Numbers of right calls as plain ones, where they came as something else, such as numpy's."""
    for name in (*table.required_numbers, *table.optional_numbers):
        yield f"{name} = {'float' if name in table.floats else 'int'}({name})"


def conditions(table: CallTable, on_cuda: bool) -> Iterator[str]:
    """Each is true for a wrong call; `arguments.check` says what is wrong."""
    seen: set[str] = set()
    known = {axis.name for axis in table.axes}
    for index, rule in enumerate((*table.inputs, *table.outputs)):
        tests = list(_tensor_conditions(rule, seen, known))
        if index == 0:
            tests.append(f"{rule.name}.is_cuda is not {on_cuda}")
        else:
            tests.append(f"{rule.name}.get_device() != _device")
        if rule.optional:
            yield f"{rule.name} is not None and ({' or '.join(tests)})"
        else:
            yield from tests
    yield from address_conditions(table)
    for name in table.required_numbers:
        classes = "int and {0}.__class__ is not float" if name in table.floats else "int"
        yield f"{name}.__class__ is not {classes.format(name)}"
    yield from (f"{name}.__class__ is not int" for name in table.optional_numbers)
    for axis in table.axes:
        limits = axis.constant_range
        if axis.name not in table.key_axes and axis.source != "absent" and limits is not None:
            yield f"not {limits[0]} <= {axis.name} <= {limits[1]}"
    for space in table.workspaces:
        yield f"_at_{space.name} and ({space.name}.get_device() != _device or not {space.name}.is_contiguous())"
    yield from sharing.long_conditions(table)


def _tensor_conditions(rule: TensorRule, seen: set[str], known: set[str]) -> Iterator[str]:
    """Tests of one tensor; a size that follows from one that no argument tells is left to the kernel's launcher."""
    sizes = [_size_name(rule, position, seen) for position in range(len(rule.shape))]
    strides = [_stride_name(rule, position, seen) for position in range(len(rule.strides))]
    if len(rule.dtypes) == 1:
        yield f"{rule.name}.dtype is not _{rule.dtypes[0]}"
    else:
        yield f"{rule.name}.dtype not in ({', '.join('_' + dtype for dtype in rule.dtypes)})"
    for name, tree in zip(sizes, rule.shape, strict=True):
        if name.startswith("_") and known.issuperset(names_json(tree)):
            yield f"{name} != {expression_text(tree)}"
    for name, stride, size in zip(strides, rule.strides, sizes, strict=True):
        if name != stride:
            yield f"{name} != {stride} and {size} > 1"
    if rule.written:
        yield from _overlap_conditions(sizes, strides)


def _overlap_conditions(sizes: list[str], strides: list[str]) -> Iterator[str]:
    """True where an inner dimension reaches past one step of the next outer one, and for harmless permutations."""
    span = "1"
    for size, stride in reversed(list(zip(sizes, strides, strict=True))):
        yield f"{stride} < {span} and {size} > 1"
        span += f" + ({size} - 1) * {stride}"


def address_conditions(table: CallTable, aligned_to: int = 1) -> Iterator[str]:
    """True for an address that is missing or not aligned as its tensor, or each tensor, must be."""
    tensors = (*table.inputs, *table.outputs)
    yield f"not ({' and '.join(f'_at_{rule.name}' for rule in tensors if not rule.optional)})"
    for name in repeat.optional_tensors(table):
        yield f"not (_at_{name} or {name} is None or not {name}.nbytes)"
    aligned: dict[int, list[str]] = {}
    for rule in tensors:
        aligned.setdefault(max(rule.align, aligned_to), []).append(f"_at_{rule.name}")
    for space in table.workspaces:
        aligned.setdefault(WORKSPACE_ALIGN, []).append(f"_at_{space.name}")
    for align, addresses in sorted(aligned.items()):
        if align > 1:
            yield f"({' | '.join(addresses)}) % {align}"


def expression_text(tree: Any) -> str:
    """An expression tree as Python text.

    Raises:
        ManifestError: something that is no expression over sizes.
    """
    if isinstance(tree, bool) or (isinstance(tree, str) and tree.isidentifier()):
        return str(tree)
    if isinstance(tree, int):
        return str(tree) if tree >= 0 else f"({tree})"
    if isinstance(tree, list) and tree:
        operator, *operands = tree
        words = [expression_text(operand) for operand in operands]
        if operator in _INFIX and len(words) == 2:
            return f"({words[0]} {operator} {words[1]})"
        if operator == "ceil_div" and len(words) == 2:
            return f"(-(-{words[0]} // {words[1]}))"
        if operator == "round_up" and len(words) == 2:
            return f"(-(-{words[0]} // {words[1]}) * {words[1]})"
        if operator in ("min", "max") and len(words) > 1:
            return f"{operator}({', '.join(words)})"
        if operator in ("and", "or") and len(words) > 1:
            return f"({f' {operator} '.join(words)})"
        if operator == "if" and len(words) == 3:
            return f"({words[1]} if {words[0]} else {words[2]})"
    raise ManifestError(f"{tree!r} is not an expression over sizes")
