"""Proof (c): an index expression or a size fits the integer type it is computed in, over every declared shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dsv4gen.base.errors import ExpressionError, Place, ProofError
from dsv4gen.base.expression_json import Value
from dsv4gen.prove.defined import first_undefined
from dsv4gen.prove.expressions import Expr
from dsv4gen.prove.intervals import bounds_of
from dsv4gen.prove.nodes import Apply, Node, Number, kind_of, names_in, walk
from dsv4gen.prove.printers import spec_text
from dsv4gen.prove.records import WidthProof
from dsv4gen.prove.search import Undecided, smallest
from dsv4gen.prove.space import Axis, Space, check_expression, show, space_of


def prove_width(
    name: str,
    expr: Expr,
    axes: Sequence[Axis],
    bits: int,
    signed: bool = True,
    *,
    constants: Mapping[str, Value] | None = None,
    place: Place | None = None,
) -> WidthProof:
    """Proof that `expr` over `axes` (with `constants`: tiles, facts) fits `bits` bits.

    Raises:
        ProofError: it does not (with the smallest shape that shows it), it has no value at some shape, or the
            solver cannot tell.
        ExpressionError: an unknown name.
    """
    known = constants or {}
    where = expr.place or place
    check_expression(expr, axes, known)
    space = space_of(axes, known, place)
    node = expr.substitute(known).node
    if kind_of(node) not in ("number", None):
        raise ExpressionError(f"{name}: '{expr}' is not a number", place=where)
    limits = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    type_name = f"{'i' if signed else 'u'}{bits}"
    try:
        _check_defined(name, space, node, where)
        for part in walk(node):
            if isinstance(part, (Apply, Number)) and kind_of(part) == "number":
                _check_part(_Part(name, part, part == node, type_name, where), space, limits)
        bounds, exact = _extremes(space, node, limits)
    except Undecided:
        message = f"{name}: cannot decide whether '{expr}' fits {type_name} within the solver's budget"
        raise ProofError(message, place=where, remedy="write it without products of axes, or bound it") from None
    return WidthProof(name, str(expr), *bounds, limits[1], type_name, exact)


def prove_size(
    name: str,
    expr: Expr,
    axes: Sequence[Axis],
    *,
    constants: Mapping[str, Value] | None = None,
    place: Place | None = None,
) -> WidthProof:
    """Proof that a number of bytes over `axes` is never negative and fits 64 bits.

    Raises:
        ProofError: it is or does not (with the smallest shape that shows it), it has no value at some shape, or the
            solver cannot tell.
        ExpressionError: an unknown name.
    """
    proof = prove_width(name, expr, axes, 64, constants=constants, place=place)
    if proof.smallest >= 0:
        return proof
    space = space_of(axes, constants or {}, place)
    node = expr.substitute(constants or {}).node
    shape = smallest(space, Apply("<", (node, Number(0))))
    if shape is None:
        return replace(proof, smallest=0)
    shape = space.relevant(names_in(node)).completed(shape)
    at = f" at {show(shape)}" if shape else ""
    raise ProofError(
        f"{name}: '{expr}' is {Expr(node).evaluate(shape)}{at}, but no memory has fewer than 0 bytes",
        place=expr.place or place,
        remedy="write max(0, ...) where there is none, or raise the bounds of an axis",
    )


def _check_defined(name: str, space: Space, node: Node, place: Place | None) -> None:
    undefined = first_undefined(space, node)
    if undefined is not None:
        message = f"{name}: '{undefined.part}' {undefined.mistake} at {show(undefined.shape)}"
        raise ProofError(message, place=place)


@dataclass(frozen=True)
class _Part:
    """A numeric part of the expression; all of them are computed in the type."""

    name: str
    node: Node
    whole: bool
    type: str
    place: Place | None

    def error(self, shape: Mapping[str, int], limit: int) -> ProofError:
        """The refusal of the part's value at `shape`."""
        value = Expr(self.node).evaluate(shape)
        subject = self.name if self.whole else f"{self.name}: its part '{spec_text(self.node)}'"
        at = f" at {show(shape)}" if shape else ""
        return ProofError(
            f"{subject} is {value}{at}, {'above' if value > limit else 'below'} {limit} ({self.type})",
            place=self.place,
            remedy="lower the bounds of an axis" + ("" if self.type == "i64" else ", or compute it in a wider type"),
        )


def _check_part(part: _Part, space: Space, limits: tuple[int, int]) -> None:
    bounds = bounds_of(part.node, space.ranges)
    if bounds is not None and limits[0] <= bounds[0] and bounds[1] <= limits[1]:
        return
    for operator, limit in ((">", limits[1]), ("<", limits[0])):
        shape = smallest(space, Apply(operator, (part.node, Number(limit))))
        if shape is not None:
            raise part.error(space.relevant(names_in(part.node)).completed(shape), limit)


def _extremes(space: Space, node: Node, limits: tuple[int, int]) -> tuple[tuple[int, int], bool]:
    """Smallest and largest value of a node known to fit, and whether they are exact."""
    bounds = bounds_of(node, space.ranges)
    if bounds is not None and limits[0] <= bounds[0] and bounds[1] <= limits[1]:
        return bounds, _is_met(space, node, bounds)
    high = _largest(space, node, *limits)
    low = -_largest(space, Apply("neg", (node,)), -high, -limits[0])
    return (low, high), True


def _largest(space: Space, node: Node, low: int, high: int) -> int:
    """The largest value of `node`, known to lie in low..high."""
    while low < high:
        middle = (low + high) // 2
        if smallest(space, Apply(">", (node, Number(middle)))) is None:
            high = middle
        else:
            low = middle + 1
    return low


def _is_met(space: Space, node: Node, bounds: tuple[int, int]) -> bool:
    """Whether the bounds are values at a corner of the space."""
    used = space.relevant(names_in(node))
    values = {Expr(node).evaluate(used.corner(largest=largest)) for largest in (True, False)}
    return set(bounds) <= values
