"""The shapes a kernel may meet: bounded axes, some of whose bounds read other axes (`seq_len <= width`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dsv4gen.base.errors import ExpressionError, Place, ProofError
from dsv4gen.base.expression_json import Value
from dsv4gen.prove.expressions import Expr
from dsv4gen.prove.intervals import Bounds, bounds_of


@dataclass(frozen=True)
class Axis:
    """A dimension and its inclusive bounds, numbers or expressions of other axes."""

    name: str
    minimum: Expr
    maximum: Expr

    @classmethod
    def of(cls, name: str, minimum: int | str | Expr, maximum: int | str | Expr) -> Axis:
        """An axis whose bounds are numbers, expressions or their spec text."""
        return cls(name, _bound(minimum), _bound(maximum))

    @property
    def reads(self) -> set[str]:
        """The names its bounds read."""
        return {*self.minimum.names, *self.maximum.names}

    def __str__(self) -> str:
        return f"{self.name} {self.minimum}..{self.maximum}"


@dataclass(frozen=True)
class Space:
    """All shapes of `axes`; made by `space_of`, which checks the axes and puts constants in.

    `ordered` lists the axes so that bounds read earlier ones only; `ranges` bounds each axis on its own.
    """

    axes: tuple[Axis, ...]
    ordered: tuple[Axis, ...] = field(compare=False)
    ranges: Mapping[str, Bounds] = field(compare=False)

    def relevant(self, names: Sequence[str]) -> Space:
        """The space of the axes that `names` and, in turn, their bounds read."""
        chosen: set[str] = set()
        pending = set(names)
        while pending:
            chosen |= pending
            pending = {name for axis in self.axes if axis.name in pending for name in axis.reads} - chosen
        return Space(
            tuple(axis for axis in self.axes if axis.name in chosen),
            tuple(axis for axis in self.ordered if axis.name in chosen),
            {name: bounds for name, bounds in self.ranges.items() if name in chosen},
        )

    def corner(self, *, largest: bool) -> dict[str, int]:
        """The shape with each axis at its largest (smallest) value, given those its bounds read."""
        shape: dict[str, int] = {}
        for axis in self.ordered:
            shape[axis.name] = (axis.maximum if largest else axis.minimum).evaluate(shape)
        return {axis.name: shape[axis.name] for axis in self.axes}

    def completed(self, shape: Mapping[str, int]) -> dict[str, int]:
        """`shape` with the smallest value for the axes it lacks."""
        full = dict(shape)
        for axis in self.ordered:
            if axis.name not in full:
                full[axis.name] = axis.minimum.evaluate(full)
        return {axis.name: full[axis.name] for axis in self.axes}


def space_of(axes: Sequence[Axis], constants: Mapping[str, Value], place: Place | None = None) -> Space:
    """The space of `axes` with `constants` in their bounds.

    Raises:
        ProofError: an axis declared twice, without values, or whose bounds go in a circle.
        ExpressionError: a bound that reads an unknown name.
    """
    names = [axis.name for axis in axes]
    closed = []
    for axis in axes:
        if names.count(axis.name) > 1 or axis.name in constants:
            raise ProofError(f"'{axis.name}' is declared twice, as an axis and again", place=place)
        for bound in (axis.minimum, axis.maximum):
            others = [other for other in axes if other.name != axis.name]
            check_expression(bound, others, constants)
        closed.append(
            Axis(axis.name, axis.minimum.substitute(constants), axis.maximum.substitute(constants)),
        )
    return _sorted_space(tuple(closed), place)


def check_expression(expression: Expr, axes: Sequence[Axis], known: Iterable[str]) -> None:
    """Refuse unknown names, and axes used as anything but numbers.

    Raises:
        ExpressionError: at the name (`Problems` for several unknown names).
    """
    names = [axis.name for axis in axes]
    expression.check_names((*names, *known))
    for name, kind in expression.kinds.items():
        if name in names and kind != "number":
            message = f"axis '{name}' is a number, '{expression}' uses it as a {kind}"
            raise ExpressionError(message, place=expression.place)


def show(shape: Mapping[str, Value]) -> str:
    """A shape as a user types it: `batch=1 width=16385`."""
    return " ".join(f"{name}={_plain(value)}" for name, value in shape.items())


def _plain(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bound(value: int | str | Expr) -> Expr:
    return Expr.parse(value) if isinstance(value, str) else Expr.of(value)


def _sorted_space(axes: tuple[Axis, ...], place: Place | None) -> Space:
    ranges: dict[str, Bounds] = {}
    ordered: list[Axis] = []
    waiting = list(axes)
    while waiting:
        ready = next((axis for axis in waiting if axis.reads <= ranges.keys()), None)
        if ready is None:
            names = ", ".join(axis.name for axis in waiting)
            raise ProofError(f"the bounds of {names} depend on each other", place=place)
        waiting.remove(ready)
        ordered.append(ready)
        ranges[ready.name] = _range(ready, ranges, place)
    return Space(axes, tuple(ordered), ranges)


def _range(axis: Axis, ranges: Mapping[str, Bounds], place: Place | None) -> Bounds:
    low, high = bounds_of(axis.minimum.node, ranges), bounds_of(axis.maximum.node, ranges)
    where = axis.maximum.place or axis.minimum.place or place
    if low is None or high is None:
        raise ProofError(f"the bounds of axis '{axis}' have no least or largest value", place=where)
    if low[0] > high[1]:
        raise ProofError(f"axis '{axis}' has no values", place=where)
    return low[0], high[1]
