"""Trees as sympy formulas (shown by `explain`, counted for floors) and as z3 terms (proofs).

Both libraries are imported on first use: sympy takes about 0.25 s, z3 0.06 s. All names are non-negative
integers in sympy. z3 divides in the Euclidean way, which floors for positive divisors only; negative ones are
mirrored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dsv4gen.base.errors import ExpressionError
from dsv4gen.base.expression_json import EXPONENT_MAX
from dsv4gen.prove.intervals import Ranges, bounds_of
from dsv4gen.prove.nodes import Apply, Choice, Name, Node, Number, Truth, kind_of, name_kinds


def sympy_term(node: Node) -> Any:
    """The node as a sympy expression; truth-valued names become plain symbols.

    Raises:
        ExpressionError: a choice; substitute options first.
    """
    return _Sympy(name_kinds(node)).term(node)


def z3_term(node: Node, variables: Mapping[str, Any], ranges: Ranges | None = None) -> Any:
    """The node as a z3 term over `variables` (integer or Boolean terms by name).

    `ranges` bound the exponents of `2 ** name`, which become a case distinction.

    Raises:
        ExpressionError: a name that is not in `variables`, or a choice; substitute options first.
    """
    return _Z3(variables, ranges or {}).term(node)


class _Sympy:
    def __init__(self, kinds: Mapping[str, str]) -> None:
        import sympy

        self._sympy = sympy
        self._kinds = kinds
        self._operators: dict[str, Callable[..., Any]] = {
            "+": lambda a, b: a + b,
            "-": lambda a, b: a - b,
            "*": lambda a, b: a * b,
            "//": lambda a, b: sympy.floor(a / b),
            "%": lambda a, b: a - b * sympy.floor(a / b),
            "**": lambda a, b: a**b,
            "ceil_div": lambda a, b: sympy.ceiling(a / b),
            "round_up": lambda a, b: b * sympy.ceiling(a / b),
            "neg": lambda a: -a,
            "min": sympy.Min,
            "max": sympy.Max,
            "<": sympy.Lt,
            "<=": sympy.Le,
            ">": sympy.Gt,
            ">=": sympy.Ge,
            "and": sympy.And,
            "or": sympy.Or,
            "not": sympy.Not,
            "if": lambda condition, yes, no: sympy.Piecewise((yes, condition), (no, True)),
        }

    def term(self, node: Node) -> Any:
        if isinstance(node, Number):
            return self._sympy.Integer(node.value)
        if isinstance(node, Truth):
            return self._sympy.true if node.value else self._sympy.false
        if isinstance(node, Choice):
            raise ExpressionError(f"'{node.text}' has no formula: substitute the option first")
        if isinstance(node, Name):
            if self._kinds.get(node.name) == "truth value":
                return self._sympy.Symbol(node.name)
            return self._sympy.Symbol(node.name, integer=True, nonnegative=True)
        return self._apply(node)

    def _apply(self, node: Apply) -> Any:
        terms = [self.term(operand) for operand in node.operands]
        truths = self._is_truth(node.operands[-1])
        if node.operator == "if" and truths:
            return self._sympy.ITE(*terms)
        if node.operator == "==":
            return self._sympy.Equivalent(*terms) if truths else self._sympy.Eq(*terms)
        if node.operator == "!=":
            return self._sympy.Xor(*terms) if truths else self._sympy.Ne(*terms)
        return self._operators[node.operator](*terms)

    def _is_truth(self, node: Node) -> bool:
        """Whether the node is a truth value; sympy cannot tell, as its symbols are both."""
        if isinstance(node, Name):
            return self._kinds.get(node.name) == "truth value"
        if isinstance(node, Apply) and node.operator == "if":
            return self._is_truth(node.operands[1])
        return kind_of(node) == "truth value"


class _Z3:
    def __init__(self, variables: Mapping[str, Any], ranges: Ranges) -> None:
        import z3

        self._z3 = z3
        self._variables = variables
        self._ranges = ranges
        self._operators: dict[str, Callable[..., Any]] = {
            "+": lambda a, b: a + b,
            "-": lambda a, b: a - b,
            "neg": lambda a: -a,
            "<": lambda a, b: a < b,
            "<=": lambda a, b: a <= b,
            ">": lambda a, b: a > b,
            ">=": lambda a, b: a >= b,
            "==": lambda a, b: a == b,
            "!=": lambda a, b: a != b,
            "and": z3.And,
            "or": z3.Or,
            "not": z3.Not,
            "if": z3.If,
            "ceil_div": self._ceil_div,
            "round_up": lambda a, b: self._ceil_div(a, b) * b,
            "min": lambda *terms: self._extreme(terms, lambda a, b: a <= b),
            "max": lambda *terms: self._extreme(terms, lambda a, b: a >= b),
        }

    def term(self, node: Node) -> Any:
        if isinstance(node, Number):
            return self._z3.IntVal(node.value)
        if isinstance(node, Truth):
            return self._z3.BoolVal(node.value)
        if isinstance(node, Choice):
            raise ExpressionError(f"'{node.text}' has no solver term: substitute the option first")
        if isinstance(node, Name):
            if node.name not in self._variables:
                raise ExpressionError(f"'{node.name}' is neither an axis nor a constant")
            return self._variables[node.name]
        return self._apply(node)

    def _apply(self, node: Apply) -> Any:
        if node.operator in ("*", "//", "%"):
            return self._by_cases(node)
        if node.operator == "**":
            return self._power(node)
        return self._operators[node.operator](*(self.term(operand) for operand in node.operands))

    def _by_cases(self, node: Apply) -> Any:
        """A product or division; with a power of two as an operand, one linear term per exponent."""
        functions = {"*": lambda a, b: a * b, "//": self._floor_div, "%": self._floor_mod}
        function = functions[node.operator]
        left, right = node.operands
        if _is_power_of_two(right):
            value = self.term(left)
            return self._cases(right, lambda power: function(value, power))
        if node.operator == "*" and _is_power_of_two(left):
            value = self.term(right)
            return self._cases(left, lambda power: power * value)
        return function(self.term(left), self.term(right))

    def _power(self, node: Apply) -> Any:
        base, exponent = node.operands
        if _is_power_of_two(node):
            return self._cases(node, lambda power: power)
        if not isinstance(exponent, Number):
            raise ExpressionError("only 2 can be raised to an exponent that is not constant")
        result = self._z3.IntVal(1)
        for _ in range(exponent.value):
            result = result * self.term(base)
        return result

    def _cases(self, node: Node, build: Callable[[Any], Any]) -> Any:
        """`build(2 ** e)` for the exponent e of `node`, as nested conditions over its possible values."""
        assert isinstance(node, Apply)
        exponent = node.operands[1]
        low, high = bounds_of(exponent, self._ranges) or (0, EXPONENT_MAX)
        low, high = max(low, 0), min(high, EXPONENT_MAX)
        term = self.term(exponent)
        result = build(self._z3.IntVal(2 ** max(high, 0)))
        for value in range(high - 1, low - 1, -1):
            result = self._z3.If(term == value, build(self._z3.IntVal(2**value)), result)
        return result

    def _floor_div(self, value: Any, divisor: Any) -> Any:
        if self._z3.is_int_value(divisor) and divisor.as_long() > 0:
            return value / divisor
        return self._z3.If(divisor > 0, value / divisor, (-value) / (-divisor))

    def _floor_mod(self, value: Any, divisor: Any) -> Any:
        if self._z3.is_int_value(divisor) and divisor.as_long() > 0:
            return value % divisor
        return value - divisor * self._floor_div(value, divisor)

    def _ceil_div(self, value: Any, divisor: Any) -> Any:
        return -self._floor_div(-value, divisor)

    def _extreme(self, terms: tuple[Any, ...], keeps: Callable[[Any, Any], Any]) -> Any:
        result = terms[0]
        for term in terms[1:]:
            result = self._z3.If(keeps(result, term), result, term)
        return result


def _is_power_of_two(node: Node) -> bool:
    return isinstance(node, Apply) and node.operator == "**" and node.operands[0] == Number(2)
