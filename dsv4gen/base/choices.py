"""Options that a kernel source states in one line each, so that text for any combination comes from the one file.

    constexpr TieBreak kTieBreak = TieBreak::none;  // ---- choice: tie_break ----

The generated file has the defaults there. Options that are part of a kernel's symbol have an entry per choice instead,
and are compiled ahead of time; the text for other choices of these is made here and compiled on demand. Lines keep
their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_LINE = re.compile(r"^(constexpr (\w+) \w+ = \2::)(\w+)(;  // ---- choice: (\w+) ----)$", re.MULTILINE)


def with_choices(text: str, options: Mapping[str, str]) -> str:
    """The source with the choices of `options` in its lines; options that it does not state are left alone."""
    return _with_choices(text, frozenset(options.items()))


# The oracles ask for every launch of thousands, and looking through top-k's source takes 0.7 ms.
@lru_cache(maxsize=8)
def _with_choices(text: str, options: frozenset[tuple[str, str]]) -> str:
    chosen = dict(options)
    return _LINE.sub(lambda line: f"{line[1]}{chosen.get(line[5], line[3])}{line[4]}", text)


def stated_choices(text: str) -> dict[str, str]:
    """Options that a source states in such lines, each with its choice there."""
    return {line[5]: line[3] for line in _LINE.finditer(text)}
