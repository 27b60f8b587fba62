"""The launch function of one op: a Python function written for its tensor table, compiled once at load.

Why text and not closures: a call has to read shapes, strides and addresses of up to a dozen tensors, compare them
and pack them. Straight-line code takes a tenth of the time of a loop over rules, which costs more than the launch.
What the function does: see whether the call is like an earlier one (`repeat`); else read sizes, strides and addresses;
test them (unless unchecked); find the launches that were prepared for this stream and these sizes; pack Params; launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dsv4gen.runtime import argument_text, repeat
from dsv4gen.runtime.call_table import CallTable

Function = Callable[..., Any]
#: what reading and comparing wrong arguments may raise: no tensor, no number, too few dimensions, no memory, size 0
_READ_ERRORS = "(AttributeError, TypeError, ValueError, RuntimeError, ArithmeticError)"


def make_function(
    table: CallTable, *, checked: bool, on_cuda: bool, many_devices: bool, names: Mapping[str, Any]
) -> Function:
    """Compile the launch function.

    Args:
        checked: test the arguments on every call.
        on_cuda: whether right tensors say `is_cuda`.
        many_devices: also make sure that the tensors' device is the calling thread's.
        names: what the text calls: `_stream, _current, _decisions, _prepare, _recheck, _make_outputs, _elsewhere,
            _free, _new_slot, _copied_slot, _pack, _pack<n>, _pack_error, _launch, _failed, _memories` and the
            dtypes as `_<dtype>`.
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
    yield from ("    " + line for line in _short_way(table, checked, many_devices))
    yield "    try:"
    yield from ("        " + line for line in (*argument_text.reads(table, checked), *argument_text.defaults(table)))
    conditions = list(argument_text.conditions(table, on_cuda)) if checked else []
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
    yield "    " + _return(table)


def _return(table: CallTable) -> str:
    return f"return {', '.join(rule.name for rule in table.outputs)}".rstrip()


def _short_way(table: CallTable, checked: bool, many_devices: bool) -> Iterator[str]:
    """Launch at once when a memory fits; wrong addresses go the long way, which says what is wrong."""
    numbers = _tuple(f"_was_{name}" for name in _numbers(table))
    yield f"for _same, {numbers}, _device, _key, _todo, _slots, _packed, _plan in _memories.known:"
    yield "    if ("
    yield f"        _same({repeat.compared_text(table)})"
    for name, was in ((name, f"_was_{name}") for name in _numbers(table)):
        yield f"        and ({name} is {was} or {name}.__class__ is {was}.__class__ and {name} == {was})"
    if many_devices:
        yield "        and _current() == _device"
    yield "        and _stream(_device) == _key"
    yield "    ):"
    yield from (f"        {line}" for line in argument_text.addresses(table))
    if checked:
        yield f"        if {' or '.join(argument_text.address_conditions(table))}:"
        yield "            break"
    yield from (f"        {line}" for line in _take("_slots", "_copied_slot(_packed)"))
    for offset, names in repeat.pointer_runs(table).items():
        words = ("0" if name in table.absent else f"_at_{name}" for name in names)
        yield f"        _pack{len(names)}(_buffer, {offset}, {', '.join(words)})"
    yield from (f"        {line}" for line in _launch_each("_todo"))
    yield "        _slots.append(_slot)"
    yield "        " + _return(table)
    yield f"_given = {_tuple(_numbers(table))}"


def _tuple(names: Iterable[str]) -> str:
    return f"({''.join(f'{name}, ' for name in names).rstrip()})"


def _numbers(table: CallTable) -> list[str]:
    return [*table.required_numbers, *table.optional_numbers]


def _arguments(table: CallTable) -> list[str]:
    tensors = [rule.name for rule in (*table.inputs, *table.outputs)]
    spaces = [rule.name for rule in table.workspaces]
    return [*tensors, *spaces, *_numbers(table)]


def _signature(table: CallTable) -> str:
    """Tensors by position or name, numbers and workspaces by name."""
    words = [rule.name + ("=None" if rule.optional else "") for rule in table.inputs]
    words += [f"{rule.name}=None" for rule in table.outputs]
    named = [*table.required_numbers, *(f"{rule.name}=None" for rule in table.workspaces)]
    named += [f"{name}=None" for name in table.optional_numbers]
    return ", ".join([*words, "*", *named] if named else words)


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
    yield from _take("_free", "_new_slot()")
    yield "try:"
    yield f"    _pack(_buffer, 0, {', '.join(_packed(table))})"
    yield "except _pack_error:"
    yield f"    _recheck({everything})"
    yield "    raise"
    yield from _launch_each("_plan.launches")
    yield f"_memories.remember(({repeat.compared_text(table)},), _given, _device, _key, _plan, _buffer)"
    yield "_free.append(_slot)"


def _take(free: str, new: str) -> Iterator[str]:
    """A parameter buffer that no call in flight uses."""
    yield "try:"
    yield f"    _slot = {free}.pop()"
    yield "except IndexError:"
    yield f"    _slot = {new}"
    yield "_buffer, _params = _slot"


def _launch_each(launches: str) -> Iterator[str]:
    yield f"for _config, _function in {launches}:"
    yield "    _status = _launch(_config, _function, _params, None)"
    yield "    if _status:"
    yield "        _failed(_status, _device, _config, _function, _params)"


def _packed(table: CallTable) -> Iterator[str]:
    """The members of Params: addresses, run-time strides and numbers; 0 for what these options leave out."""
    pointers = {rule.name for rule in (*table.inputs, *table.outputs)} | {rule.name for rule in table.workspaces}
    numbers = {stride for rule in table.tensors for stride in rule.strides if isinstance(stride, str)}
    numbers |= {axis.name for axis in table.axes} | set(table.scalars)
    for name in table.fields:
        yield f"_at_{name}" if name in pointers else name if name in numbers else "0"
