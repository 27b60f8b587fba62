"""Ops in torch's dispatcher, namespace `dsv4gen`: what torch.compile and fake tensors see.

One op per family op, `dsv4gen::<family>_<op>`, with the compile-time options and the target as text arguments. It
only writes: outputs are arguments, so functionalisation, aliasing rules and autograd stay simple. The implementation
takes the function that was loaded for these options, or loads it; Dynamo never sees the loader.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from dsv4gen.base.errors import ArgumentError
from dsv4gen.base.manifest import digest_json
from dsv4gen.runtime.backend import Function, make_outputs
from dsv4gen.runtime.call_names import misuse
from dsv4gen.runtime.call_table import CallTable
from dsv4gen.runtime.torch_schema import LISTS, OPTION, argument_names, number_types, schema_text

NAMESPACE = "dsv4gen"
Bound = tuple[str, ...]
Loader = Callable[[str, str, Mapping[str, str], str], tuple[CallTable, Function]]

#: unregisters everything when it goes
_libraries: list[Any] = []
_schemas: dict[str, str] = {}
_bound: dict[tuple[str, Bound], Function] = {}
#: per op, options as a call wrote them -> function; what `_bound` says, found faster
_recent: dict[str, dict[tuple[tuple[str, str], ...], Function]] = {}
_lock = threading.Lock()
_loader: list[Loader] = []


def set_loader(loader: Loader) -> None:
    """How an op called with options that nobody loaded gets its function: (family, op, options, target) -> it."""
    _loader[:] = [loader]


def bind_op(
    table: CallTable, entry: Mapping[str, Any], options: Mapping[str, str], target: str, get_raw: Callable[[], Function]
) -> Function:
    """A function with the loaded op's arguments that goes through the dispatcher; `target` is what the user asked for.

    Dynamo follows this function, so it only rearranges arguments. What it leads to is made when the op first runs.
    """
    name = register(table.family, table.op, entry)
    names = argument_names(entry, table.op)
    _bound[name, (*options.values(), target)] = _Deferred(table, names, get_raw)
    _recent[name].clear()
    torch_op = getattr(_namespace(), name)
    given = [rule.name for rule in (*table.inputs, *table.outputs)]
    outputs = [rule.name for rule in table.outputs]
    numbers = [number for number, _ in number_types(entry, table.op)]
    unused = {number: 0 for number in numbers if number not in (*table.required_numbers, *table.choices)}
    empty = {
        **dict.fromkeys(names),
        **unused,
        **{number: table.defaults[number] for number in numbers if number in table.defaults},
    }
    lists = [number for number, kind in number_types(entry, table.op) if kind == LISTS]
    dropped = set(table.optional_numbers) - set(numbers)
    chosen = {f"{OPTION}{option}": value for option, value in options.items()}

    def call(*tensors: Any, **named: Any) -> Any:
        values = {**empty, **dict(zip(given, tensors, strict=False)), **named}
        if any(values[output] is None for output in outputs):
            values = make_outputs(table, values)
        for number in lists:
            _refuse_no_list(table, number, values[number])
        arguments = {key: value for key, value in values.items() if key not in dropped}
        torch_op(**arguments, **chosen, target=target)
        made = tuple(values[output] for output in outputs)
        return made[0] if len(made) == 1 else made

    call.__name__ = name
    return call


def _refuse_no_list(table: CallTable, name: str, value: Any) -> None:
    """torch's dispatcher wants one type of an argument, and of this one no default says which."""
    numbers = value if isinstance(value, (list, tuple)) else () if value is None else (value,)
    if not all(isinstance(number, int) for number in numbers):
        raise ArgumentError(
            f"{table.title}: {name} is {value!r}; through torch's dispatcher it can be whole numbers only",
            remedy="call the loaded op outside of torch.compile, or its .raw, which takes what the launcher takes",
        )


class _Deferred:
    """The implementation for chosen options, made at the first call."""

    def __init__(self, table: CallTable, names: list[str], get_raw: Callable[[], Function]) -> None:
        self._parts = (table, names)
        self._get_raw = get_raw
        self._made: Function | None = None

    def __call__(self, args: tuple[Any, ...]) -> None:
        if self._made is None:
            self._made = _adapter(*self._parts, self._get_raw())
        self._made(args)


def register(family: str, op: str, entry: Mapping[str, Any]) -> str:
    """Register one op, once per process; returns its name. Another schema of the same op gets a name of its own."""
    schema = schema_text(entry, op)
    name = f"{family}_{op}"
    with _lock:
        if _schemas.get(name, schema) != schema:
            name = f"{name}_{digest_json(schema)[:8]}"
        if name not in _schemas:
            _define(name, schema, family, op, entry)
            _schemas[name] = schema
    return name


def _define(name: str, schema: str, family: str, op: str, entry: Mapping[str, Any]) -> None:
    import torch

    if not _libraries:
        _libraries.append(torch.library.Library(NAMESPACE, "FRAGMENT"))  # type: ignore[no-untyped-call]
    library = _libraries[0]
    library.define(f"{name}{schema}", tags=(torch.Tag.pt2_compliant_tag,))
    names, options = argument_names(entry, op), list(entry["options"])
    defaults = {f"{OPTION}{option}": value["default"] for option, value in entry["options"].items()}
    defaults["target"] = ""

    recent = _recent.setdefault(name, {})

    def run(*args: Any, **chosen: str) -> None:
        written = tuple(chosen.items())
        function = recent.get(written)
        if function is None:
            function = recent[written] = find(tuple({**defaults, **chosen}.values()))
        function(args)

    def find(words: Bound) -> Function:
        function = _bound.get((name, words))
        if function is None:
            table, raw = _loader[0](family, op, dict(zip(options, words, strict=False)), words[-1])
            function = _bound[name, words] = _adapter(table, names, raw)
        return function

    for key in ("CUDA", "CPU"):
        library.impl(name, run, key)
    # Serves fake tensors too. register_fake would do the same and search every imported module for its caller first.
    library.impl(name, lambda *args, **chosen: None, "Meta")  # noqa: ARG005


def _adapter(table: CallTable, names: list[str], raw: Function) -> Function:
    """From the schema's arguments in order to the raw function's: what the options leave out must be None."""
    tensors = [rule.name for rule in (*table.inputs, *table.outputs)]
    positions = [names.index(name) for name in tensors]
    named = (*table.required_numbers, *table.choices, *(space.name for space in table.workspaces))
    numbers = [(name, names.index(name)) for name in named]
    absent = [names.index(name) for name in table.absent]

    def call(args: tuple[Any, ...]) -> None:
        for position in absent:
            if args[position] is not None:
                raise misuse(table, (), {names[position]: args[position]}) or AssertionError
        values = {name: args[position] for name, position in numbers}
        for name in table.choices:
            if isinstance(values[name], list):
                values[name] = values[name][0] if len(values[name]) == 1 else tuple(values[name])
        raw(*[args[position] for position in positions], **values)

    return call


def _namespace() -> Any:
    import torch

    return getattr(torch.ops, NAMESPACE)
