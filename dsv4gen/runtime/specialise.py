"""The launch function of one op: a Python function written for its tensor table, compiled once at load.

Why text and not closures: a call has to read shapes, strides and addresses of up to a dozen tensors, compare them
and pack them. Straight-line code takes a tenth of the time of a loop over rules, which costs more than the launch.
The text holds nothing but names that `call_table` has checked to be identifiers, integers, and operators of the
expression language; it reads no input of a caller.

What the function does: read sizes, strides and addresses; test them (unless unchecked); find the launches that were
prepared for this stream and these sizes; pack Params; launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dsv4gen.base.errors import ManifestError
from dsv4gen.runtime.call_table import CallTable, TensorRule

Function = Callable[..., Any]
#: what reading and comparing wrong arguments may raise: no tensor, no number, too few dimensions, no memory, size 0
_READ_ERRORS = "(AttributeError, TypeError, ValueError, RuntimeError, ArithmeticError)"
_INFIX = ("+", "-", "*", "//", "%", "<", "<=", ">", ">=", "==", "!=")


def make_function(
    table: CallTable, *, checked: bool, on_cuda: bool, many_devices: bool, names: Mapping[str, Any]
) -> Function:
    """Compile the launch function.

    Args:
        checked: test the arguments on every call.
        on_cuda: whether right tensors say `is_cuda`.
        many_devices: also make sure that the tensors' device is the calling thread's.
        names: what the text calls: `_stream, _current, _decisions, _prepare, _recheck, _make_outputs, _elsewhere,
            _free, _new_slot, _pack, _pack_error, _launch, _failed` and the dtypes as `_<dtype>`.
    """
    text = "\n".join(function_text(table, checked=checked, on_cuda=on_cuda, many_devices=many_devices)) + "\n"
    namespace = dict(names)
    exec(compile(text, f"<dsv4gen launch function of {table.title}>", "exec"), namespace)
    function: Function = namespace[table.op]
    function.__module__ = __name__
    function.__doc__ = text
    return function


def function_text(table: CallTable, *, checked: bool, on_cuda: bool, many_devices: bool) -> Iterator[str]:
    """The function's lines."""
    everything = ", ".join(f"{name}={name}" for name in _arguments(table))
    yield f"def {table.op}({_signature(table)}):"
    if table.outputs:
        yield f"    if {' or '.join(f'{rule.name} is None' for rule in table.outputs)}:"
        yield f"        return _make_outputs({everything})"
    yield "    try:"
    yield from ("        " + line for line in (*_reads(table, checked), *_defaults(table)))
    conditions = list(_conditions(table, on_cuda)) if checked else []
    if conditions:
        yield "        _wrong = ("
        yield from (f"            {'or ' if i else ''}{condition}" for i, condition in enumerate(conditions))
        yield "        )"
    yield f"    except {_READ_ERRORS}:"
    yield f"        _recheck({everything})"
    yield "        raise"
    if conditions:
        yield "    if _wrong:"
        yield f"        _recheck({everything})"
    if many_devices:
        yield "    if _current() != _device:"
        yield f"        return _elsewhere(_device, {everything})"
    yield from ("    " + line for line in _launches(table, everything))
    outputs = [rule.name for rule in table.outputs]
    if outputs:
        yield f"    return {', '.join(outputs)}"


def _arguments(table: CallTable) -> list[str]:
    tensors = [rule.name for rule in (*table.inputs, *table.outputs)]
    spaces = [rule.name for rule in table.workspaces]
    return [*tensors, *spaces, *table.required_numbers, *table.optional_numbers]


def _signature(table: CallTable) -> str:
    """Tensors by position or name, numbers and workspaces by name."""
    words = [rule.name + ("=None" if rule.optional else "") for rule in table.inputs]
    words += [f"{rule.name}=None" for rule in table.outputs]
    named = [*table.required_numbers, *(f"{rule.name}=None" for rule in table.workspaces)]
    named += [f"{name}=None" for name in table.optional_numbers]
    return ", ".join([*words, "*", *named] if named else words)


def _reads(table: CallTable, checked: bool) -> Iterator[str]:
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


