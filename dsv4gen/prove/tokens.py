"""The tokens of the expression language, checked before Python's parser sees the text.

This gives better messages than a syntax error, and after it nothing that Python would warn about, decode or
concatenate can reach `ast.parse`.
"""

from __future__ import annotations

import keyword
import re

#: characters of one expression
LENGTH_MAX = 1000
#: largest number a spec may write
NUMBER_MAX = 2**63 - 1
NESTING_MAX = 40

FUNCTIONS = {"min": "two or more", "max": "two or more", "ceil_div": "two", "round_up": "two"}
_WORDS = ("and", "or", "not", "if", "else", "true", "false")
ALLOWED = (
    "integers, true, false, names, 'choices', + - * // % **, comparisons, and, or, not, a if c else b, "
    "min, max, ceil_div, round_up"
)

TOKEN = re.compile(
    r"(?P<space>[ \t\r\n]+)|(?P<number>[0-9][A-Za-z0-9_.]*)|(?P<name>[A-Za-z_][A-Za-z0-9_.]*)"
    r"|(?P<text>'[^']*'|\"[^\"]*\")|(?P<operator>\*\*|//|<=|>=|==|!=|[-+*%<>(),])|(?P<other>.)",
    re.DOTALL,
)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_]*)*")
_NUMBER = re.compile(r"0|[1-9][0-9]*")
_CHOICE = re.compile(r"[A-Za-z0-9_.+-]+")
_INSTEAD = {
    "/": "write // (floor division)",
    "=": "write == to compare",
    "&": "write and",
    "|": "write or",
    "!": "write not, or != to compare",
    "^": "write ** for a power",
    ":": "write a if c else b",
}


class Fault(Exception):
    """A mistake in the text at `offset` characters from its start."""

    def __init__(self, message: str, offset: int, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.remedy = remedy


def check_tokens(text: str) -> None:
    """Refuse what the language does not have, token by token.

    Raises:
        Fault: at the first offending token.
    """
    nesting, after_text, token, offset = 0, False, "", 0
    for match in TOKEN.finditer(text):
        kind = match.lastgroup
        if kind == "space":
            continue
        token, offset = match.group(), match.start()
        nesting += (token == "(") - (token == ")")
        if not 0 <= nesting <= NESTING_MAX:
            fault = "')' without '('" if nesting < 0 else f"more than {NESTING_MAX} nested parentheses"
            raise Fault(fault, offset)
        if kind == "text" and after_text:
            raise Fault(f"{token} follows another quoted choice", offset, "put an operator between them")
        after_text = kind == "text"
        if kind == "number":
            _check_number(token, offset)
        elif kind == "name":
            _check_name(token, offset)
        elif kind == "text" and not _CHOICE.fullmatch(token[1:-1]):
            raise Fault(f"{token} is not a choice: letters, digits and _ . + - only", offset)
        elif kind == "other":
            raise Fault(f"unexpected {token!r}", offset, _INSTEAD.get(token, f"allowed are {ALLOWED}"))
    if nesting or _is_open_end(token):
        raise Fault(f"the expression ends after '{token}'" + (", a ')' is missing" if nesting else ""), offset)


def _is_open_end(token: str) -> bool:
    """Whether an expression cannot end with this token."""
    return token in ("and", "or", "not", "if", "else") or not (token[-1].isalnum() or token[-1] in "_)'\"")


def _check_number(token: str, offset: int) -> None:
    if not _NUMBER.fullmatch(token):
        raise Fault(f"'{token}' is not a number: plain decimal integers only", offset, "write e.g. 4096")
    if len(token) > 19 or int(token) > NUMBER_MAX:
        raise Fault(f"{token[:24]} is beyond 64 bits", offset)


def _check_name(token: str, offset: int) -> None:
    if token in _WORDS:
        return
    if token in ("True", "False", "None"):
        raise Fault(f"unexpected '{token}'", offset, "write true or false, in lower case")
    words = token.split(".")
    if not NAME.fullmatch(token):
        raise Fault(f"'{token}' is not a name: letters, digits and _, starting with a letter", offset)
    if any(keyword.iskeyword(word) or (word in _WORDS and len(words) > 1) for word in words):
        raise Fault(f"unexpected '{token}'", offset, f"allowed are {ALLOWED}")
