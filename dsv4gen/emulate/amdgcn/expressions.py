"""Evaluate the symbol arithmetic of assembly text, such as `(.LBB0_9-.Lpost_getpc0)&4294967295`."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

from dsv4gen.base.errors import CompileError

_SYMBOL = re.compile(r"(?<![\w.$])[.$A-Za-z_][\w.$]*")
_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


def evaluate(text: str, symbols: Mapping[str, int]) -> int:
    """The value of a sum of numbers and symbols.

    Raises:
        CompileError: an unknown symbol, or something other than integer arithmetic.
    """

    def value_of(match: re.Match[str]) -> str:
        if match[0] not in symbols:
            raise CompileError(f"unknown symbol {match[0]!r} in {text!r}")
        return str(symbols[match[0]])

    try:
        return _evaluate(ast.parse(_SYMBOL.sub(value_of, text), mode="eval").body)
    except (SyntaxError, ValueError) as error:
        raise CompileError(f"cannot evaluate {text!r}") from error


def _evaluate(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluate(node.left), _evaluate(node.right))
    raise ValueError("not integer arithmetic")
