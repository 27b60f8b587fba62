"""Text of a tree: the spec language (canonical) and Python.

Both share one precedence table and print parentheses only where they are needed; comparisons inside
comparisons always get them, because Python would read them as a chain.
"""

from __future__ import annotations

from dsv4gen.prove.nodes import COMPARISONS, Apply, Choice, Name, Node, Truth

#: binding strength, as in Python; an operand printed where more strength is needed gets parentheses
_CONDITIONAL, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = 1, 5, 6, 7, 8, 9, 10
STRENGTH = {
    "if": _CONDITIONAL,
    "or": 2,
    "and": 3,
    "not": 4,
    **dict.fromkeys(COMPARISONS, _COMPARE),
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "//": _PRODUCT,
    "%": _PRODUCT,
    "neg": _SIGN,
    "**": _POWER,
}


def spec_text(node: Node) -> str:
    """Canonical text in the spec language; parsing it gives the same tree."""
    return _Printer(python=False).text(node, 0)


def python_text(node: Node) -> str:
    """The same as a Python expression: True and False, and divisions written out."""
    return _Printer(python=True).text(node, 0)


def python_block(node: Node, width: int, indent: int = 0) -> str:
    """The same with calls broken where a line would exceed `width` columns, an operand to a line.

    Args:
        node: the tree.
        width: columns of a line, those of its indentation included.
        indent: columns before the line that the text starts on; closing parentheses return there.
    """
    text = python_text(node)
    if indent + len(text) <= width or not isinstance(node, Apply) or node.operator not in ("max", "min"):
        return text
    inner = " " * (indent + 4)
    # A comma follows each operand.
    operands = [f"{inner}{python_block(operand, width - 1, indent + 4)},\n" for operand in node.operands]
    return f"{node.operator}(\n{''.join(operands)}{' ' * indent})"


class _Printer:
    def __init__(self, *, python: bool) -> None:
        self._python = python

    def text(self, node: Node, needed: int) -> str:
        """The node's text, in parentheses when it binds weaker than `needed`."""
        if isinstance(node, Apply):
            written, strength = self._apply(node)
        else:
            written = self._leaf(node)
            strength = _SIGN if written.startswith("-") else _ATOM
        return f"({written})" if strength < needed else written

    def _leaf(self, node: Node) -> str:
        if isinstance(node, Name):
            return node.name
        if isinstance(node, Choice):
            return f"'{node.text}'"
        if isinstance(node, Truth):
            return str(node.value) if self._python else str(node.value).lower()
        return str(getattr(node, "value", ""))

    def _apply(self, node: Apply) -> tuple[str, int]:
        operator, operands = node.operator, node.operands
        strength = STRENGTH.get(operator, _ATOM)
        if operator in ("ceil_div", "round_up") and self._python:
            return self._python_division(operator, operands)
        if strength == _ATOM:
            return f"{operator}({', '.join(self.text(operand, 0) for operand in operands)})", strength
        if operator == "if":
            condition, yes, no = operands
            above = _CONDITIONAL + 1
            text = f"{self.text(yes, above)} if {self.text(condition, above)} else {self.text(no, _CONDITIONAL)}"
            return text, strength
        if operator in ("and", "or"):
            return f" {operator} ".join(self.text(operand, strength + 1) for operand in operands), strength
        if operator in ("not", "neg"):
            return ("not " if operator == "not" else "-") + self.text(operands[0], strength), strength
        return self._infix(operator, operands, strength), strength

    def _infix(self, operator: str, operands: tuple[Node, ...], strength: int) -> str:
        left, right = operands
        left_needs = strength + 1 if operator in COMPARISONS or operator == "**" else strength
        right_needs = strength if operator == "**" else strength + 1
        return f"{self.text(left, left_needs)} {operator} {self.text(right, right_needs)}"

    def _python_division(self, operator: str, operands: tuple[Node, ...]) -> tuple[str, int]:
        """`-(-a // b)` rounds up for every sign of a, as floor division rounds down."""
        value, divisor = operands
        divided = f"-(-{self.text(value, _SIGN)} // {self.text(divisor, _SIGN)})"
        if operator == "ceil_div":
            return divided, _SIGN
        return f"{divided} * {self.text(divisor, _SIGN)}", _PRODUCT
