"""One expression, one value: here, as Python text, as JSON, as a sympy formula, as a z3 term and as compiled C++."""

from __future__ import annotations

import ctypes
import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsv4gen.base.errors import ExpressionError
from dsv4gen.base.expression_json import evaluate_json
from dsv4gen.prove import Expr, cpp_helpers
from dsv4gen.prove.nodes import Apply, kind_of
from tests.prove import trees
from tests.tools import need_tool

SOURCES = st.builds(random.Random, st.integers(0, 2**48))
EXPRESSIONS = 260
SHAPES = 400
ORDER = [*trees.RANGES, "flag", "mode"]


def draw(source: random.Random, depth: int = 3) -> Expr:
    build = trees.number if source.random() < 0.5 else trees.truth
    return Expr(build(source, source.randint(1, depth)))


def same(left: object, right: object) -> bool:
    """Equal, and of the same kind: True is not 1."""
    return type(left) is type(right) and left == right


@given(SOURCES)
@settings(max_examples=300, deadline=None)
def test_texts_and_json_agree(source: random.Random) -> None:
    expression, shape = draw(source), trees.shape(source)
    expected = expression.evaluate(shape)
    python = eval(expression.to_python(), {"__builtins__": {"min": min, "max": max}}, shape)
    assert same(python, expected)
    # In as many lines as possible, within parentheses as behind `return`.
    block = eval(f"({expression.to_python_block(1)})", {"__builtins__": {"min": min, "max": max}}, shape)
    assert same(block, expected)
    assert same(evaluate_json(expression.to_json(), shape), expected)
    assert Expr.from_json(expression.to_json()) == expression
    assert Expr.parse(str(expression)) == expression


@given(SOURCES)
@settings(max_examples=300, deadline=None)
def test_folding_keeps_the_value(source: random.Random) -> None:
    expression, shape = draw(source), trees.shape(source)
    expected = expression.evaluate(shape)
    known = {name: value for name, value in shape.items() if source.random() < 0.5}
    rest = {name: value for name, value in shape.items() if name not in known}
    assert same(expression.substitute(known).evaluate(rest), expected)
    assert same(expression.substitute(shape).constant, expected)
    assert same(expression.simplified().evaluate(shape), expected)
    assert same(expression.simplified(trees.RANGES).evaluate(shape), expected)
    bounds = expression.bounds(trees.RANGES)
    assert bounds is None or bounds[0] <= expected <= bounds[1]


@given(SOURCES)
@settings(max_examples=80, deadline=None)
def test_z3_agrees(source: random.Random) -> None:
    import z3

    expression, shape = draw(source), trees.shape(source)
    closed = expression.substitute({"mode": shape["mode"]})
    variables = {name: z3.Int(name) for name in trees.RANGES} | {"flag": z3.Bool("flag")}
    values = [
        (variable, z3.BoolVal(shape[name]) if name == "flag" else z3.IntVal(shape[name]))
        for name, variable in variables.items()
    ]
    term = z3.simplify(z3.substitute(closed.to_z3(variables, trees.RANGES), *values))
    value = term.as_long() if z3.is_int_value(term) else z3.is_true(term)
    assert same(value, expression.evaluate(shape))


@given(SOURCES)
@settings(max_examples=150, deadline=None)
def test_sympy_agrees(source: random.Random) -> None:
    import sympy

    expression, shape = draw(source, depth=2), trees.shape(source)
    formula = expression.substitute({"mode": shape["mode"]}).to_sympy()
    values = {symbol: sympy.sympify(shape[symbol.name]) for symbol in formula.free_symbols}
    value = formula.xreplace(values).doit()
    expected = expression.evaluate(shape)
    assert bool(value) == expected if isinstance(expected, bool) else int(value) == expected


def cpp_table(source: random.Random, count: int) -> list[tuple[Expr, str]]:
    """Expressions with the type and text of their C++ form, half of them printed with ranges."""
    table: list[tuple[Expr, str]] = []
    while len(table) < count:
        expression = draw(source, depth=4)
        try:
            text = expression.to_cpp(trees.RANGES)
        except ExpressionError:
            continue
        if len(text) < 600:
            table.append((expression, text))
    return table


