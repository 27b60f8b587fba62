"""Spec text -> expressions with target facts and constants folded in, errors placed at the spec's line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dsv4gen.base.errors import Place
from dsv4gen.prove import Expr
from dsv4gen.spec import FamilySpec, Loaded
from dsv4gen.target import TargetRecord

#: names whose values only the running device knows: units of the device, and XCDs that share one L2 each
RUNTIME_NAMES = frozenset(("units", "xcds"))


class Reader:
    """Parses the expressions of one family for one target."""

    def __init__(self, loaded: Loaded[FamilySpec], record: TargetRecord) -> None:
        self.loaded = loaded
        self.record = record
        self.spec = loaded.model
        self._base = {**self.spec.axes, **self.spec.options, **{name: None for name in RUNTIME_NAMES}}

    def place(self, *keys: str | int) -> Place:
        """Where the spec says it."""
        return self.loaded.place(*keys)

    def raw(self, text: str, *keys: str | int, extra: Iterable[str] = ()) -> Expr:
        """The expression as written, names checked; facts and constants still by name.

        Raises:
            ExpressionError: outside the language, or an unknown name.
        """
        expr = Expr.parse(text, place=self.place(*keys))
        expr.check_names({*self._base, *self.spec.constants, *self.record.facts, *extra})
        return expr

    def expr(self, text: str, *keys: str | int, extra: Iterable[str] = ()) -> Expr:
        """The expression with facts and constants substituted and folded.

        Raises:
            ExpressionError: outside the language, or an unknown name.
            ProofError: a fact that is only inferred, and so may carry no decision.
        """
        expr = self.raw(text, *keys, extra=extra)
        facts = {name: self.record.proof_fact(name) for name in expr.names if name in self.record.facts}
        return expr.substitute({**facts, **self.spec.constants})


def with_tile(expr: Expr, tile: Mapping[str, int]) -> Expr:
    """The expression for one tile."""
    return expr.substitute(dict(tile))
