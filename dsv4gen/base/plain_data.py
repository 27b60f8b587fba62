"""JSON -> dataclasses, every value checked against its field's type: what files of other runs are read with.

Standard library only, because machines that time and tune need not have what generating needs.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class PlainDataError(ValueError):
    """A value that does not fit; the message begins with the keys that lead to it."""


def from_plain(kind: type[T], value: object, where: str = "") -> T:
    """The dataclass instance that JSON data stands for; a field without default must be there, no other may.

    Raises:
        PlainDataError: a missing or unknown key, another type, or a number that is not finite.
    """
    if not isinstance(value, Mapping):
        raise wrong(where, "an object", value)
    hints = get_type_hints(kind)
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    for name in value:
        if name not in known:
            raise PlainDataError(f"{joined(where, str(name))}: no such key")
    for name, one in known.items():
        if name not in value and one.default is MISSING and one.default_factory is MISSING:
            raise PlainDataError(f"{joined(where, name)}: missing")
    return kind(**{name: _checked(hints[name], value[name], joined(where, name)) for name in value})


def _checked(kind: Any, value: object, where: str) -> Any:
    origin = get_origin(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        return from_plain(kind, value, where)
    if origin in (tuple, list, Sequence):
        if not isinstance(value, list):
            raise wrong(where, "a list", value)
        found = [_checked(get_args(kind)[0], one, f"{where}[{number}]") for number, one in enumerate(value)]
        return tuple(found) if origin is tuple else found
    if origin is Mapping:
        if not isinstance(value, Mapping):
            raise wrong(where, "an object", value)
        return {name: _checked(get_args(kind)[1], one, joined(where, name)) for name, one in value.items()}
    if origin in (Union, types.UnionType):
        return None if value is None else _checked(next(one for one in get_args(kind) if one), value, where)
    return _scalar(kind, value, where)


def _scalar(kind: Any, value: object, where: str) -> Any:
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise wrong(where, "a finite number", value)
        return value
    if kind is not Any and type(value) is not kind:
        names = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
        raise wrong(where, names[kind], value)
    return value


def wrong(where: str, expected: str, value: object) -> PlainDataError:
    """The error for a value of another kind than expected."""
    shown = repr(value)
    return PlainDataError(f"{where or 'the file'}: {expected} expected, not {shown[:40]}{'...' * (len(shown) > 40)}")


def joined(where: str, name: str) -> str:
    """The keys that lead to a value."""
    return f"{where}.{name}" if where else name
