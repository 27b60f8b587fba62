"""Constant folding: substitute values and simplify, so that a predicate can become literally true or false.

Folding never raises and never changes a defined value. What cannot be folded (a division by zero, a power out
of range) is left in place; proofs refuse it when a shape can reach it. An undefined part that cannot change
the result (`0 * (1 // 0)`) may disappear.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from dsv4gen.base.errors import ExpressionError
from dsv4gen.base.expression_json import BINARY
from dsv4gen.prove.intervals import Ranges, truth_over
from dsv4gen.prove.nodes import (
    COMPARISONS,
    DIVISIONS,
    FALSE,
    TRUE,
    Apply,
    Name,
    Node,
    Number,
    Truth,
    literal_value,
)

#: folded numbers stay below this magnitude; larger products are left as products
_FOLD_MAX = 2**128
_FLIPPED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


@lru_cache(maxsize=8192)
def fold(node: Node) -> Node:
    """The node with every constant part computed."""
    return _rewrite(node, {}, None)


def substitute(node: Node, values: Mapping[str, Node]) -> Node:
    """The node with names replaced and constants folded."""
    return _rewrite(node, values, None)


def decide(node: Node, ranges: Ranges) -> Node:
    """Like `fold`, and comparisons whose outcome is the same over all of `ranges` become true or false."""
    return _rewrite(node, {}, ranges)


def _rewrite(node: Node, values: Mapping[str, Node], ranges: Ranges | None) -> Node:
    if isinstance(node, Name):
        return values.get(node.name, node)
    if not isinstance(node, Apply):
        return node
    if node.operator in ("and", "or"):
        return _rewrite_logic(node, values, ranges)
    if node.operator == "if":
        return _rewrite_if(node, values, ranges)
    built = _build(node.operator, tuple(_rewrite(operand, values, ranges) for operand in node.operands))
    if ranges is not None and isinstance(built, Apply) and built.operator in COMPARISONS:
        known = truth_over(built, ranges)
        return built if known is None else Truth(known)
    return built


def _rewrite_logic(node: Apply, values: Mapping[str, Node], ranges: Ranges | None) -> Node:
    """`and` / `or` from the left: what follows the deciding operand is not looked at."""
    neutral, deciding = (TRUE, FALSE) if node.operator == "and" else (FALSE, TRUE)
    parts: dict[Node, None] = {}
    for operand in node.operands:
        part = _rewrite(operand, values, ranges)
        if part == deciding:
            # Operands on the left may be undefined for some shapes; where they are not, this is the result.
            return deciding
        if isinstance(part, Apply) and part.operator == node.operator:
            parts.update(dict.fromkeys(part.operands))
        elif part != neutral:
            parts[part] = None
    if not parts:
        return neutral
    return next(iter(parts)) if len(parts) == 1 else Apply(node.operator, tuple(parts))


def _rewrite_if(node: Apply, values: Mapping[str, Node], ranges: Ranges | None) -> Node:
    condition = _rewrite(node.operands[0], values, ranges)
    if isinstance(condition, Truth):
        return _rewrite(node.operands[1 if condition.value else 2], values, ranges)
    yes, no = (_rewrite(branch, values, ranges) for branch in node.operands[1:])
    if yes == no:
        return yes
    if (yes, no) == (TRUE, FALSE):
        return condition
    return Apply("if", (condition, yes, no))


def _build(operator: str, operands: tuple[Node, ...]) -> Node:
    """An operator on folded operands, simplified."""
    if operator in ("min", "max"):
        return _build_extreme(operator, operands)
    if operator == "not":
        return _build_not(operands[0])
    if operator == "neg":
        return _build_neg(operands[0])
    left, right = operands
    left_value, right_value = literal_value(left), literal_value(right)
    if left_value is not None and right_value is not None:
        folded = _compute(operator, left, right)
        return Apply(operator, operands) if folded is None else folded
    if operator in COMPARISONS:
        return _build_comparison(operator, left, right)
    return _build_arithmetic(operator, left, right)


def _compute(operator: str, left: Node, right: Node) -> Node | None:
    """The literal result, or None where it is undefined or too large to fold."""
    try:
        result = BINARY[operator](literal_value(left), literal_value(right))
    except (ZeroDivisionError, ExpressionError):
        return None
    if isinstance(result, bool):
        return Truth(result)
    return Number(result) if abs(result) < _FOLD_MAX else None


def _build_comparison(operator: str, left: Node, right: Node) -> Node:
    if left == right:
        return Truth(operator in ("<=", ">=", "=="))
    for side, other in ((left, right), (right, left)):
        if isinstance(side, Truth):
            wanted = side.value if operator == "==" else not side.value
            return other if wanted else _build_not(other)
    return Apply(operator, (left, right))


def _build_arithmetic(operator: str, left: Node, right: Node) -> Node:
    zero, one = Number(0), Number(1)
    if operator in ("+", "*"):
        return _build_commutative(operator, left, right)
    if operator == "-":
        if left == right:
            return zero
        return left if right == zero else Apply(operator, (left, right))
    if right == one:
        return zero if operator == "%" else left
    if operator == "**":
        return one if right == zero else Apply(operator, (left, right))
    if operator in DIVISIONS and left == zero and isinstance(right, Number) and right != zero:
        return zero
    return Apply(operator, (left, right))


def _build_commutative(operator: str, left: Node, right: Node) -> Node:
    """`+` and `*`: neutral and absorbing constants go, those of a chain meet: `4 * (2 * x)` is `8 * x`."""
    neutral = Number(0 if operator == "+" else 1)
    for constant, other in ((left, right), (right, left)):
        if not isinstance(constant, Number):
            continue
        if constant == neutral:
            return other
        if operator == "*" and constant.value == 0:
            return constant
        if isinstance(other, Apply) and other.operator == operator:
            merged = _merge_constant(other, constant)
            if merged is not None:
                return merged
    return Apply(operator, (left, right))


def _merge_constant(chain: Apply, constant: Number) -> Node | None:
    """`chain` with `constant` joined to the constant it already has."""
    first, second = chain.operands
    if isinstance(first, Number) or isinstance(second, Number):
        inner, rest = (first, second) if isinstance(first, Number) else (second, first)
        joined = _compute(chain.operator, inner, constant)
        if joined is not None:
            pair = (joined, rest) if inner is first else (rest, joined)
            return _build_commutative(chain.operator, *pair)
    return None


def _build_extreme(operator: str, operands: tuple[Node, ...]) -> Node:
    choose = min if operator == "min" else max
    constants: list[int] = []
    others: dict[Node, None] = {}
    for operand in operands:
        nested = isinstance(operand, Apply) and operand.operator == operator
        for part in operand.operands if nested and isinstance(operand, Apply) else (operand,):
            if isinstance(part, Number):
                constants.append(part.value)
            else:
                others[part] = None
    parts = (*others, *([Number(choose(constants))] if constants else []))
    return parts[0] if len(parts) == 1 else Apply(operator, parts)


def _build_not(operand: Node) -> Node:
    if isinstance(operand, Truth):
        return Truth(not operand.value)
    if isinstance(operand, Apply) and operand.operator == "not":
        return operand.operands[0]
    if isinstance(operand, Apply) and operand.operator in _FLIPPED:
        return Apply(_FLIPPED[operand.operator], operand.operands)
    return Apply("not", (operand,))


def _build_neg(operand: Node) -> Node:
    if isinstance(operand, Number):
        return Number(-operand.value)
    if isinstance(operand, Apply) and operand.operator == "neg":
        return operand.operands[0]
    return Apply("neg", (operand,))
