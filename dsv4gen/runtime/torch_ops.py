"""Ops in torch's dispatcher, namespace `dsv4gen`: what torch.compile and fake tensors see.

One op per family op, `dsv4gen::<family>_<op>`, with the compile-time options and the target as text arguments. It
only writes: outputs are arguments, so functionalisation, aliasing rules and autograd stay simple. The implementation
takes the function that was loaded for these options, or loads it; Dynamo never sees the loader.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dsv4gen.base.expression_json import names_json, plain_names_json
from dsv4gen.base.manifest import digest_json
from dsv4gen.runtime.backend import Function, make_outputs
from dsv4gen.runtime.call_names import misuse
from dsv4gen.runtime.call_table import CallTable
from dsv4gen.runtime.dispatch import host_axes, names_in_bounds

NAMESPACE = "dsv4gen"
#: in front of an option's name: torch passes arguments on by name beside its own, which has one called `mode`
OPTION = "option_"
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
    names = _names(entry, table.op)
    _bound[name, (*options.values(), target)] = _Deferred(table, names, get_raw)
    _recent[name].clear()
    torch_op = getattr(_namespace(), name)
    given = [rule.name for rule in (*table.inputs, *table.outputs)]
    outputs = [rule.name for rule in table.outputs]
    numbers = [number for number, _ in _numbers(entry, table.op)]
    unused = {number: 0 for number in numbers if number not in (*table.required_numbers, *table.choices)}
    empty = {
        **dict.fromkeys(names),
        **unused,
        **{name: table.defaults[name] for name in numbers if name in table.defaults},
    }
    dropped = set(table.optional_numbers) - set(numbers)
    chosen = {f"{OPTION}{option}": value for option, value in options.items()}

    def call(*tensors: Any, **named: Any) -> Any:
        values = {**empty, **dict(zip(given, tensors, strict=False)), **named}
        if any(values[output] is None for output in outputs):
            values = make_outputs(table, values)
        arguments = {key: value for key, value in values.items() if key not in dropped}
        torch_op(**arguments, **chosen, target=target)
        made = tuple(values[output] for output in outputs)
        return made[0] if len(made) == 1 else made

    call.__name__ = name
    return call


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


def schema_text(entry: Mapping[str, Any], op: str) -> str:
    """The arguments as torch writes them: tensors of all options, numbers, then options and target as text."""
    words = []
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    for tensor in entry["ops"][op]["tensors"]:
        optional = "?" if tensor["when"] is not None or tensor["optional"] else ""
        alias = f"({next(letters)}!)" if tensor["role"] != "in" else ""
        words.append(f"Tensor{alias}{optional} {tensor['name']}")
    words += [f"Tensor({next(letters)}!)? {space['name']}" for space in entry["ops"][op]["workspaces"]]
    words += [f"{kind} {name}" for name, kind in _numbers(entry, op)]
    words.append("*")
    words += [f'str {OPTION}{name}="{option["default"]}"' for name, option in entry["options"].items()]
    words.append('str target=""')
    return f"({', '.join(words)}) -> ()"


def _define(name: str, schema: str, family: str, op: str, entry: Mapping[str, Any]) -> None:
    import torch

    if not _libraries:
        _libraries.append(torch.library.Library(NAMESPACE, "FRAGMENT"))  # type: ignore[no-untyped-call]
    library = _libraries[0]
    library.define(f"{name}{schema}", tags=(torch.Tag.pt2_compliant_tag,))
    names, options = _names(entry, op), list(entry["options"])
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
        raw(*[args[position] for position in positions], **{name: args[position] for name, position in numbers})

    return call


def _names(entry: Mapping[str, Any], op: str) -> list[str]:
    """The schema's arguments before the options."""
    tensors = [tensor["name"] for tensor in entry["ops"][op]["tensors"]]
    spaces = [space["name"] for space in entry["ops"][op]["workspaces"]]
    return [*tensors, *spaces, *(name for name, _ in _numbers(entry, op))]


def _numbers(entry: Mapping[str, Any], op: str) -> list[tuple[str, str]]:
    """Scalars, and sizes that no tensor shows, with torch's type; of a Triton op what its launcher takes."""
    if entry.get("launchers", {}).get(op):
        return list(_launcher_numbers(entry, op))
    tensors = entry["ops"][op]["tensors"]
    trees = [size["tree"] for tensor in tensors for size in tensor["shape"]]
    known = {name for tree in trees for name in plain_names_json(tree)}
    known |= {stride for tensor in tensors for stride in tensor["strides"] if isinstance(stride, str)}
    kinds = {name: kind for name, kind, _ in entry["ops"][op]["params"]["fields"] if kind != "pointer"}
    computed = [*(name for tree in trees for name in names_json(tree)), *sorted(names_in_bounds(entry, known))]
    kinds |= {name: "u32" for name in computed if name in host_axes(entry)}
    return [(name, "float" if kind == "f32" else "int") for name, kind in kinds.items() if name not in known]


def _launcher_numbers(entry: Mapping[str, Any], op: str) -> Iterator[tuple[str, str]]:
    parts, launcher = entry["ops"][op], entry["launchers"][op]
    memory = {part["name"] for part in (*parts["tensors"], *parts["workspaces"])}
    kinds = {name: "float" if kind == "f32" else "int" for name, kind, _ in parts["params"]["fields"]}
    kinds |= dict.fromkeys(host_axes(entry), "int")
    for name in (*launcher["required"], *launcher["defaults"]):
        if name not in memory and name not in entry["options"]:
            default = launcher["defaults"].get(name, 0)
            kind = type(default).__name__ if isinstance(default, (bool, str)) else kinds.get(name, "Scalar")
            yield name, f"{kind}?" if default is None else kind


def _namespace() -> Any:
    import torch

    return getattr(torch.ops, NAMESPACE)
