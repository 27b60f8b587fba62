"""Evaluation, substitution, folding and the JSON form of spec expressions."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsv4gen.base.errors import ExpressionError, Place
from dsv4gen.base.expression_json import compile_json, evaluate_json, names_json
from dsv4gen.prove import Expr


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("a // 4", {"a": -5}, -2),
        ("a % 4", {"a": -5}, 3),
        ("ceil_div(a, 4)", {"a": -5}, -1),
        ("ceil_div(a, 4)", {"a": 9}, 3),
        ("round_up(a, 16)", {"a": 33}, 48),
        ("2 ** bits", {"bits": 20}, 1 << 20),
        ("a ** 3", {"a": 5}, 125),
        ("0 < a <= 4", {"a": 4}, True),
        ("mode != 'indices'", {"mode": "dual"}, True),
        ("true if a else false", {"a": False}, False),
        ("k > 0 and 8 // k > 1", {"k": 0}, False),
        ("8 // k if k > 0 else 7", {"k": 0}, 7),
        ("'x' if a else 'y'", {"a": False}, "y"),
    ],
)
def test_evaluation(text: str, values: dict[str, Any], expected: object) -> None:
    result = Expr.parse(text).evaluate(values)
    assert result == expected and type(result) is type(expected)


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("a // b", {"a": 1, "b": 0}, "division by zero"),
        ("a + width", {"a": 1, "widht": 3}, "no value for 'width' (did you mean 'widht'?)"),
        ("2 ** a", {"a": 63}, "exponent 63 is outside 0..62"),
        ("2 ** a", {"a": -1}, "exponent -1 is outside 0..62"),
        ("a ** 62", {"a": 1 << 20}, "beyond 128 bits"),
        ("a + 1", {"a": True}, "'a' is the truth value True, a number is needed"),
        ("not a", {"a": 1}, "'a' is the number 1, a truth value is needed"),
        ("mode == 'dual'", {"mode": 3}, "'mode' is the number 3, a choice is needed"),
        ("a + 1", {"a": None}, "'a' has no usable value here: None"),
        ("a + 1", {"a": [1]}, "'a' has no usable value here: [1]"),
    ],
)
def test_evaluation_errors(text: str, values: dict[str, Any], message: str) -> None:
    place = Place("x.yaml", 3, 4)
    with pytest.raises(ExpressionError) as caught:
        Expr.parse(text, place).evaluate(values)
    assert message in caught.value.message
    assert caught.value.place == place


@pytest.mark.parametrize(
    ("text", "values", "result"),
    [
        ("seq_len <= 8 * block_threads", {"block_threads": 512}, "seq_len <= 4096"),
        ("mode != 'indices' and width > 4", {"mode": "indices"}, "false"),
        ("mode != 'indices' and width > 4", {"mode": "dual"}, "width > 4"),
        ("not cluster.remote_shared", {"cluster.remote_shared": False}, "true"),
        ("flag == true and k < 3", {"flag": True}, "k < 3"),
        ("max(4 * 2 ** bits, 8 * cap) + 512", {"bits": 12, "cap": 2048}, "16896"),
        ("4 * (2 * x) + 0 * y", {}, "8 * x"),
        ("x + 3 + n", {"n": 4}, "x + 7"),
        ("min(max(a, 3), min(5, b), 9)", {}, "min(max(a, 3), b, 5)"),
        ("a <= a and b == b", {}, "true"),
        ("not (a < b) or not (mode == 'x')", {}, "a >= b or mode != 'x'"),
        ("8 // n if n > 0 else 3", {"n": 0}, "3"),
        ("n > 0 and 8 // n > 1", {"n": 0}, "false"),
        ("8 // n", {"n": 0}, "8 // 0"),
        ("2 ** n", {"n": 99}, "2 ** 99"),
        ("a if c else a", {}, "a"),
        ("a // 1 + b % 1 + c ** 0", {}, "a + 1"),
        ("x < y", {"x": Expr.parse("2 * z"), "y": Expr.parse("z")}, "2 * z < z"),
    ],
)
def test_substitution_folds(text: str, values: dict[str, Any], result: str) -> None:
    assert str(Expr.parse(text).substitute(values)) == result


def test_constants_are_recognised() -> None:
    assert Expr.parse("8 * n").substitute({"n": 4}).constant == 32
    assert Expr.parse("n < 4").substitute({"n": 4}).constant is False
    assert Expr.parse("n").constant is None
    assert Expr.of(True) != Expr.of(1)
    assert hash(Expr.of("dual")) == hash(Expr.of("dual"))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("fp8.native", {"fp8.native": None}),
        ("a + 1", {"a": "text"}),
        ("a and b", {"a": 1}),
        ("a < 3 and b", {"b": Expr.parse("a")}),
    ],
)
def test_substitution_checks_kinds(text: str, values: dict[str, Any]) -> None:
    with pytest.raises(ExpressionError):
        Expr.parse(text).substitute(values)


def test_ranges_decide_comparisons() -> None:
    predicate = Expr.parse("width <= 4194304 and seq_len < k")
    assert str(predicate.simplified({"width": (0, 4194304)})) == "seq_len < k"
    assert predicate.simplified({"width": (4194305, 4194306)}).constant is False
    assert Expr.parse("width % 8").bounds({"width": (0, 100)}) == (0, 7)
    assert Expr.parse("width // k").bounds({"width": (0, 100), "k": (0, 4)}) is None


def test_json_form() -> None:
    tree = Expr.parse("seq_len <= 8 * block_threads and mode != 'dual'").to_json()
    assert tree == ["and", ["<=", "seq_len", ["*", 8, "block_threads"]], ["!=", "mode", ["choice", "dual"]]]
    assert list(names_json(tree)) == ["seq_len", "block_threads", "mode"]
    run = compile_json(tree)
    assert run({"seq_len": 8, "block_threads": 1, "mode": "indices"}) is True
    assert run({"seq_len": 9, "block_threads": 1, "mode": "indices"}) is False


@pytest.mark.parametrize(
    "tree",
    [
        None,
        1.5,
        [],
        {},
        ["+"],
        ["+", 1],
        ["frob", 1, 2],
        ["not", 1, 2],
        ["choice", 3],
        [1, 2],
        ["if", 1, 2],
        ["min", 1],
    ],
)
def test_malformed_json(tree: object) -> None:
    with pytest.raises(ExpressionError):
        evaluate_json(tree, {})
    with pytest.raises(ExpressionError):
        Expr.from_json(tree)


def test_json_depth_is_limited() -> None:
    tree: Any = 1
    for _ in range(100_000):
        tree = ["neg", tree]
    with pytest.raises(ExpressionError, match="nested deeper"):
        evaluate_json(tree, {})
    while isinstance(tree, list):  # a plain `del` of so deep a list would exhaust the C stack
        tree = tree.pop()


_TREES = st.recursive(
    st.one_of(st.integers(), st.booleans(), st.text(max_size=3), st.none(), st.just("a")),
    lambda inner: st.tuples(
        st.sampled_from(["+", "//", "**", "<", "==", "and", "not", "if", "choice", "min", "neg", "a"]), inner, inner
    ).map(list),
    max_leaves=12,
)


@given(_TREES)
@settings(max_examples=600, deadline=None)
def test_any_json_gives_a_value_or_an_expression_error(tree: Any) -> None:
    with suppress(ExpressionError):
        evaluate_json(tree, {"a": 3})
    with suppress(ExpressionError):
        Expr.from_json(tree).evaluate({"a": 3})


def test_formulas() -> None:
    import sympy

    batch, width, k = (sympy.Symbol(name, integer=True, nonnegative=True) for name in ("batch", "width", "k"))
    assert Expr.parse("4 * batch * (width + k)").to_sympy() == 4 * batch * (width + k)
    with pytest.raises(ExpressionError, match="substitute the option first"):
        Expr.parse("1 if mode == 'dual' else 2").to_sympy()


def test_z3_needs_every_variable() -> None:
    with pytest.raises(ExpressionError, match="'b' is neither an axis nor a constant"):
        Expr.parse("a < b").to_z3({"a": 1})


def test_importing_the_package_loads_no_solver() -> None:
    import subprocess

    code = "import sys, dsv4gen.prove; print([m for m in ('z3', 'sympy', 'numpy', 'pydantic') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
