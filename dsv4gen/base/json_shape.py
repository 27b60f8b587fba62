"""What a JSON value must look like, as small checks that are put together; standard library only.

A check takes a value and the keys that lead to it, and raises `PlainDataError` for a value of another kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dsv4gen.base.errors import ExpressionError
from dsv4gen.base.expression_json import compile_json
from dsv4gen.base.plain_data import PlainDataError, joined, wrong

Check = Callable[[object, str], None]


def text(value: object, where: str) -> None:
    """A text."""
    _require(isinstance(value, str), where, "text", value)


def truth(value: object, where: str) -> None:
    """True or false."""
    _require(isinstance(value, bool), where, "true or false", value)


def whole(value: object, where: str) -> None:
    """A whole number."""
    _require(isinstance(value, int) and not isinstance(value, bool), where, "a whole number", value)


def number(value: object, where: str) -> None:
    """A number."""
    _require(isinstance(value, int | float) and not isinstance(value, bool), where, "a number", value)


def positive(value: object, where: str) -> None:
    """A whole number above 0."""
    good = isinstance(value, int) and not isinstance(value, bool) and value > 0
    _require(good, where, "a whole number above 0", value)


def anything(_: object, __: str) -> None:
    """No check."""


def expression(value: object, where: str) -> None:
    """An expression: its text for readers, and a tree that can be evaluated."""
    _EXPRESSION(value, where)
    try:
        compile_json(value["tree"])  # type: ignore[index]
    except ExpressionError as error:
        raise PlainDataError(f"{joined(where, 'tree')}: {error.message}") from None


def one_of(*words: str) -> Check:
    """One of some texts."""
    return lambda value, where: _require(value in words, where, " or ".join(words), value)


def either(first: Check, second: Check) -> Check:
    """What one of two checks lets pass; the first one's complaint otherwise."""

    def check(value: object, where: str) -> None:
        try:
            second(value, where)
        except PlainDataError:
            first(value, where)

    return check


def maybe(check: Check) -> Check:
    """Null, or what the check lets pass."""
    return lambda value, where: None if value is None else check(value, where)


def listed(check: Check, least: int = 0) -> Check:
    """A list of such values, and at least so many."""

    def check_all(value: object, where: str) -> None:
        good = isinstance(value, list) and len(value) >= least
        _require(good, where, f"a list of at least {least}" if least else "a list", value)
        for position, one in enumerate(value):  # type: ignore[arg-type, var-annotated]
            check(one, f"{where}[{position}]")

    return check_all


def row(*checks: Check) -> Check:
    """A list of as many values, each of its own kind."""

    def check_all(value: object, where: str) -> None:
        _require(isinstance(value, list) and len(value) == len(checks), where, f"a list of {len(checks)}", value)
        for position, (check, one) in enumerate(zip(checks, value, strict=True)):  # type: ignore[call-overload]
            check(one, f"{where}[{position}]")

    return check_all


def mapped(check: Check) -> Check:
    """An object whose values are such."""

    def check_all(value: object, where: str) -> None:
        _require(isinstance(value, Mapping), where, "an object", value)
        for name, one in value.items():  # type: ignore[attr-defined]
            check(one, joined(where, name))

    return check_all


def record(extra: Mapping[str, Check] | None = None, /, **needed: Check) -> Check:
    """An object with these keys, and perhaps the extra ones; further ones are not looked at."""

    def check_all(value: object, where: str) -> None:
        _require(isinstance(value, Mapping), where, "an object", value)
        found: Mapping[str, Any] = value  # type: ignore[assignment]
        for name, check in needed.items():
            if name not in found:
                raise PlainDataError(f"{joined(where, name)}: missing")
            check(found[name], joined(where, name))
        for name, check in (extra or {}).items():
            if name in found:
                check(found[name], joined(where, name))

    return check_all


_EXPRESSION = record(text=text, tree=anything)


def _require(good: bool, where: str, expected: str, value: object) -> None:
    if not good:
        raise wrong(where, expected, value)
