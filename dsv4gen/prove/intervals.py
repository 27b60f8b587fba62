"""Interval arithmetic over the declared ranges: fast bounds, always sound and exact where monotone.

A bound is the pair (smallest, largest). An expression that may divide by zero, take a power out of range or
read a name without a range has no bounds: None. The callers then ask the solver instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

from dsv4gen.base.expression_json import EXPONENT_MAX, ceil_div, power
from dsv4gen.prove.nodes import DIVISIONS, LOGIC, ORDERINGS, Apply, Name, Node, Number, Truth

Bounds = tuple[int, int]
Ranges = Mapping[str, Bounds]


def bounds_of(node: Node, ranges: Ranges) -> Bounds | None:
    """Smallest and largest value a number can take; None when that is not known."""
    if isinstance(node, Number):
        return node.value, node.value
    if isinstance(node, Name):
        return ranges.get(node.name)
    if not isinstance(node, Apply):
        return None
    if node.operator == "if":
        return _bounds_of_if(node, ranges)
    operands = [bounds_of(operand, ranges) for operand in node.operands]
    known = [bounds for bounds in operands if bounds is not None]
    if len(known) < len(operands):
        return None
    return _combine(node.operator, known)


def truth_over(node: Node, ranges: Ranges) -> bool | None:
    """True or false when a predicate has that value everywhere in `ranges`; None when not known."""
    if isinstance(node, Truth):
        return node.value
    if not isinstance(node, Apply):
        return None
    if node.operator in LOGIC:
        return _logic(node.operator, [truth_over(operand, ranges) for operand in node.operands])
    if node.operator == "if":
        condition, yes, no = (truth_over(operand, ranges) for operand in node.operands)
        if condition is None:
            return yes if yes == no else None
        return yes if condition else no
    left, right = (bounds_of(operand, ranges) for operand in node.operands[:2])
    if left is None or right is None:
        return None
    return _compare(node.operator, left, right)


def _bounds_of_if(node: Apply, ranges: Ranges) -> Bounds | None:
    condition = truth_over(node.operands[0], ranges)
    if condition is not None:
        return bounds_of(node.operands[1 if condition else 2], ranges)
    yes, no = (bounds_of(branch, ranges) for branch in node.operands[1:])
    if yes is None or no is None:
        return None
    return min(yes[0], no[0]), max(yes[1], no[1])


def _combine(operator: str, operands: list[Bounds]) -> Bounds | None:
    if operator in ("min", "max"):
        choose = min if operator == "min" else max
        return choose(low for low, _ in operands), choose(high for _, high in operands)
    if operator == "neg":
        low, high = operands[0]
        return -high, -low
    left, right = operands
    if operator == "+":
        return left[0] + right[0], left[1] + right[1]
    if operator == "-":
        return left[0] - right[1], left[1] - right[0]
    if operator == "*":
        return _corners(lambda first, second: first * second, left, right)
    if operator == "**":
        return _power(left, right)
    return _division(operator, left, right) if operator in DIVISIONS and right[0] > 0 else None


def _corners(function: Callable[[int, int], int], left: Bounds, right: Bounds) -> Bounds:
    """Bounds of a function that is monotone in each operand: they are met at corners of the box."""
    values = [function(first, second) for first, second in product(left, right)]
    return min(values), max(values)


def _power(base: Bounds, exponent: Bounds) -> Bounds | None:
    if exponent[0] < 0 or exponent[1] > EXPONENT_MAX or base[0] < 0:
        return None
    if base[1].bit_length() * exponent[1] > 2 * EXPONENT_MAX:
        return None
    # 0 ** 0 is 1 while 0 ** 1 is 0: not monotone there.
    low = 0 if base[0] == 0 and exponent[1] > 0 else power(base[0], exponent[0])
    return low, max(power(base[1], exponent[1]), power(base[1], exponent[0]))


def _division(operator: str, left: Bounds, right: Bounds) -> Bounds:
    """Bounds for a positive divisor."""
    if operator == "//":
        return _corners(lambda value, divisor: value // divisor, left, right)
    if operator == "ceil_div":
        return _corners(ceil_div, left, right)
    if operator == "round_up":
        exact = right[0] == right[1]
        return (
            ceil_div(left[0], right[0]) * right[0] if exact else left[0],
            ceil_div(left[1], right[0]) * right[0] if exact else left[1] + right[1] - 1,
        )
    if left[0] >= 0 and left[1] < right[0]:
        return left
    return 0, min(right[1] - 1, left[1]) if left[0] >= 0 else right[1] - 1


def _compare(operator: str, left: Bounds, right: Bounds) -> bool | None:
    if operator in (">", ">="):
        left, right, operator = right, left, "<" if operator == ">" else "<="
    if operator in ORDERINGS:
        strict = operator == "<"
        if left[1] < right[0] or (not strict and left[1] == right[0]):
            return True
        return False if left[0] > right[1] or (strict and left[0] == right[1]) else None
    if left[1] < right[0] or right[1] < left[0]:
        return operator == "!="
    same = left == right and left[0] == left[1]
    return operator == "==" if same else None


def _logic(operator: str, operands: list[bool | None]) -> bool | None:
    if operator == "not":
        return None if operands[0] is None else not operands[0]
    deciding = operator == "or"
    if deciding in operands:
        return deciding
    return None if None in operands else not deciding
