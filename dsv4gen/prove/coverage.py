"""Proof (b): an ordered table of paths (or buckets) takes every shape, within domains, with no dead row.

The first path whose `prefer` holds is chosen. `domain` says where the kernel is correct, `prefer` where it is
wanted, so each prefer must imply its domain. Buckets are rows whose domain is everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TypeVar

from dsv4gen.base.errors import ExpressionError, Place, ProofError, raise_all
from dsv4gen.base.expression_json import Value
from dsv4gen.prove.defined import both, definedness, first_undefined, negated
from dsv4gen.prove.expressions import Expr
from dsv4gen.prove.nodes import FALSE, TRUE, Node, kind_of
from dsv4gen.prove.records import CoverageProof
from dsv4gen.prove.search import Undecided, exists, smallest
from dsv4gen.prove.space import Axis, Space, check_expression, show, space_of

T = TypeVar("T")


@dataclass(frozen=True)
class PathRule:
    """One row of a table."""

    name: str
    domain: Expr
    prefer: Expr

    @classmethod
    def bucket(cls, when: Expr) -> PathRule:
        """The row of a bucket, named after its predicate."""
        return cls(str(when), Expr.of(True), when)


def prove_coverage(
    table: str,
    paths: Sequence[PathRule],
    axes: Sequence[Axis],
    constants: Mapping[str, Value] | None = None,
    *,
    choices: Mapping[str, Sequence[Value]] | None = None,
    noun: str = "path",
    place: Place | None = None,
) -> CoverageProof:
    """Proof over every shape of `axes` and every combination of `choices` (options); `constants` are fixed.

    A row must be chosen for some shape and some combination; all else must hold for every combination.

    Raises:
        ProofError: a shape that no path takes, a prefer outside its domain, a path that is never chosen, a
            part without a value, or a question the solver cannot decide; `Problems` when there are several.
        ExpressionError: an unknown name, or a predicate that is not one.
    """
    known, options = constants or {}, choices or {}
    _check_rows(table, paths, noun, place)
    for path in paths:
        for predicate in (path.domain, path.prefer):
            check_expression(predicate, axes, (*known, *options))
    space = space_of(axes, known, place)
    cases = [
        _Case(table, noun, place, space, paths, known, dict(zip(options, values, strict=True)))
        for values in product(*options.values())
    ]
    raise_all(next((errors for case in cases if (errors := list(case.errors()))), []))
    raise_all(_dead_rows(table, noun, paths, cases))
    used = space.relevant([name for path in paths for name in (*path.domain.names, *path.prefer.names)])
    names = tuple(path.name for path in paths)
    return CoverageProof(table, names, tuple(str(axis) for axis in used.axes), noun)


def prove_buckets(
    table: str,
    whens: Iterable[Expr],
    axes: Sequence[Axis],
    constants: Mapping[str, Value] | None = None,
    *,
    choices: Mapping[str, Sequence[Value]] | None = None,
    place: Place | None = None,
) -> CoverageProof:
    """The same proof for an ordered list of bucket predicates."""
    rules = [PathRule.bucket(when) for when in whens]
    return prove_coverage(table, rules, axes, constants, choices=choices, noun="bucket", place=place)


def _check_rows(table: str, paths: Sequence[PathRule], noun: str, place: Place | None) -> None:
    if not paths:
        raise ProofError(f"{table} has no {noun}", place=place, remedy=f"add a {noun} that takes every shape")
    for position, path in enumerate(paths):
        if noun == "path" and any(path.name == earlier.name for earlier in paths[:position]):
            raise ProofError(f"{table}: path '{path.name}' is declared twice", place=path.prefer.place or place)


def _dead_rows(table: str, noun: str, paths: Sequence[PathRule], cases: Sequence[_Case]) -> Iterator[ProofError]:
    for row, path in enumerate(paths):
        if any(case.is_chosen(row) for case in cases):
            continue
        if any(case.is_preferred(row) for case in cases):
            why, remedy = (
                f"earlier {noun}s take every shape it prefers",
                f"move it up, or remove it from {table}",
            )
        else:
            why, remedy = "no declared shape fulfils it", f"widen it, or remove it from {table}"
        message = f"{table}: {noun} '{path.name}' is never chosen: {why}"
        yield ProofError(message, place=path.prefer.place, remedy=remedy)


class _Case:
    """The table under one combination of options."""

    def __init__(
        self,
        table: str,
        noun: str,
        place: Place | None,
        space: Space,
        paths: Sequence[PathRule],
        constants: Mapping[str, Value],
        picked: Mapping[str, Value],
    ) -> None:
        self._table = table
        self._noun = noun
        self._place = place
        self._space = space
        self._paths = paths
        self._picked = picked
        values = {**constants, **picked}
        self._domains = [_predicate(path.domain, values) for path in paths]
        self._prefers = [_predicate(path.prefer, values) for path in paths]

    def errors(self) -> Iterator[ProofError]:
        """Everything wrong but dead rows."""
        for row, path in enumerate(self._paths):
            error = self._undefined(row, path) or self._outside(row, path)
            if error is not None:
                yield error
        gap = self._decided(partial(smallest, self._space, self._before(len(self._paths))), self._place)
        if gap is not None:
            message = f"{self._table}: no {self._noun} takes {self._at(gap)}"
            remedy = f"widen a {self._noun}, or end the table with one that always holds"
            yield ProofError(message, place=self._paths[-1].prefer.place or self._place, remedy=remedy)

    def is_preferred(self, row: int) -> bool:
        """Whether some shape fulfils the row's prefer."""
        return self._decided(partial(exists, self._space, self._prefers[row]), self._paths[row].prefer.place)

    def is_chosen(self, row: int) -> bool:
        """Whether the row is the first that holds for some shape."""
        reached = both(self._prefers[row], self._before(row))
        return self._decided(partial(exists, self._space, reached), self._paths[row].prefer.place)

    def _before(self, row: int) -> Node:
        """That no earlier row holds."""
        return both(TRUE, *(negated(prefer) for prefer in self._prefers[:row]))

    def _preferred(self, row: int) -> Node:
        """That the row's prefer has a value and holds, whatever earlier rows say."""
        return both(definedness(self._prefers[row]), self._prefers[row])

    def _undefined(self, row: int, path: PathRule) -> ProofError | None:
        questions = (
            (path.prefer, self._prefers[row], self._before(row)),
            (path.domain, self._domains[row], self._preferred(row)),
        )
        for expression, node, given in questions:
            found = self._decided(partial(first_undefined, self._space, node, given), expression.place)
            if found is not None:
                where = f"{self._table}: {self._noun} '{path.name}'"
                message = f"{where}: '{found.part}' {found.mistake} at {self._at(found.shape)}"
                return ProofError(message, place=expression.place or self._place)
        return None

    def _outside(self, row: int, path: PathRule) -> ProofError | None:
        domain, prefer = self._domains[row], self._prefers[row]
        outside = FALSE if domain == prefer else both(self._preferred(row), negated(domain))
        shape = self._decided(partial(smallest, self._space, outside), path.prefer.place)
        if shape is None:
            return None
        message = f"{self._table}: {self._noun} '{path.name}' prefers {self._at(shape)}, outside its domain"
        return ProofError(f"{message} '{path.domain}'", place=path.prefer.place or self._place)

    def _at(self, shape: Mapping[str, Value]) -> str:
        return show({**self._picked, **shape}) or "any shape"

    def _decided(self, question: Callable[[], T], place: Place | None) -> T:
        try:
            return question()
        except Undecided:
            raise ProofError(
                f"{self._table}: the solver cannot decide this {self._noun} within its budget",
                place=place or self._place,
                remedy="write the predicate without products of axes, or bound the axes",
            ) from None


def _predicate(expression: Expr, values: Mapping[str, Value]) -> Node:
    node = expression.substitute(values).node
    if kind_of(node) != "truth value":
        raise ExpressionError(f"'{expression}' is not a predicate", place=expression.place)
    return node
