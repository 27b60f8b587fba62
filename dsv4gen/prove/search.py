"""Is there a shape that fulfils a predicate? Exact answers, within a fixed budget.

Order of the means, cheapest first: interval arithmetic; for questions that expect a yes, a few likely shapes;
z3 on integers with floor division; enumeration where there are few shapes. Shapes that are reported are the
smallest, axis by axis in declaration order, so that they do not depend on the solver's version.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, product
from typing import Any

from dsv4gen.base.errors import ExpressionError
from dsv4gen.base.expression_json import Evaluator, compile_json
from dsv4gen.prove.folding import decide
from dsv4gen.prove.nodes import FALSE, Apply, Name, Node, Number, names_in, to_json, walk
from dsv4gen.prove.space import Axis, Space
from dsv4gen.prove.symbolic import z3_term

#: shapes that may be enumerated when the solver gives up
ENUMERATION_MAX = 200_000
#: z3's work units for one question: the same on every machine, about half a second
SOLVER_UNITS = 3_000_000
#: making a found shape smaller takes many questions; each gets this part of the units
LOWERING_SHARE = 20
#: a second limit, for machines on which the units take long
SOLVER_MILLISECONDS = 20_000
#: likely shapes tried before the solver, and values per axis in them
GUESSES_MAX = 1500
GUESSES_PER_AXIS = 16

# z3's default context must not be used by two threads at once.
_SOLVER_LOCK = threading.Lock()


class Undecided(Exception):
    """Neither the solver within its budget nor enumeration could answer."""


def exists(space: Space, predicate: Node) -> bool:
    """Whether some shape fulfils the predicate.

    Raises:
        Undecided: the question is too hard.
    """
    return _exists(space, decide(predicate, space.ranges))


def smallest(space: Space, predicate: Node) -> dict[str, int] | None:
    """The smallest shape (of the axes the predicate needs) that fulfils it, or None when there is none.

    Raises:
        Undecided: the question is too hard.
    """
    found = _smallest(space, decide(predicate, space.ranges))
    return None if found is None else dict(found)


@lru_cache(maxsize=4096)
def _exists(space: Space, predicate: Node) -> bool:
    used = space.relevant(names_in(predicate))
    if predicate == FALSE:
        return False
    if _guess(used, predicate):
        return True
    return _smallest(space, predicate) is not None


@lru_cache(maxsize=4096)
def _smallest(space: Space, predicate: Node) -> tuple[tuple[str, int], ...] | None:
    """Cached by content, because the same question recurs on many targets."""
    if predicate == FALSE:
        return None
    used = space.relevant(names_in(predicate))
    try:
        with _SOLVER_LOCK:
            shape = _Question(used, predicate).smallest()
    except Undecided:
        shape = _enumerate(used, predicate)
    if shape is not None and not compile_json(to_json(predicate))(shape):
        raise Undecided
    return None if shape is None else tuple(shape.items())


def _guess(space: Space, predicate: Node) -> bool:
    """Whether one of a few likely shapes fulfils the predicate: corners and both sides of every constant."""
    names = [axis.name for axis in space.axes]
    inside = _inside(space, predicate)
    candidates = product(*(_likely_values(space, name, predicate) for name in names))
    try:
        return any(inside(dict(zip(names, values, strict=True))) for values in islice(candidates, GUESSES_MAX))
    except ExpressionError:
        return False


def _inside(space: Space, predicate: Node) -> Evaluator:
    """A test that a shape is in the space and fulfils the predicate."""
    parts = [predicate]
    for axis in space.axes:
        parts += [
            Apply("<=", (axis.minimum.node, Name(axis.name))),
            Apply("<=", (Name(axis.name), axis.maximum.node)),
        ]
    return compile_json(to_json(Apply("and", (*parts[1:], parts[0])) if len(parts) > 1 else predicate))


def _likely_values(space: Space, name: str, predicate: Node) -> list[int]:
    low, high = space.ranges[name]
    values = {low, min(low + 1, high), high}
    for part in walk(predicate):
        if isinstance(part, Number):
            near = (part.value - 1, part.value, part.value + 1)
            values.update(value for value in near if low <= value <= high)
    chosen = sorted(values)
    return chosen if len(chosen) <= GUESSES_PER_AXIS else [*chosen[: GUESSES_PER_AXIS - 1], high]


class _Question:
    """One question to z3; the caller holds the lock."""

    def __init__(self, space: Space, predicate: Node) -> None:
        import z3

        self._z3 = z3
        self._space = space
        self._variables = {axis.name: z3.Int(axis.name) for axis in space.axes}
        self._solver = z3.Solver()
        self._solver.set("timeout", SOLVER_MILLISECONDS)
        self._solver.set("rlimit", SOLVER_UNITS)
        for axis in space.axes:
            self._solver.add(self._term(axis.minimum.node) <= self._variables[axis.name])
            self._solver.add(self._variables[axis.name] <= self._term(axis.maximum.node))
        self._solver.add(self._term(predicate))

    def _term(self, node: Node) -> Any:
        return z3_term(node, self._variables, self._space.ranges)

    def smallest(self) -> dict[str, int] | None:
        """The smallest shape, or None when there is none; only small when the budget ends on the way.

        Raises:
            Undecided: z3 gave up on the question itself.
        """
        answer = self._solver.check()
        if answer == self._z3.unsat:
            return None
        if answer != self._z3.sat:
            raise Undecided
        shape = self._model()
        self._solver.set("rlimit", SOLVER_UNITS // LOWERING_SHARE)
        for axis in self._space.axes:
            shape = self._lower(axis.name, shape)
        return shape

    def _lower(self, name: str, shape: dict[str, int]) -> dict[str, int]:
        """Fix one axis at the smallest value it can have, given those fixed before."""
        low = self._space.ranges[name][0]
        while low < shape[name]:
            middle = (low + shape[name]) // 2
            answer = self._solver.check(self._variables[name] <= middle)
            if answer == self._z3.unknown:
                break
            if answer == self._z3.sat:
                shape = self._model()
            else:
                low = middle + 1
        self._solver.add(self._variables[name] == shape[name])
        return shape

    def _model(self) -> dict[str, int]:
        model = self._solver.model()
        return {
            name: int(model.eval(variable, model_completion=True).as_long())
            for name, variable in self._variables.items()
        }


def _enumerate(space: Space, predicate: Node) -> dict[str, int] | None:
    """The smallest shape that fulfils `predicate`, by trying all.

    Raises:
        Undecided: more than ENUMERATION_MAX shapes.
    """
    count = 1
    for low, high in space.ranges.values():
        count *= high - low + 1
    if count > ENUMERATION_MAX:
        raise Undecided
    holds = compile_json(to_json(predicate))
    names = [axis.name for axis in space.axes]
    keys = (tuple(shape[name] for name in names) for shape in _shapes(space.ordered) if holds(shape))
    best = min(keys, default=None)
    return None if best is None else dict(zip(names, best, strict=True))


def _shapes(axes: tuple[Axis, ...]) -> Iterator[dict[str, int]]:
    """All shapes of axes whose bounds read earlier ones only."""
    if not axes:
        yield {}
        return
    *before, last = axes
    for shape in _shapes(tuple(before)):
        for value in range(last.minimum.evaluate(shape), last.maximum.evaluate(shape) + 1):
            yield {**shape, last.name: value}
