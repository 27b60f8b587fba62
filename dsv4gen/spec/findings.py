"""Collect the mistakes of one loaded spec, each at the place of the key it names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from dsv4gen.base.errors import SpecError, did_you_mean
from dsv4gen.spec.check import dotted
from dsv4gen.spec.loaded import Loaded

_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_LANGUAGE = frozenset(("and", "or", "not", "if", "else", "true", "false", "min", "max", "ceil_div", "round_up"))


def identifiers(expression: str) -> tuple[str, ...]:
    """Names an expression uses, in order; keywords, functions and quoted words left out.

    This only finds names for cross references; `dsv4gen.prove` parses the language.
    """
    words = _IDENTIFIER.findall(_QUOTED.sub(" ", expression))
    return tuple(dict.fromkeys(word for word in words if word not in _LANGUAGE))


def quoted(expression: str) -> tuple[str, ...]:
    """The quoted words of an expression."""
    return tuple(single or double for single, double in _QUOTED.findall(expression))


class Findings:
    """The mistakes found so far in one spec."""

    def __init__(self, loaded: Loaded[Any]) -> None:
        self.loaded = loaded
        self.errors: list[SpecError] = []

    def add(self, message: str, *keys: str | int, remedy: str = "") -> None:
        """A mistake in the value at `keys`; a block that starts on a line of its own is shown by its key."""
        key, value = self.loaded.key_place(*keys), self.loaded.place(*keys)
        place = value if value.line == key.line else key
        self.errors.append(SpecError(f"{dotted(keys)}: {message}", place=place, remedy=remedy))

    def known(self, word: str, allowed: Iterable[str], what: str, *keys: str | int) -> bool:
        """Whether `word` is one of `allowed`; if not, a mistake that says what was expected."""
        names = sorted(allowed)
        if word in names:
            return True
        remedy = f"one of {', '.join(names)}" if names else ""
        self.add(f"'{word}' is {what}{did_you_mean(word, names)}", *keys, remedy=remedy)
        return False

    def names(self, expression: str, allowed: Iterable[str], *keys: str | int) -> None:
        """Every name of an expression is one of `allowed`."""
        for name in identifiers(expression):
            self.known(name, allowed, "no name known here", *keys)

    def unique(self, words: Iterable[str], *keys: str | int) -> None:
        """No word appears twice."""
        for word, times in Counter(words).items():
            if times > 1:
                self.add(f"'{word}' is listed {times} times", *keys)
