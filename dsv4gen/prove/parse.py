"""Spec text to a tree: our own token check first, then Python's `ast`, then a whitelist of its nodes.

Nothing is evaluated: `ast` only groups tokens that `tokens.check_tokens` has let through.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from dsv4gen.base.errors import ExpressionError, did_you_mean
from dsv4gen.base.expression_json import EXPONENT_MAX
from dsv4gen.prove.folding import fold
from dsv4gen.prove.nodes import FALSE, TRUE, Apply, Choice, KindFault, Name, Node, Number, name_kinds
from dsv4gen.prove.tokens import ALLOWED, FUNCTIONS, LENGTH_MAX, TOKEN, Fault, check_tokens

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.And: "and",
    ast.Or: "or",
}


@lru_cache(maxsize=4096)
def parse(text: str) -> Node:
    """The tree of an expression.

    Raises:
        Fault: anything outside the language, with the offset of the offending token.
    """
    if len(text) > LENGTH_MAX:
        raise Fault(f"expression of {len(text)} characters, at most {LENGTH_MAX} are allowed", 0)
    if not text.strip():
        raise Fault("the expression is empty", 0, f"write an expression of {ALLOWED}")
    check_tokens(text)
    start = len(text) - len(text.lstrip())
    node = _Converter(text, start).convert(_python_tree(text, start))
    try:
        name_kinds(node)
    except KindFault as fault:
        raise Fault(fault.message, start if fault.offset is None else fault.offset) from None
    return node


def _python_tree(text: str, start: int) -> ast.expr:
    line = re.sub(r"[\t\r\n]", " ", text[start:]).rstrip()
    try:
        return ast.parse(line, mode="eval").body
    except SyntaxError as error:
        offset = start + max((error.offset or 1) - 1, 0)
        raise Fault(_syntax_message(text, offset), min(offset, len(text) - 1)) from None
    except (MemoryError, RecursionError, ValueError):
        raise Fault("the expression is nested too deep", start) from None


def _syntax_message(text: str, offset: int) -> str:
    match = TOKEN.match(text, min(offset, len(text) - 1))
    return f"cannot read the expression at '{match.group() if match else text}'"


class _Converter:
    """Python's tree to ours; the offset of a Python node is its column plus where the text starts."""

    def __init__(self, text: str, start: int) -> None:
        self._text = text
        self._start = start

    def convert(self, node: ast.expr) -> Node:
        """The tree of one Python expression node."""
        try:
            return self._convert(node)
        except ExpressionError as error:
            raise Fault(error.message, self._offset(node)) from None
        except RecursionError:
            raise Fault("the expression is nested too deep", self._offset(node)) from None

    def _convert(self, node: ast.expr) -> Node:
        if isinstance(node, ast.BinOp):
            return self._binary(node)
        if isinstance(node, ast.UnaryOp):
            return self._unary(node)
        if isinstance(node, ast.BoolOp):
            return Apply(_OPERATORS[type(node.op)], tuple(self._convert(value) for value in node.values))
        if isinstance(node, ast.Compare):
            return self._compare(node)
        if isinstance(node, ast.IfExp):
            return Apply("if", tuple(self._convert(part) for part in (node.test, node.body, node.orelse)))
        if isinstance(node, ast.Call):
            return self._call(node)
        return self._leaf(node)

    def _binary(self, node: ast.BinOp) -> Node:
        left, right = self._convert(node.left), self._convert(node.right)
        if type(node.op) not in _OPERATORS:
            remedy = "multiply or divide by 2 ** name"
            raise Fault("unexpected shift operator", self._offset(node.right), remedy)
        if isinstance(node.op, ast.Pow):
            self._check_power(left, right, self._offset(node.right))
        return Apply(_OPERATORS[type(node.op)], (left, right))

    def _check_power(self, base: Node, exponent: Node, offset: int) -> None:
        constant = fold(exponent)
        if isinstance(constant, Number):
            if not 0 <= constant.value <= EXPONENT_MAX:
                raise Fault(f"exponent {constant.value} is outside 0..{EXPONENT_MAX}", offset)
        elif fold(base) != Number(2) or not isinstance(constant, (Name, Apply)):
            message = "only 2 can be raised to an exponent that is not constant"
            raise Fault(message, offset, f"use a constant exponent of 0..{EXPONENT_MAX}, or 2 ** name")

    def _unary(self, node: ast.UnaryOp) -> Node:
        operand = self._convert(node.operand)
        if isinstance(node.op, ast.Not):
            return Apply("not", (operand,))
        if isinstance(node.op, ast.USub):
            return Number(-operand.value) if isinstance(operand, Number) else Apply("neg", (operand,))
        raise Fault("unexpected unary '+'", self._offset(node))

    def _compare(self, node: ast.Compare) -> Node:
        sides = [self._convert(side) for side in (node.left, *node.comparators)]
        pairs = zip(node.ops, sides, sides[1:], strict=False)
        links = tuple(Apply(_OPERATORS[type(op)], (left, right)) for op, left, right in pairs)
        return links[0] if len(links) == 1 else Apply("and", links)

    def _call(self, node: ast.Call) -> Node:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS:
            written = name or self._text[self._offset(node.func) :].split("(")[0]
            message = f"unknown function '{written}'{did_you_mean(name, FUNCTIONS)}"
            raise Fault(message, self._offset(node), f"functions are {', '.join(FUNCTIONS)}")
        if node.keywords:
            raise Fault(f"{name} takes plain operands only", self._offset(node))
        operands = tuple(self._convert(argument) for argument in node.args)
        if len(operands) < 2 or (FUNCTIONS[name] == "two" and len(operands) > 2):
            raise Fault(f"{name} takes {FUNCTIONS[name]} operands, not {len(operands)}", self._offset(node))
        return Apply(name, operands)

    def _leaf(self, node: ast.expr) -> Node:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return Choice(node.value)
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return Number(node.value)
        if isinstance(node, ast.Name) and node.id in ("true", "false"):
            return TRUE if node.id == "true" else FALSE
        name = _dotted(node)
        if name is None:
            token = self._text[self._offset(node) :][:1]
            raise Fault(f"unexpected '{token}'", self._offset(node), f"allowed are {ALLOWED}")
        if name in FUNCTIONS:
            raise Fault(f"function '{name}' is used as a name", self._offset(node), f"call it: {name}(...)")
        return Name(name, self._offset(node))

    def _offset(self, node: ast.expr) -> int:
        return self._start + node.col_offset


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = _dotted(node.value)
        return None if owner is None else f"{owner}.{node.attr}"
    return None