def _tensor_reads(rule: TensorRule, seen: set[str], checked: bool) -> Iterator[str]:
    sizes = [_size_name(rule, position, seen) for position in range(len(rule.shape))]
    strides = [_stride_name(rule, position, seen) for position in range(len(rule.strides))]
    shows_sizes = rule.role == "out" and any(isinstance(tree, str) for tree in rule.shape)
    if checked or shows_sizes or any(not name.startswith("_") for name in sizes):
        yield f"{_targets(sizes)} = {rule.name}.shape"
    if checked or any(not name.startswith("_") for name in strides):
        yield f"{_targets(strides)} = {rule.name}.stride()"
    yield f"_at_{rule.name} = {rule.name}.data_ptr()"


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


def _defaults(table: CallTable) -> Iterator[str]:
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


def _conditions(table: CallTable, on_cuda: bool) -> Iterator[str]:
    """Each is true for a wrong call; `arguments.check` says what is wrong."""
    seen: set[str] = set()
    aligned: dict[int, list[str]] = {}
    for index, rule in enumerate((*table.inputs, *table.outputs)):
        tests = list(_tensor_conditions(rule, seen))
        if index == 0:
            tests.append(f"{rule.name}.is_cuda is not {on_cuda}")
        else:
            tests.append(f"{rule.name}.get_device() != _device")
        if rule.optional:
            yield f"{rule.name} is not None and ({' or '.join(tests)})"
        else:
            yield from tests
        aligned.setdefault(rule.align, []).append(f"_at_{rule.name}")
    needed = [f"_at_{rule.name}" for rule in (*table.inputs, *table.outputs) if not rule.optional]
    yield f"not ({' and '.join(needed)})"
    for align, addresses in sorted(aligned.items()):
        if align > 1:
            yield f"({' | '.join(addresses)}) % {align}"
    for axis in table.axes:
        limits = axis.constant_range
        if axis.name not in table.key_axes and axis.source != "absent" and limits is not None:
            yield f"not {limits[0]} <= {axis.name} <= {limits[1]}"
    for space in table.workspaces:
        wrong = f"{space.name}.get_device() != _device or not {space.name}.is_contiguous()"
        yield f"_at_{space.name} and (_at_{space.name} % 16 or {wrong})"


def _tensor_conditions(rule: TensorRule, seen: set[str]) -> Iterator[str]:
    sizes = [_size_name(rule, position, seen) for position in range(len(rule.shape))]
    strides = [_stride_name(rule, position, seen) for position in range(len(rule.strides))]
    if len(rule.dtypes) == 1:
        yield f"{rule.name}.dtype is not _{rule.dtypes[0]}"
    else:
        yield f"{rule.name}.dtype not in ({', '.join('_' + dtype for dtype in rule.dtypes)})"
    for name, tree in zip(sizes, rule.shape, strict=True):
        if name.startswith("_"):
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


def _launches(table: CallTable, everything: str) -> Iterator[str]:
    key = ", ".join(["_key", "_device", *table.key_axes])
    sizes = ", ".join(f"{axis.name!r}: {axis.name}" for axis in table.axes if axis.source != "absent")
    spaces = [rule.name for rule in table.workspaces]
    yield "_key = _stream(_device)"
    yield f"_plan = _decisions.get(({key}))"
    yield "if _plan is None:"
    yield f"    _plan = _prepare(_key, _device, ({key}), {{{sizes}}})"
    if spaces:
        yield f"if {' or '.join(f'_plan.needs[{i}] > _bytes_{name}' for i, name in enumerate(spaces))}:"
        yield f"    _plan.refuse_workspaces({', '.join(f'_bytes_{name}' for name in spaces)})"
    yield "try:"
    yield "    _slot = _free.pop()"
    yield "except IndexError:"
    yield "    _slot = _new_slot()"
    yield "_buffer, _params = _slot"
    yield "try:"
    yield f"    _pack(_buffer, 0, {', '.join(_packed(table))})"
    yield "except _pack_error:"
    yield f"    _recheck({everything})"
    yield "    raise"
    yield "for _config, _function in _plan.launches:"
    yield "    _status = _launch(_config, _function, _params, None)"
    yield "    if _status:"
    yield "        _failed(_status, _device, _config, _function, _params)"
    yield "_free.append(_slot)"


def _packed(table: CallTable) -> Iterator[str]:
    """The members of Params: addresses, run-time strides and numbers; 0 for what these options leave out."""
    pointers = {rule.name for rule in (*table.inputs, *table.outputs)} | {rule.name for rule in table.workspaces}
    numbers = {stride for rule in table.tensors for stride in rule.strides if isinstance(stride, str)}
    numbers |= {axis.name for axis in table.axes} | set(table.scalars)
    for name in table.fields:
        yield f"_at_{name}" if name in pointers else name if name in numbers else "0"


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
