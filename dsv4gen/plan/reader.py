"""Spec text -> expressions with target facts and constants folded in, errors placed at the spec's line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dsv4gen.base.errors import ExpressionError, Place
from dsv4gen.base.expression_json import Value
from dsv4gen.base.runtime_facts import RUNTIME_FACTS
from dsv4gen.prove import Expr
from dsv4gen.spec import FamilySpec, Loaded, TuningSpec
from dsv4gen.target import TargetRecord


class Reader:
    """Parses the expressions of one family for one target."""

    def __init__(
        self, loaded: Loaded[FamilySpec], record: TargetRecord, tuning: Loaded[TuningSpec] | None = None
    ) -> None:
        self.loaded = loaded
        self.record = record
        self.tuning = tuning
        self._text: Loaded[FamilySpec] | Loaded[TuningSpec] = loaded
        self.spec = loaded.model
        self._base = (*self.spec.axes, *self.spec.options, *RUNTIME_FACTS)

    def place(self, *keys: str | int) -> Place:
        """Where the spec says it."""
        return self._text.place(*keys)

    def of_tuning(self) -> Reader:
        """A reader of the same names whose text lies in the tuning file."""
        reader = Reader(self.loaded, self.record, self.tuning)
        assert self.tuning is not None
        reader._text = self.tuning
        return reader

    def raw(self, text: str, *keys: str | int, extra: Iterable[str] = ()) -> Expr:
        """The expression as written, names checked; facts and constants still by name.

        Raises:
            ExpressionError: outside the language, or an unknown name.
        """
        expr = Expr.parse(text, place=self.place(*keys))
        expr.check_names([*self._base, *extra, *self.spec.constants, *self.record.facts])
        return expr

    def expr(self, text: str, *keys: str | int, extra: Iterable[str] = ()) -> Expr:
        """The expression with facts and constants substituted and folded.

        Raises:
            ExpressionError: outside the language, or an unknown name.
            ProofError: a fact that is only inferred, and so may carry no decision.
        """
        expr = self.raw(text, *keys, extra=extra)
        return expr.substitute(self.values(expr))

    def values(self, expr: Expr) -> dict[str, Value]:
        """The constants and facts that an expression reads.

        Raises:
            ProofError: a fact that is only inferred, and so may carry no decision.
        """
        names = expr.names
        constants = {name: self.spec.constants[name] for name in names if name in self.spec.constants}
        return {**constants, **{name: self._fact(expr, name) for name in names if name in self.record.facts}}

    def _fact(self, expr: Expr, name: str) -> Value:
        value = self.record.proof_fact(name)
        if isinstance(value, (int, str)):
            return value
        raise ExpressionError(f"the fact {name} is {value!r}, not a number, a choice or a truth", place=expr.place)


def with_tile(expr: Expr, tile: Mapping[str, int]) -> Expr:
    """The expression for one tile."""
    return expr.substitute(dict(tile))
