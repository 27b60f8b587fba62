"""Text of a tree in device C++, with the same value as in Python for every shape of the declared ranges.

Two words are used. In `u32` names are printed as they are and numbers as `8u`: right as long as every
intermediate value lies in [0, 2**32), where `/` and `%` floor. In `i64` every name and number is widened and
`//`, `%` go through helpers that floor for negative values. With ranges the word is chosen by proof: u32
where interval arithmetic shows that no intermediate value leaves it, else i64, else an error. Without ranges,
text without subtraction and negative numbers is printed in u32 and the caller proves the widths
(`prove_width`); everything else in i64.
"""

from __future__ import annotations

import re
from typing import Literal

from dsv4gen.base.errors import ExpressionError
from dsv4gen.prove.intervals import Ranges, bounds_of
from dsv4gen.prove.nodes import (
    COMPARISONS,
    EQUALITIES,
    Apply,
    Choice,
    Name,
    Node,
    Number,
    Truth,
    kind_of,
    walk,
)
from dsv4gen.prove.printers import STRENGTH, spec_text

Word = Literal["u32", "i64"]
_LIMITS: dict[Word, tuple[int, int]] = {"u32": (0, 2**32 - 1), "i64": (-(2**63) + 1, 2**63 - 1)}
_ATOM = 10
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_HELPERS = {
    "//": "floor_div",
    "%": "floor_mod",
    "ceil_div": "ceil_div",
    "round_up": "round_up",
    "**": "int_power",
}

_HELPER_TEXT = """\
{q} u32 minimum(u32 a, u32 b) {{ return a < b ? a : b; }}
{q} i64 minimum(i64 a, i64 b) {{ return a < b ? a : b; }}
{q} u32 maximum(u32 a, u32 b) {{ return a > b ? a : b; }}
{q} i64 maximum(i64 a, i64 b) {{ return a > b ? a : b; }}
{q} u32 floor_div(u32 a, u32 b) {{ return a / b; }}
{q} i64 floor_div(i64 a, i64 b) {{ return a / b - ((a % b != 0) & ((a < 0) != (b < 0))); }}
{q} u32 floor_mod(u32 a, u32 b) {{ return a % b; }}
{q} i64 floor_mod(i64 a, i64 b) {{ return a - floor_div(a, b) * b; }}
{q} u32 ceil_div(u32 a, u32 b) {{ return a / b + (a % b != 0); }}
{q} i64 ceil_div(i64 a, i64 b) {{ return -floor_div(-a, b); }}
{q} u32 round_up(u32 a, u32 b) {{ return ceil_div(a, b) * b; }}
{q} i64 round_up(i64 a, i64 b) {{ return ceil_div(a, b) * b; }}
{q} u32 int_power(u32 a, u32 n) {{ u32 r = 1; for (u32 i = 0; i < n; ++i) r *= a; return r; }}
{q} i64 int_power(i64 a, i64 n) {{ i64 r = 1; for (i64 i = 0; i < n; ++i) r *= a; return r; }}
"""


def cpp_helpers(qualifier: str = "DSV4_DEVICE") -> str:
    """Definitions of the functions that printed expressions call; `u32` and `i64` must be declared before."""
    return _HELPER_TEXT.format(q=qualifier)


def choose_word(node: Node, ranges: Ranges | None) -> Word:
    """The narrowest word that holds every intermediate value.

    Raises:
        ExpressionError: neither word is proven to hold a part of the expression.
    """
    if ranges is None:
        return "i64" if any(_needs_wide_word(part) for part in walk(node)) else "u32"
    if _first_outside(node, ranges, "u32") is None:
        return "u32"
    outside = _first_outside(node, ranges, "i64")
    if outside is None:
        return "i64"
    raise ExpressionError(f"'{spec_text(outside)}' is not proven to fit 64 bits over the declared ranges")


def _needs_wide_word(part: Node) -> bool:
    """Numbers outside u32, and operators that can leave it downwards."""
    if isinstance(part, Number):
        return not 0 <= part.value <= _LIMITS["u32"][1]
    return isinstance(part, Apply) and part.operator in ("-", "neg")


def _first_outside(node: Node, ranges: Ranges, word: Word) -> Node | None:
    """The first numeric part not known to lie in the word."""
    low, high = _LIMITS[word]
    for part in walk(node):
        if _is_number(part):
            bounds = bounds_of(part, ranges)
            if bounds is None or bounds[0] < low or bounds[1] > high:
                return part
    return None


