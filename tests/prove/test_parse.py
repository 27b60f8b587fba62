"""Spec text outside the language is an ExpressionError at the offending token, whatever the text is."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsv4gen.base.errors import ExpressionError, Place, Problems
from dsv4gen.prove import Expr
from dsv4gen.prove.printers import spec_text
from tests.prove import trees

PLACE = Place("specs/families/topk.yaml", 41, 20)


def refusal(text: str) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        Expr.parse(text, PLACE)
    return caught.value


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("", 0, "the expression is empty"),
        ("   ", 0, "the expression is empty"),
        ("a = b", 2, "unexpected '='"),
        ("a / b", 2, "unexpected '/'"),
        ("a & b", 2, "unexpected '&'"),
        ("a <<2", 4, "unexpected shift operator"),
        ("a @ b", 2, "unexpected '@'"),
        ("a; b", 1, "unexpected ';'"),
        ("[a]", 0, "unexpected '['"),
        ("(a := 3)", 3, "unexpected ':'"),
        ("a\\\nb", 1, "unexpected '\\\\'"),
        ("größe", 2, "unexpected 'ö'"),
        ("a\x00b", 1, "unexpected '\\x00'"),
        ("a # c", 2, "unexpected '#'"),
        ("a b", 2, "cannot read the expression at 'b'"),
        ("(a", 1, "the expression ends after 'a', a ')' is missing"),
        ("a)", 1, "')' without '('"),
        ("a +", 2, "the expression ends after '+'"),
        ("a and", 2, "the expression ends after 'and'"),
        ("a if b", 0, "cannot read the expression at 'a'"),
        ("a, b", 0, "unexpected 'a'"),
        ("()", 0, "unexpected '('"),
        ("+a", 0, "unexpected unary '+'"),
        ("lambda: 1", 0, "unexpected 'lambda'"),
        ("a is b", 2, "unexpected 'is'"),
        ("a in b", 2, "unexpected 'in'"),
        ("True", 0, "unexpected 'True'"),
        ("x or None", 5, "unexpected 'None'"),
        ("__import__('os')", 0, "'__import__' is not a name"),
        ("a.__class__", 0, "'a.__class__' is not a name"),
        ("a..b", 0, "'a..b' is not a name"),
        ("(a).b", 3, "unexpected '.'"),
        ("open(1, 2)", 0, "unknown function 'open'"),
        ("a.b(c, d)", 0, "unknown function 'a.b'"),
        ("1 + mn(a, b)", 4, "unknown function 'mn' (did you mean 'min'?)"),
        ("min", 0, "function 'min' is used as a name"),
        ("min(a)", 0, "min takes two or more operands, not 1"),
        ("ceil_div(a, b, c)", 0, "ceil_div takes two operands, not 3"),
        ("min(*a, b)", 4, "unexpected '*'"),
        ("min(a, b, **c)", 0, "min takes plain operands only"),
        ("2**10**10", 3, "exponent 10000000000 is outside 0..62"),
        ("a ** -1", 5, "exponent -1 is outside 0..62"),
        ("a ** b", 5, "only 2 can be raised to an exponent that is not constant"),
        ("true + 1", 0, "true is a truth value where a number is needed"),
        ("1 + (a < b)", 5, "the result of '<' is a truth value where a number is needed"),
        ("a and 3", 0, "3 is a number where a truth value is needed"),
        ("k < 'dual'", 0, "'dual' is a choice where a number is needed"),
        ("mode == 'dual' and mode > 3", 19, "'mode' is used as a choice and as a number"),
        ("k + (1 if k else 2)", 10, "'k' is used as a number and as a truth value"),
        ("'a' 'b'", 4, "'b' follows another quoted choice"),
        ("mode == 'a b'", 8, "'a b' is not a choice"),
        ("mode == 'a", 8, 'unexpected "\'"'),
        ("9" * 30, 0, "is beyond 64 bits"),
        ("9223372036854775808", 0, "9223372036854775808 is beyond 64 bits"),
    ],
)
def test_refused_at_the_token(text: str, offset: int, message: str) -> None:
    error = refusal(text)
    assert message in error.message
    assert error.place == Place(PLACE.file, 41, 20 + offset)


# Values that change type in YAML, written where an expression is wanted.
@pytest.mark.parametrize("text", ["0512", "1e6", "1e5", "1:4", "7.10", "9.0", "1_28", "-inf", "-.inf", ".nan", "0x1F"])
def test_numbers_that_are_not_plain_decimals(text: str) -> None:
    if text == "-inf":
        with pytest.raises(ExpressionError, match="unknown name 'inf'"):
            Expr.parse(text).check_names(["k"])
    else:
        refusal(text)


@pytest.mark.parametrize("value", [None, 5, True, 1.5, ["a"], {"a": 1}])
def test_other_yaml_types_are_not_expressions(value: object) -> None:
    with pytest.raises(ExpressionError, match="is not text"):
        Expr.parse(value, PLACE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "(" * 500 + "a" + ")" * 499,
        "(" * 300 + "a" + ")" * 300,
        "-" * 900 + "a",
        "not " * 240 + "a",
        "a" + "+a" * 400,
        "a" * 1001,
        "a" * 1_000_000,
        "((2**62)**62)**62 * " * 40 + "1",
        "2 ** " * 190 + "2",
    ],
)
def test_size_is_limited(text: str) -> None:
    try:
        expression = Expr.parse(text)
    except ExpressionError:
        return
    with pytest.raises(ExpressionError):
        expression.evaluate({"a": 1})


def test_chained_comparisons_cannot_explode() -> None:
    text = "a"
    for _ in range(30):
        text = f"(1 if 0<{text}<3 else 0)"
    assert len(text) < 1000
    assert "more than 1000 parts" in refusal(text).message


def test_places_without_a_column_and_without_a_place() -> None:
    with pytest.raises(ExpressionError) as caught:
        Expr.parse("a / b", Place("x.yaml"))
    assert caught.value.place == Place("x.yaml")
    with pytest.raises(ExpressionError) as caught:
        Expr.parse("a / b")
    assert caught.value.place is None


def test_unknown_names_are_all_reported_at_their_place() -> None:
    expression = Expr.parse("seq_len <= 8 * blok_threads + qq", PLACE)
    with pytest.raises(Problems) as caught:
        expression.check_names(["seq_len", "block_threads"])
    first, second = caught.value.errors
    assert "unknown name 'blok_threads' (did you mean 'block_threads'?)" in first.message
    assert first.place == Place(PLACE.file, 41, 35)
    assert "'qq'" in second.message
    assert second.place == Place(PLACE.file, 41, 50)
    expression.check_names(["seq_len", "blok_threads", "qq"])


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("widht", "width, units, and 3 facts such as wave.launch (docs/specs.md)"),
        ("cluster.remote", "cluster.supported, cluster.remote_shared, and 1 facts such as wave.launch (docs/specs.md)"),
        ("clustr.supported", "width, units, and 3 facts such as wave.launch (docs/specs.md)"),
    ],
)
def test_names_that_are_known_are_told_without_all_facts(text: str, known: str) -> None:
    allowed = ["width", "units", "cluster.supported", "cluster.remote_shared", "wave.launch"]
    with pytest.raises(ExpressionError) as caught:
        Expr.parse(text).check_names(allowed)
    assert caught.value.remedy == f"names known here: {known}"


def test_the_same_text_at_two_places() -> None:
    other = Place("other.yaml", 1, 1)
    assert Expr.parse("a + zz", PLACE) == Expr.parse("a + zz", other)
    for place in (PLACE, other):
        with pytest.raises(ExpressionError) as caught:
            Expr.parse("a + zz", place).check_names(["a"])
        assert caught.value.place == Place(place.file, place.line, (place.column or 0) + 4)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0 < a<=b", "0 < a and a <= b"),
        ("(a*b)*c - (d-e)", "a * b * c - (d - e)"),
        ("not (a and b)", "not (a and b)"),
        ("-a**2", "-a ** 2"),
        ("(-a)**2", "(-a) ** 2"),
        ("(a if c else b) + 1", "(a if c else b) + 1"),
        ("a if c else b if d else e", "a if c else b if d else e"),
        ('mode == "dual"', "mode == 'dual'"),
        (" a +\n  b\n", "a + b"),
        ("cluster.remote_shared", "cluster.remote_shared"),
        ("(a < b) == (c < d)", "(a < b) == (c < d)"),
        ("a - -5", "a - -5"),
    ],
)
def test_canonical_text(text: str, canonical: str) -> None:
    assert str(Expr.parse(text)) == canonical
    assert Expr.parse(canonical) == Expr.parse(text)


_WORDS = st.sampled_from(
    ["a", "b.c", "1", "62", "2", "**", "//", "%", "<", "==", "and", "not", "if", "else", "(", ")", ",", "min"]
)
_SIGNS = st.sampled_from(
    ["'x'", "true", " ", "-", "ceil_div", "is", "*", "=", ".", "[", "0x1", "\n", "\t", "lambda", ":", "é", "\0"]
)
_PIECES = st.one_of(_WORDS, _SIGNS)


@given(st.one_of(st.text(max_size=60), st.lists(_PIECES, max_size=25).map(" ".join), st.lists(_PIECES).map("".join)))
@settings(max_examples=1500, deadline=None)
@example("if" * 400)
@example("\udc80")
@example("'\n'")
def test_parsing_gives_an_expression_or_an_expression_error(text: str) -> None:
    try:
        expression = Expr.parse(text, PLACE)
    except ExpressionError as error:
        assert error.place is not None and error.place.column is not None
        assert 20 <= error.place.column <= 20 + max(len(text) - 1, 0)
    else:
        assert Expr.parse(str(expression)) == expression


@given(st.integers(0, 2**32), st.integers(0, 80), st.characters(codec="utf-8"))
@settings(max_examples=500, deadline=None)
def test_one_wrong_character_in_a_right_expression(seed: int, position: int, character: str) -> None:
    text = spec_text(trees.truth(random.Random(seed), 3))
    broken = text[:position] + character + text[position + 1 :]
    with suppress(ExpressionError):
        Expr.parse(broken)


@given(st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_evaluation_fails_only_with_an_expression_error(seed: int) -> None:
    source = random.Random(seed)
    expression = Expr(trees.number(source, 3))
    values: dict[str, Any] = {name: source.choice([0, -1, 63, 10**9]) for name in trees.RANGES} | {
        "flag": True,
        "mode": "dual",
    }
    try:
        expression.evaluate(values)
    except ExpressionError as error:
        assert "division by zero" in error.message or "exponent" in error.message