def compile_table(table: list[tuple[Expr, str]], folder: Path, helpers: str) -> ctypes.CDLL:
    """A library with `run(expression, shapes, count, out)`; every value is widened to 64 bits."""
    names = "".join(f"  const u32 {name} = v[{row}];\n" for row, name in enumerate(trees.RANGES))
    names += "  const bool flag = v[6] != 0;\n  const Mode mode = Mode(v[7]);\n"
    unused = "  (void)a, (void)batch, (void)width, (void)k, (void)head, (void)bits, (void)flag, (void)mode;\n"
    functions = "".join(
        f"static i64 f{row}(const u32* v) {{\n{names}{unused}  return i64({text});\n}}\n"
        for row, (_, text) in enumerate(table)
    )
    entries = ", ".join(f"f{row}" for row in range(len(table)))
    source = folder / "table.cpp"
    source.write_text(
        "typedef unsigned u32; typedef long long i64;\n"
        f"enum class Mode : u32 {{ {', '.join(trees.MODES)} }};\n{helpers}{functions}"
        f"static i64 (*const table[])(const u32*) = {{ {entries} }};\n"
        'extern "C" void run(u32 row, const u32* v, u32 count, i64* out) {\n'
        f"  for (u32 i = 0; i < count; ++i) out[i] = table[row](v + i * {len(ORDER)});\n}}\n"
    )
    library = folder / "table.so"
    command = [need_tool("g++"), "-std=c++17", "-O0", "-Wall", "-Werror", "-shared", "-fPIC"]
    command += ["-Wno-unused-function", "-Wno-bool-operation", "-Wno-int-in-bool-context", "-Wno-tautological-compare"]
    subprocess.run([*command, str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def mismatches(table: list[tuple[Expr, str]], library: ctypes.CDLL, source: random.Random, shapes: int) -> int:
    """How many (expression, shape) pairs give another value in C++ than here."""
    wrong = 0
    for row, (expression, _) in enumerate(table):
        drawn = [trees.shape(source) for _ in range(shapes)]
        flat = [_word(shape[name]) for shape in drawn for name in ORDER]
        out = (ctypes.c_longlong * shapes)()
        library.run(row, (ctypes.c_uint32 * len(flat))(*flat), shapes, out)
        wrong += sum(int(expression.evaluate(shape)) != value for shape, value in zip(drawn, out, strict=True))
    return wrong


def _word(value: int | bool | str) -> int:
    return trees.MODES.index(value) if isinstance(value, str) else int(value)


def test_compiled_cpp_agrees_on_a_hundred_thousand_shapes(tmp_path: Path) -> None:
    source = random.Random(20260101)
    table = cpp_table(source, EXPRESSIONS)
    words = {expression.cpp_word(trees.RANGES) for expression, _ in table}
    assert words == {"u32", "i64"}
    assert {part for expression, _ in table for part in operators(expression)} >= {"//", "%", "**", "if", "min"}
    library = compile_table(table, tmp_path, cpp_helpers("static inline"))
    assert EXPRESSIONS * SHAPES >= 100_000
    assert mismatches(table, library, source, SHAPES) == 0


def operators(expression: Expr) -> set[str]:
    from dsv4gen.prove.nodes import walk

    return {part.operator for part in walk(expression.node) if isinstance(part, Apply)}


def test_the_comparison_catches_truncating_division(tmp_path: Path) -> None:
    source = random.Random(7)
    table = [entry for entry in cpp_table(source, 120) if "floor_div" in entry[1] or "ceil_div" in entry[1]]
    right = "return a / b - ((a % b != 0) & ((a < 0) != (b < 0)));"
    helpers = cpp_helpers("static inline")
    assert right in helpers
    library = compile_table(table, tmp_path, helpers.replace(right, "return a / b;"))
    assert mismatches(table, library, source, 50) > 0


@pytest.mark.parametrize(
    ("text", "cpp"),
    [
        ("seq_len <= 8 * block_threads", "seq_len <= 8u * block_threads"),
        ("seq_len // 4 + 2 ** bits", "seq_len / 4u + (1u << bits)"),
        ("mode != 'page_table'", "mode != Mode::page_table"),
        ("a and b or not c", "(a && b) || !c"),
        ("min(a, b, 3)", "minimum(minimum(a, b), 3u)"),
        ("a - b < 3", "i64(a) - i64(b) < i64(3)"),
        ("(a - b) // 4", "floor_div(i64(a) - i64(b), i64(4))"),
        ("1 if a < b else 2", "(a < b ? 1u : 2u)"),
        ("5000000000 < a", "i64(5000000000) < i64(a)"),
    ],
)
def test_cpp_text(text: str, cpp: str) -> None:
    assert Expr.parse(text).to_cpp() == cpp


def test_the_word_is_chosen_by_proof() -> None:
    product = Expr.parse("batch * width")
    assert product.cpp_word({"batch": (0, 1000), "width": (0, 1000)}) == "u32"
    assert product.cpp_word({"batch": (0, 1 << 20), "width": (0, 1 << 22)}) == "i64"
    with pytest.raises(ExpressionError, match="'batch \\* width' is not proven to fit 64 bits"):
        product.to_cpp({"batch": (0, 1 << 40), "width": (0, 1 << 40)})
    tail = Expr.parse("width - head")
    assert tail.to_cpp({"width": (4, 9), "head": (0, 3)}) == "width - head"
    assert tail.cpp_word({"width": (0, 9), "head": (0, 3)}) == "i64"


def test_cpp_refuses_facts_and_bare_choices() -> None:
    with pytest.raises(ExpressionError, match=r"'wave\.launch' has no C\+\+ form"):
        Expr.parse("wave.launch == 64").to_cpp()
    with pytest.raises(ExpressionError, match=r"'dual' has no C\+\+ form"):
        Expr.parse("'dual' if a else 'indices'").to_cpp()


def test_drawn_numbers_and_predicates_have_their_kind() -> None:
    source = random.Random(1)
    assert kind_of(trees.truth(source, 2)) == "truth value"
    assert {kind_of(trees.number(source, 2)) for _ in range(50)} <= {"number"}
