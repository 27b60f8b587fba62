"""Parse operands of AMD assembly text: registers, numbers, symbols, input modifiers."""

from __future__ import annotations

import functools
import re

from dsv4gen.emulate.amdgcn.program import Expression, Operand, Register
from dsv4gen.emulate.amdgcn.registers import SPECIAL, TTMP

_REGISTER = re.compile(r"([vsa])(?:(\d+)|\[(\d+)(?::(\d+))?\])(?:\.([lh]))?")
_TRAP_REGISTER = re.compile(r"ttmp(?:(\d+)|\[(\d+):(\d+)\])")
_INTEGER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+)")
_FLOAT = re.compile(r"-?\d+\.\d*(?:[eE][-+]?\d+)?|-?\d+[eE][-+]?\d+")
_WRAPPED = re.compile(r"(neg|abs|sext|lit|lit64)\((.*)\)")
_SYMBOL = re.compile(r"[(.$\w@].*")


def split_operands(text: str) -> list[str]:
    """Split at commas outside brackets and parentheses."""
    parts: list[str] = []
    depth, start = 0, 0
    for position, character in enumerate(text):
        if character in "[(":
            depth += 1
        elif character in "])":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


@functools.lru_cache(maxsize=4096)
def parse_operand(text: str) -> Operand:
    """One operand. Text that is neither register, number nor modifier becomes a symbol expression."""
    if text.startswith("-") and not _INTEGER.fullmatch(text) and not _FLOAT.fullmatch(text):
        inner = parse_operand(text[1:])
        return Operand(inner.value, not inner.negate, inner.absolute, inner.sign_extend)
    if text.startswith("|") and text.endswith("|") and len(text) > 2:
        inner = parse_operand(text[1:-1])
        return Operand(inner.value, inner.negate, True, inner.sign_extend)
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped:
        return _unwrap(wrapped[1], parse_operand(wrapped[2].strip()))
    return Operand(_value(text))


def _unwrap(function: str, inner: Operand) -> Operand:
    if function == "neg":
        return Operand(inner.value, not inner.negate, inner.absolute, inner.sign_extend)
    if function == "abs":
        return Operand(inner.value, inner.negate, True, inner.sign_extend)
    if function == "sext":
        return Operand(inner.value, inner.negate, inner.absolute, True)
    return inner


def _value(text: str) -> Register | Expression | int | float | str | None:
    register = parse_register(text)
    if register is not None:
        return register
    if text == "off":
        return None
    if _INTEGER.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _SYMBOL.fullmatch(text) and "(" not in text.split("@")[0].lstrip("("):
        return Expression(text)
    return text


def parse_register(text: str) -> Register | None:
    """A register or register range, or None when the text is something else."""
    if text in SPECIAL:
        return Register("s", *SPECIAL[text])
    match = _REGISTER.fullmatch(text)
    if match:
        first = int(match[2] or match[3])
        last = int(match[4]) if match[4] else first
        half = {"l": 0, "h": 1}.get(match[5])
        return Register(match[1], first, last - first + 1, half)
    match = _TRAP_REGISTER.fullmatch(text)
    if match:
        first = int(match[1] or match[2])
        last = int(match[3]) if match[3] else first
        return Register("s", TTMP + first, last - first + 1)
    return None
