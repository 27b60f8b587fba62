"""The launch function of one op: a Python function written for its tensor table, compiled once at load.

Why text and not closures: a call has to read shapes, strides and addresses of up to a dozen tensors and compare them.
Straight-line code takes a tenth of the time of a loop over rules, which costs more than the launch. What the function
does: see whether the call is like an earlier one (`native`, `repeat`); else read sizes, strides and addresses; test
them (unless unchecked); and end in the driver (`driver_launch`) or in a Triton launcher (`triton_launch`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from dsv4gen.runtime import argument_text, repeat, sharing
from dsv4gen.runtime.call_table import CallTable
from dsv4gen.runtime.native import NativeCalls

Function = Callable[..., Any]
#: what reading and comparing wrong arguments may raise: no tensor, no number, too few dimensions, no memory, size 0
_READ_ERRORS = "(AttributeError, TypeError, ValueError, RuntimeError, ArithmeticError)"


class Ending(Protocol):
    """What a launch function does once a call's arguments are known."""

    #: names for what a memory holds beside layouts, numbers and device
    remembered: Sequence[str]
    #: what must hold beside equal layouts and numbers for a memory to fit
    conditions: Sequence[str]
    #: what all addresses must be multiples of for a memory to fit
    aligned: int

    def again(self) -> Iterator[str]:
        """Lines for a call that a memory fits; `_at_<tensor>`, `_hits`, `_device` and the remembered names hold."""

    def launch(self, everything: str, remember: Callable[[str], list[str]]) -> Iterator[str]:
        """Lines for any other call; `remember` gives the lines that keep it, from values of what `remembered` names."""


def make_function(
    table: CallTable,
    ending: Ending,
    *,
    checked: bool,
    on_cuda: bool,
    many_devices: bool,
    names: Mapping[str, Any],
    native: NativeCalls | None = None,
) -> Function:
    """Compile the launch function.

    Args:
        checked: test the arguments on every call.
        on_cuda: whether right tensors say `is_cuda`.
        many_devices: also make sure that the tensors' device is the calling thread's.
        names: what the text calls: `_current, _recheck, _make_outputs, _elsewhere`, and what the ending calls.
        native: the extension's part, where there is one.
    """
    lines = function_text(
        table, ending, checked=checked, on_cuda=on_cuda, many_devices=many_devices, native=native is not None
    )
    text = "\n".join(lines) + "\n"
    memory = {"_memories": repeat.Memories(native), "_distances": sharing.distances(table), **repeat.stand_ins(table)}
    namespace = {**_dtypes(table), **memory, **({"_again": native.again} if native else {}), **names}
    exec(compile(text, f"<dsv4gen launch function of {table.title}>", "exec"), namespace)
    function: Function = namespace[table.op]
    function.__module__ = __name__
    function.__doc__ = text
    return function


def _dtypes(table: CallTable) -> dict[str, Any]:
    """torch's dtypes of the table by their names in the text."""
    import torch

    return {f"_{dtype}": getattr(torch, dtype) for rule in table.tensors for dtype in rule.dtypes}


def function_text(
    table: CallTable, ending: Ending, *, checked: bool, on_cuda: bool, many_devices: bool, native: bool = False
) -> Iterator[str]:
    """The function's lines."""
    everything = ", ".join(f"{name}={name}" for name in _arguments(table))
    yield f"def {table.op}({_signature(table)}):"
    if table.outputs:
        yield f"    if {' or '.join(f'{rule.name} is None' for rule in table.outputs)}:"
        yield f"        return _make_outputs({everything})"
    if native:
        yield f"    _took = _again({', '.join(_arguments(table))})"
        yield "    if _took:"
        yield "        " + _return(table)
    known = "_memories.known if _took is None else ()" if native else "_memories.known"
    yield from ("    " + line for line in _short_way(table, ending, checked, many_devices, known))
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
    limits = sharing.limits(table) if checked else {}
    if limits:
        yield "    _passed = ()"
    if conditions:
        yield "    if _wrong:"
        yield f"        _recheck({everything})"
        if limits:
            yield f"        _passed = {sharing.passed_text(table)}"
        yield from (f"        {line}" for line in argument_text.plain_numbers(table))
        if table.required_numbers:
            kept = f"*_given[{len(table.required_numbers)}:]"
            yield f"        _given = ({', '.join([*table.required_numbers, kept])},)"
    if many_devices:
        yield "    if _current() != _device:"
        yield f"        return _elsewhere(_device, {everything})"
    yield from ("    " + line for line in ending.launch(everything, lambda more: _remember(table, more, limits)))
    yield "    " + _return(table)


def _short_way(table: CallTable, ending: Ending, checked: bool, many_devices: bool, known: str) -> Iterator[str]:
    """Launch at once when a memory fits; wrong addresses go the long way, which says what is wrong."""
    numbers = table.numbers
    was = _tuple(f"_was_{name}" for name in numbers)
    kept = [*ending.remembered, *(sharing.limits(table) if checked else ())]
    yield f"for _same, {was}, _hits, _device, {_tuple(kept)}, _ in {known}:"
    yield "    if ("
    yield f"        _same({repeat.compared_text(table)})"
    for name in numbers:
        equal = f"{name}.__class__ is _was_{name}.__class__ and {name} == _was_{name}"
        yield f"        and ({name} is _was_{name} or {equal})"
    if many_devices:
        yield "        and _current() == _device"
    yield from (f"        and {condition}" for condition in ending.conditions)
    yield "    ):"
    yield from (f"        {line}" for line in argument_text.addresses(table))
    refused = list(argument_text.address_conditions(table, ending.aligned)) if checked or ending.aligned > 1 else []
    refused += sharing.short_conditions(table) if checked else []
    if refused:
        yield f"        if {' or '.join(refused)}:"
        yield "            break"
    yield from (f"        {line}" for line in ending.again())
    yield "        " + _return(table)
    yield f"_given = {_tuple(numbers)}"


def _remember(table: CallTable, more: str, limits: Mapping[str, str]) -> list[str]:
    kept = _tuple([*([more] if more else []), *limits.values()])
    words = f"({repeat.compared_text(table)},), {_tuple(table.memory)}, _given, _device, {kept}"
    return ["if _memories.wanted():", f"    _memories.remember({words})"]


def _return(table: CallTable) -> str:
    return f"return {', '.join(rule.name for rule in table.outputs)}".rstrip()


def _tuple(names: Iterable[str]) -> str:
    return f"({''.join(f'{name}, ' for name in names).rstrip()})"


def _arguments(table: CallTable) -> list[str]:
    return [*table.memory, *table.numbers]


def _signature(table: CallTable) -> str:
    """Tensors by position or name, numbers and workspaces by name."""
    words = [rule.name + ("=None" if rule.optional else "") for rule in table.inputs]
    words += [f"{rule.name}=None" for rule in table.outputs]
    named = [_with_default(name, table) for name in (*table.required_numbers, *table.choices)]
    named += [f"{rule.name}=None" for rule in table.workspaces]
    named += [f"{name}=None" for name in table.optional_numbers]
    return ", ".join([*words, "*", *named] if named else words)


def _with_default(name: str, table: CallTable) -> str:
    return f"{name}={table.defaults[name]!r}" if name in table.defaults else name
