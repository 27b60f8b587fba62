"""What torch's dispatcher is told of an op: its arguments and their types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dsv4gen.base.expression_json import names_json, plain_names_json
from dsv4gen.runtime.dispatch import host_axes, names_in_bounds

#: in front of an option's name: torch passes arguments on by name beside its own, which has one called `mode`
OPTION = "option_"
#: of a launcher's choice that is None when not given and no size: a tile, or a single number
LISTS = "int[1]?"


def schema_text(entry: Mapping[str, Any], op: str) -> str:
    """The arguments as torch writes them: tensors of all options, numbers, then options and target as text."""
    words = []
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    for tensor in entry["ops"][op]["tensors"]:
        optional = "?" if tensor["when"] is not None or tensor["optional"] else ""
        alias = f"({next(letters)}!)" if tensor["role"] != "in" else ""
        words.append(f"Tensor{alias}{optional} {tensor['name']}")
    words += [f"Tensor({next(letters)}!)? {space['name']}" for space in entry["ops"][op]["workspaces"]]
    words += [f"{kind} {name}" for name, kind in number_types(entry, op)]
    words.append("*")
    words += [f'str {OPTION}{name}="{option["default"]}"' for name, option in entry["options"].items()]
    words.append('str target=""')
    return f"({', '.join(words)}) -> ()"


def argument_names(entry: Mapping[str, Any], op: str) -> list[str]:
    """The schema's arguments before the options."""
    tensors = [tensor["name"] for tensor in entry["ops"][op]["tensors"]]
    spaces = [space["name"] for space in entry["ops"][op]["workspaces"]]
    return [*tensors, *spaces, *(name for name, _ in number_types(entry, op))]


def number_types(entry: Mapping[str, Any], op: str) -> list[tuple[str, str]]:
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
            yield name, LISTS if default is None and kind == "Scalar" else f"{kind}?" if default is None else kind