def _is_number(node: Node) -> bool:
    return isinstance(node, Number) or (isinstance(node, Apply) and kind_of(node) == "number")


def cpp_text(node: Node, word: Word) -> str:
    """The C++ text in the given word.

    Raises:
        ExpressionError: a dotted name, a choice outside == and !=, or a number the word cannot hold.
    """
    return _Printer(word).text(node, 0)


def _enumerator(option: str, choice: str) -> str:
    """`mode` and `page_table` give `Mode::page_table`."""
    words = option.split("_")
    return f"{''.join(word.capitalize() for word in words)}::{choice}"


class _Printer:
    def __init__(self, word: Word) -> None:
        self._word = word

    def text(self, node: Node, needed: int) -> str:
        """The node's text, in parentheses when it binds weaker than `needed`."""
        written, strength = self._apply(node) if isinstance(node, Apply) else (self._leaf(node), _ATOM)
        return f"({written})" if strength < needed else written

    def _leaf(self, node: Node) -> str:
        if isinstance(node, Truth):
            return str(node.value).lower()
        if isinstance(node, Number):
            return self._number(node.value)
        if isinstance(node, Choice):
            raise ExpressionError(f"'{node.text}' has no C++ form outside == and !=")
        assert isinstance(node, Name)
        if not _IDENTIFIER.fullmatch(node.name):
            raise ExpressionError(f"'{node.name}' has no C++ form: facts are substituted before printing")
        return node.name

    def _number(self, value: int) -> str:
        low, high = _LIMITS[self._word]
        if not low <= value <= high:
            raise ExpressionError(f"{value} does not fit {self._word}")
        return f"{value}u" if self._word == "u32" else f"i64({value})"

    def _apply(self, node: Apply) -> tuple[str, int]:
        operator, operands = node.operator, node.operands
        strength = STRENGTH.get(operator, _ATOM)
        if operator in EQUALITIES and any(isinstance(operand, Choice) for operand in operands):
            return self._choice_comparison(node), strength
        if operator == "if":
            condition, yes, no = (self._operand(operand, 2) for operand in operands)
            return f"({condition} ? {yes} : {no})", _ATOM
        if operator in ("and", "or"):
            joint = " && " if operator == "and" else " || "
            # An `&&` inside an `||` needs no parentheses; compilers warn without them.
            return joint.join(self.text(operand, 4) for operand in operands), strength
        if operator == "not":
            return f"!{self.text(operands[0], _ATOM)}", _ATOM - 1
        if operator in ("min", "max"):
            return self._extreme(operator, operands), _ATOM
        return self._arithmetic(operator, operands, strength)

    def _arithmetic(self, operator: str, operands: tuple[Node, ...], strength: int) -> tuple[str, int]:
        if operator == "neg":
            return f"-{self._operand(operands[0], _ATOM)}", strength
        if operator == "**" and operands[0] == Number(2):
            shifted, exponent = self._number(1), self._operand(operands[1], _ATOM)
            return f"({shifted} << {exponent})", _ATOM
        native = self._word == "u32" and operator in ("//", "%")
        if operator in _HELPERS and not native:
            return (
                f"{_HELPERS[operator]}({', '.join(self._operand(operand, 0) for operand in operands)})",
                _ATOM,
            )
        sign = "/" if operator == "//" else operator
        left_needs = strength + 1 if operator in COMPARISONS else strength
        left, right = self._operand(operands[0], left_needs), self._operand(operands[1], strength + 1)
        return f"{left} {sign} {right}", strength

    def _operand(self, node: Node, needed: int) -> str:
        """An operand that is widened when it is a name in 64-bit arithmetic."""
        text = self.text(node, needed)
        return f"i64({text})" if self._word == "i64" and isinstance(node, Name) else text

    def _extreme(self, operator: str, operands: tuple[Node, ...]) -> str:
        function = "minimum" if operator == "min" else "maximum"
        text = self._operand(operands[0], 0)
        for operand in operands[1:]:
            text = f"{function}({text}, {self._operand(operand, 0)})"
        return text

    def _choice_comparison(self, node: Apply) -> str:
        left, right = node.operands
        name, choice = (left, right) if isinstance(right, Choice) else (right, left)
        if not isinstance(name, Name) or not isinstance(choice, Choice):
            raise ExpressionError(f"'{spec_text(node)}' has no C++ form: compare an option with a choice")
        return f"{self.text(name, 6)} {node.operator} {_enumerator(name.name, choice.text)}"
