"""Plain scalars after the core schema of YAML 1.2, and nothing of YAML 1.1.

`no`, `on`, `1_28`, `1:4` and dates are text; `0512` is refused: 1.1 reads it as octal, 1.2 as decimal.
"""

from __future__ import annotations

import re
from typing import TypeAlias

Scalar: TypeAlias = bool | int | float | str | None

_NULLS = ("", "~", "null", "Null", "NULL")
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)\Z")
_BASED = re.compile(r"0(x[0-9a-fA-F]+|o[0-7]+)\Z")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_INFINITY = re.compile(r"[-+]?\.(inf|Inf|INF)\Z")
_NAN = (".nan", ".NaN", ".NAN")

#: Longest number accepted, in characters; far above 64 bits and below Python's own limit.
MAX_DIGITS = 40


def read_plain(text: str) -> Scalar:
    """The value of an unquoted scalar.

    Raises:
        ValueError: a number with a leading zero or more than MAX_DIGITS characters; the message says which.
    """
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _LEADING_ZERO.match(text):
        raise ValueError(f"the number {text} has a leading zero, which some readers take for octal")
    number = _read_number(text)
    return text if number is None else number


def _read_number(text: str) -> int | float | None:
    whole = _DECIMAL.match(text) or _BASED.match(text)
    if (whole or _FLOAT.match(text)) and len(text) > MAX_DIGITS:
        raise ValueError(f"a number of {len(text)} characters is longer than the {MAX_DIGITS} allowed")
    if whole:
        return int(text, 0) if _BASED.match(text) else int(text)
    if _FLOAT.match(text):
        return float(text)
    if _INFINITY.match(text):
        return float("-inf") if text.startswith("-") else float("inf")
    return float("nan") if text in _NAN else None
