"""Whether some shape gets somewhere: the question behind what is emitted and what is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dsv4gen.base.expression_json import Value
from dsv4gen.prove.defined import both, negated
from dsv4gen.prove.expressions import Expr
from dsv4gen.prove.nodes import TRUE, Node
from dsv4gen.prove.search import Undecided, exists, smallest
from dsv4gen.prove.space import Axis, space_of


def first_of(table: Sequence[Expr], values: Mapping[str, Value]) -> Node:
    """That the last predicate holds and none before it does; true for an empty table."""
    *earlier, last = (expression.substitute(dict(values)).node for expression in table) if table else (TRUE,)
    return both(*(negated(node) for node in earlier), last)


def some_shape(axes: Sequence[Axis], conditions: Sequence[Node], *, likely: bool = True) -> bool:
    """Whether a shape fulfils all conditions; yes where the solver cannot tell within its budget.

    Args:
        likely: try guesses before the solver, which costs more where the answer is no.
    """
    space, predicate = space_of(axes, {}), both(TRUE, *conditions)
    try:
        return exists(space, predicate) if likely else smallest(space, predicate) is not None
    except Undecided:
        return True
