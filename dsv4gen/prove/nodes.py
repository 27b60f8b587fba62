"""The expression tree: five frozen node classes, their kinds, and the limits every tree obeys.

A node is a number, a truth value, a choice's text, a name, or an operator applied to operands. Operators
carry the names of the JSON form (dsv4gen/base/expression_json.py). Kinds are strict: a number is not a truth
value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from dsv4gen.base.errors import ExpressionError
from dsv4gen.base.expression_json import DEPTH_MAX, Value
from dsv4gen.prove.tokens import NAME

#: nodes of one expression; a chained comparison repeats its middle operand, which this bounds
SIZE_MAX = 1000

Kind = Literal["number", "truth value", "choice"]

ARITHMETIC = ("+", "-", "*", "//", "%", "**", "ceil_div", "round_up", "neg", "min", "max")
ORDERINGS = ("<", "<=", ">", ">=")
EQUALITIES = ("==", "!=")
COMPARISONS = (*ORDERINGS, *EQUALITIES)
LOGIC = ("and", "or", "not")
DIVISIONS = ("//", "%", "ceil_div", "round_up")


class KindFault(Exception):
    """A value of the wrong kind; `offset` is the position of the offending name in the text, if it is one."""

    def __init__(self, message: str, offset: int | None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


@dataclass(frozen=True)
class Number:
    """An integer."""

    value: int
    size = 1
    depth = 0


@dataclass(frozen=True)
class Truth:
    """true or false."""

    value: bool
    size = 1
    depth = 0


@dataclass(frozen=True)
class Choice:
    """The quoted text of one choice of an option."""

    text: str
    size = 1
    depth = 0


@dataclass(frozen=True)
class Name:
    """An axis, constant, tile dimension, option or dotted fact; `offset` counts characters into the text."""

    name: str
    offset: int | None = field(default=None, compare=False)
    size = 1
    depth = 0


@dataclass(frozen=True)
class Apply:
    """An operator applied to its operands.

    Raises:
        ExpressionError: a tree larger than SIZE_MAX nodes or deeper than DEPTH_MAX.
    """

    operator: str
    operands: tuple[Node, ...]
    size: int = field(init=False, compare=False, repr=False)
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        size = 1 + sum(operand.size for operand in self.operands)
        depth = 1 + max(operand.depth for operand in self.operands)
        if size > SIZE_MAX:
            raise ExpressionError(f"expression has more than {SIZE_MAX} parts")
        if depth > DEPTH_MAX:
            raise ExpressionError(f"expression nested deeper than {DEPTH_MAX}")
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "depth", depth)


Node = Number | Truth | Choice | Name | Apply

TRUE = Truth(True)
FALSE = Truth(False)


def literal(value: Value) -> Node:
    """The node of a Python value; text becomes a choice."""
    if isinstance(value, bool):
        return Truth(value)
    if isinstance(value, int):
        return Number(value)
    return Choice(value)


def literal_value(node: Node) -> Value | None:
    """The Python value of a literal node, None for any other."""
    if isinstance(node, (Number, Truth)):
        return node.value
    return node.text if isinstance(node, Choice) else None


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    yield node
    if isinstance(node, Apply):
        for operand in node.operands:
            yield from walk(operand)


def names_in(node: Node) -> tuple[str, ...]:
    """Names in order of first appearance."""
    return tuple(dict.fromkeys(part.name for part in walk(node) if isinstance(part, Name)))


def to_json(node: Node) -> Any:
    """The nested-list form that `dsv4gen.base.expression_json` evaluates."""
    if isinstance(node, Apply):
        return [node.operator, *(to_json(operand) for operand in node.operands)]
    if isinstance(node, Choice):
        return ["choice", node.text]
    return node.name if isinstance(node, Name) else node.value


def from_json(tree: Any) -> Node:
    """The node of a nested list whose shape `compile_json` has checked.

    Raises:
        ExpressionError: a name that a spec could not write, or a tree beyond the limits.
    """
    if isinstance(tree, (bool, int)):
        return literal(tree)
    if isinstance(tree, str):
        if not NAME.fullmatch(tree):
            raise ExpressionError(f"'{tree}' is not a name")
        return Name(tree)
    if tree[0] == "choice":
        return Choice(tree[1])
    return Apply(tree[0], tuple(from_json(operand) for operand in tree[1:]))


def kind_of(node: Node) -> Kind | None:
    """The kind of a node, None where only the value of a name can tell."""
    if isinstance(node, Number):
        return "number"
    if isinstance(node, Truth):
        return "truth value"
    if isinstance(node, Choice):
        return "choice"
    if isinstance(node, Name):
        return None
    if node.operator == "if":
        return kind_of(node.operands[1]) or kind_of(node.operands[2])
    return "number" if node.operator in ARITHMETIC else "truth value"


@lru_cache(maxsize=4096)
def name_kinds(node: Node) -> dict[str, Kind]:
    """The kind each name must have, for names whose use decides it; do not modify the result.

    Raises:
        KindFault: an operand of the wrong kind, or one name used as two kinds.
    """
    kinds: dict[str, Kind] = {}
    _expect(node, kind_of(node), kinds)
    return kinds


def _expect(node: Node, kind: Kind | None, kinds: dict[str, Kind]) -> None:
    found = kind_of(node)
    if isinstance(node, Name):
        if kind is not None and kinds.setdefault(node.name, kind) != kind:
            raise KindFault(f"'{node.name}' is used as a {kinds[node.name]} and as a {kind}", node.offset)
    elif found is not None and kind is not None and found != kind:
        raise KindFault(f"{_describe(node)} is a {found} where a {kind} is needed", _first_offset(node))
    if isinstance(node, Apply):
        for operand, wanted in zip(node.operands, _operand_kinds(node, kind), strict=True):
            _expect(operand, wanted, kinds)


def _operand_kinds(node: Apply, kind: Kind | None) -> list[Kind | None]:
    """What each operand must be, given what the node itself must be."""
    count = len(node.operands)
    if node.operator in LOGIC:
        return ["truth value"] * count
    if node.operator in EQUALITIES:
        shared = kind_of(node.operands[0]) or kind_of(node.operands[1])
        return [shared] * count
    if node.operator == "if":
        branch = kind or kind_of(node)
        return ["truth value", branch, branch]
    return ["number"] * count


def _describe(node: Node) -> str:
    if isinstance(node, Apply):
        return f"the result of '{node.operator}'"
    return f"'{literal_value(node)}'" if isinstance(node, Choice) else str(literal_value(node)).lower()


def _first_offset(node: Node) -> int | None:
    return next((part.offset for part in walk(node) if isinstance(part, Name)), None)
