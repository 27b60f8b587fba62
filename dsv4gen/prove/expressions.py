"""`Expr`: one spec expression, parsed once and used in proofs, on the host (JSON) and on the device (C++).

    Expr.parse("seq_len <= 8 * block_threads").substitute({"block_threads": 512}).to_cpp()
    -> "seq_len <= 4096u"

Language: integers, true, false, names (dotted for facts), 'choices' compared by == and !=, + - * // %
(flooring as in Python), ** with a constant exponent or of 2, comparisons (chained too), and, or, not,
`a if c else b`, min, max, ceil_div, round_up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from dsv4gen.base.errors import ExpressionError, Place, did_you_mean, raise_all
from dsv4gen.base.expression_json import Evaluator, Value, compile_json
from dsv4gen.prove import cpp, folding, nodes, parse, printers, symbolic, tokens
from dsv4gen.prove.intervals import Bounds, Ranges, bounds_of

T = TypeVar("T")


@dataclass(frozen=True)
class Expr:
    """A spec expression; equality and hash look at the tree only, not at the place.

    `place` is the position of the text's first character in its file.
    """

    node: nodes.Node
    place: Place | None = field(default=None, compare=False)

    @classmethod
    def parse(cls, text: str, place: Place | None = None) -> Expr:
        """The expression a spec writes as `text`.

        Raises:
            ExpressionError: anything outside the language, at the offending token.
        """
        if not isinstance(text, str):
            raise ExpressionError(f"{text!r} is not text", place=place, remedy="quote the expression")
        try:
            return cls(parse.parse(text), place)
        except tokens.Fault as fault:
            where = _offset(place, fault.offset)
            raise ExpressionError(f"{fault.message}{_excerpt(text)}", place=where, remedy=fault.remedy) from None

    @classmethod
    def of(cls, value: Value | Expr, place: Place | None = None) -> Expr:
        """A constant as an expression; text is a choice. An expression is returned as it is."""
        return value if isinstance(value, Expr) else cls(nodes.literal(value), place)

    @classmethod
    def from_json(cls, tree: Any, place: Place | None = None) -> Expr:
        """The expression of a nested list made by `to_json`.

        Raises:
            ExpressionError: a malformed tree, or operands of the wrong kind.
        """
        compile_json(tree)
        expression = cls(nodes.from_json(tree), place)
        expression.kinds  # noqa: B018 - raises for operands of the wrong kind
        return expression

    @property
    def names(self) -> tuple[str, ...]:
        """The names it reads, in order of first appearance."""
        return nodes.names_in(self.node)

    @property
    def kinds(self) -> Mapping[str, nodes.Kind]:
        """number, truth value or choice for every name whose use decides it."""
        try:
            return nodes.name_kinds(self.node)
        except nodes.KindFault as fault:
            raise ExpressionError(fault.message, place=_offset(self.place, fault.offset or 0)) from None

    @property
    def constant(self) -> Value | None:
        """The value of a literal, None when anything is left to evaluate."""
        return nodes.literal_value(self.node)

    def check_names(self, known: Iterable[str]) -> None:
        """Refuse names that are not in `known`.

        Raises:
            ExpressionError: an unknown name, at its position; `Problems` when there are several.
        """
        allowed = dict.fromkeys(known)
        unknown: dict[str, nodes.Name] = {}
        for part in nodes.walk(self.node):
            if isinstance(part, nodes.Name) and part.name not in allowed:
                unknown.setdefault(part.name, part)
        raise_all(
            ExpressionError(
                f"unknown name '{name}'{did_you_mean(name, allowed)}{_excerpt(str(self))}",
                place=_offset(self.place, part.offset or 0),
                remedy=f"names known here: {_known(name, allowed)}",
            )
            for name, part in unknown.items()
        )

    def evaluate(self, env: Mapping[str, Value]) -> Any:
        """The value under `env`: an int, a bool, or a choice's text.

        Raises:
            ExpressionError: a name without a value or with one of the wrong kind, a division by zero,
                an exponent out of range.
        """
        for name, kind in self.kinds.items():
            if name in env:
                self._check_kind(name, env[name], kind)
        return self._placed(lambda: _compiled(self.node)(env))

    def substitute(self, values: Mapping[str, Value | Expr]) -> Expr:
        """With names replaced and constants folded.

        Raises:
            ExpressionError: a value of the wrong kind (a fact that is None on this target included).
        """
        chosen = {name: values[name] for name in self.names if name in values}
        for name, value in chosen.items():
            self._check_kind(name, value, self.kinds.get(name))
        new = {name: Expr.of(value).node for name, value in chosen.items()}
        result = Expr(self._placed(lambda: folding.substitute(self.node, new)), self.place)
        result.kinds  # noqa: B018 - a name may now be used as two kinds
        return result

    def simplified(self, ranges: Ranges | None = None) -> Expr:
        """With constants folded; with ranges, comparisons that never change become true or false."""
        node = folding.fold(self.node) if ranges is None else folding.decide(self.node, ranges)
        return Expr(node, self.place)

    def bounds(self, ranges: Ranges) -> Bounds | None:
        """Smallest and largest value over `ranges`: sound, exact where monotone; None when not known."""
        return bounds_of(self.node, ranges)

    def __str__(self) -> str:
        """Canonical text in the spec language."""
        return printers.spec_text(self.node)

    def to_python(self) -> str:
        """As a Python expression (for stubs and reports; nothing evaluates it)."""
        return printers.python_text(self.node)

    def to_python_block(self, width: int, indent: int = 0) -> str:
        """The same in lines of up to `width` columns where calls allow it; the first starts at column `indent`."""
        return printers.python_block(self.node, width, indent)

    def to_json(self) -> Any:
        """The nested-list form that `dsv4gen.base.expression_json` evaluates."""
        return nodes.to_json(self.node)

    def to_cpp(self, ranges: Ranges | None = None) -> str:
        """As device C++ (see dsv4gen/prove/cpp.py for its words and helpers).

        Raises:
            ExpressionError: an unsubstituted fact, or values not proven to fit 64 bits.
        """
        return self._placed(lambda: cpp.cpp_text(self.node, cpp.choose_word(self.node, ranges)))

    def cpp_word(self, ranges: Ranges | None = None) -> cpp.Word:
        """The C++ word (`u32` or `i64`) that `to_cpp` computes in, and the type of a numeric result."""
        return self._placed(lambda: cpp.choose_word(self.node, ranges))

    def to_sympy(self) -> Any:
        """As a sympy formula over non-negative integer symbols."""
        return self._placed(lambda: symbolic.sympy_term(self.node))

    def to_z3(self, variables: Mapping[str, Any], ranges: Ranges | None = None) -> Any:
        """As a z3 term over the given variables."""
        return self._placed(lambda: symbolic.z3_term(self.node, variables, ranges))

    def _check_kind(self, name: str, value: object, kind: nodes.Kind | None) -> None:
        if isinstance(value, Expr) and nodes.kind_of(value.node) is None:
            return
        found = nodes.kind_of(value.node) if isinstance(value, Expr) else _kind_of_value(value)
        if found is None:
            message = f"'{name}' has no usable value here: {value!r}{_excerpt(str(self))}"
            raise ExpressionError(message, place=self.place)
        if kind is not None and found != kind:
            message = f"'{name}' is the {found} {value}, a {kind} is needed{_excerpt(str(self))}"
            raise ExpressionError(message, place=self.place)

    def _placed(self, work: Callable[[], T]) -> T:
        """Run `work` and give its errors this expression's place."""
        try:
            return work()
        except ExpressionError as error:
            if error.place is not None or self.place is None:
                raise
            raise ExpressionError(error.message, place=self.place, remedy=error.remedy) from None


@lru_cache(maxsize=4096)
def _compiled(node: nodes.Node) -> Evaluator:
    return compile_json(nodes.to_json(node))


def _kind_of_value(value: object) -> nodes.Kind | None:
    if isinstance(value, bool):
        return "truth value"
    if isinstance(value, str):
        return "choice"
    return "number" if isinstance(value, int) else None


def _offset(place: Place | None, offset: int) -> Place | None:
    if place is None or place.column is None:
        return place
    return Place(place.file, place.line, place.column + offset)


def _known(name: str, allowed: Iterable[str]) -> str:
    """What could be written in a name's place: plain names, or for a dotted one the facts of its group."""
    names = tuple(allowed)
    facts = [one for one in names if "." in one]
    group = [one for one in facts if "." in name and one.partition(".")[0] == name.partition(".")[0]]
    shown = group or [one for one in names if "." not in one] or facts
    left = len(facts) - len([one for one in shown if "." in one])
    return ", ".join(shown) + (f", and {left} facts such as {facts[-1]} (docs/specs.md)" if left else "")


def _excerpt(text: str) -> str:
    shown = " ".join(text.split())
    if not shown:
        return ""
    return f' in "{shown if len(shown) <= 80 else shown[:77] + "..."}"'
