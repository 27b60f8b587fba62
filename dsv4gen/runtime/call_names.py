"""Arguments of a call by their names: what belongs to which parameter, and what is wrong with the names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsv4gen.base.errors import ArgumentError, did_you_mean
from dsv4gen.runtime.call_table import CallTable

Values = Mapping[str, Any]


def by_name(table: CallTable, args: Sequence[Any], named: Values) -> dict[str, Any]:
    """A call's arguments by name: tensors in table order, inputs first, then what was named.

    Raises:
        ArgumentError: a name the op does not have, an argument given twice, or one missing.
    """
    problem = misuse(table, args, named)
    if problem:
        raise problem
    return {**dict(zip(_tensor_names(table), args, strict=False)), **named}


def misuse(table: CallTable, args: Sequence[Any], named: Values) -> ArgumentError | None:
    """What is wrong with the names of a call's arguments, or None."""
    tensors = _tensor_names(table)
    numbers = [*table.required_numbers, *table.optional_numbers]
    known = [*tensors, *numbers, *(rule.name for rule in table.workspaces), *table.choices]
    takes = f"{table.title} takes {', '.join(known)}"
    for name in named:
        if name in table.absent:
            return ArgumentError(f"{table.title} takes no {name} with {table.options_text}", remedy=takes)
        if name not in known:
            return ArgumentError(f"{table.title} has no argument {name!r}{did_you_mean(name, known)}", remedy=takes)
    twice = [name for name in tensors[: len(args)] if name in named]
    if twice:
        return ArgumentError(f"{table.title} was given {twice[0]} twice", remedy=takes)
    if len(args) > len(tensors):
        return ArgumentError(f"{table.title} was given {len(args)} tensors", remedy=takes)
    given = {*tensors[: len(args)], *named, *table.defaults}
    needed = [rule.name for rule in table.inputs if not rule.optional] + [*table.required_numbers, *table.choices]
    missing = [name for name in needed if name not in given]
    return ArgumentError(f"{table.title}: {', '.join(missing)} missing", remedy=takes) if missing else None


def _tensor_names(table: CallTable) -> list[str]:
    return [rule.name for rule in (*table.inputs, *table.outputs)]
