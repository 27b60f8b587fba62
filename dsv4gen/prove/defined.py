"""Where an expression has a value: every divisor positive, every exponent of 2 in range, for every shape.

C++ does not define division by zero and Python floors by negative divisors in its own way, so a spec may use
neither. A part counts only for the shapes that reach it: `k > 0 and width // k > 8` is fine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dsv4gen.base.expression_json import EXPONENT_MAX
from dsv4gen.prove.folding import fold
from dsv4gen.prove.nodes import DIVISIONS, TRUE, Apply, Node, Number
from dsv4gen.prove.printers import spec_text
from dsv4gen.prove.search import smallest
from dsv4gen.prove.space import Space

_EXPONENTS = ((">=", 0), ("<=", EXPONENT_MAX))


@dataclass(frozen=True)
class Undefined:
    """A part without a value at `shape`."""

    part: str
    mistake: str
    shape: dict[str, int]


def both(*parts: Node) -> Node:
    """The conjunction, folded."""
    return fold(Apply("and", parts)) if len(parts) > 1 else parts[0]


def negated(part: Node) -> Node:
    """The negation, folded."""
    return fold(Apply("not", (part,)))


def definedness(node: Node) -> Node:
    """The condition under which `node` has a value."""
    return both(TRUE, *(negated(both(reached, negated(fine))) for _, _, fine, reached in _conditions(node, TRUE)))


def first_undefined(space: Space, node: Node, given: Node = TRUE) -> Undefined | None:
    """The first part of `node` that has no value at some shape for which `given` holds.

    Raises:
        Undecided: the solver gave up.
    """
    for part, mistake, fine, reached in _conditions(node, given):
        shape = smallest(space, both(reached, negated(fine)))
        if shape is not None:
            return Undefined(spec_text(part), mistake, shape)
    return None


def _conditions(node: Node, reached: Node) -> Iterator[tuple[Node, str, Node, Node]]:
    """Every (part, what goes wrong, when it is fine, when it is reached)."""
    if not isinstance(node, Apply):
        return
    if node.operator in ("and", "or"):
        for operand in node.operands:
            yield from _conditions(operand, reached)
            reached = both(reached, operand if node.operator == "and" else negated(operand))
        return
    if node.operator == "if":
        condition, yes, no = node.operands
        yield from _conditions(condition, reached)
        yield from _conditions(yes, both(reached, condition))
        yield from _conditions(no, both(reached, negated(condition)))
        return
    for operand in node.operands:
        yield from _conditions(operand, reached)
    if node.operator in DIVISIONS:
        positive = Apply(">", (node.operands[1], Number(0)))
        yield node, "divides by a number that is not positive", positive, reached
    elif node.operator == "**":
        at_least, at_most = (Apply(sign, (node.operands[1], Number(n))) for sign, n in _EXPONENTS)
        yield node, f"has an exponent outside 0..{EXPONENT_MAX}", Apply("and", (at_least, at_most)), reached
