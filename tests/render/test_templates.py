"""What a template may not contain, and where errors are placed (BL-40)."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsv4gen.base.errors import DsvError, TemplateError
from dsv4gen.prove import Expr
from dsv4gen.render.environment import make_environment, render_template
from dsv4gen.render.source_map import take_markers


def render(tmp_path: Path, text: str, **context: object) -> str:
    folder = tmp_path / "templates"
    folder.mkdir(exist_ok=True)
    (folder / "t.cu.jinja").write_text(text, encoding="utf-8")
    marked = render_template(make_environment(folder, context), "t.cu.jinja", context)
    return take_markers(marked, "t.cu", "t.cu.jinja")[0]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a\n{{ wav }}\n", 2, "unknown name 'wav' (did you mean 'wave'?)"),
        ("{% if clustr %}x{% endif %}\n", 1, "unknown name 'clustr'"),
        ("\n\n{{ 'a' if wave }}\n", 3, "inline if without else"),
        ("{{ wave | default(3) }}\n", 1, "default() hides"),
        ("{% if wave is defined %}x{% endif %}\n", 1, "'is defined' hides"),
        ("int a[2][2] = {{1,2},{3,4}};\n", 1, "glued"),
        ("int x; {# note\n", 1, "starts a template comment"),
        ("{{ fields.items | cpp }}\n", 1, "shadowed by a dict method"),
    ],
)
def test_a_mistake_is_refused_at_its_line_when_the_template_loads(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    with pytest.raises(DsvError) as caught:
        render(tmp_path, text, wave=64, fields={"items": 1})
    first = getattr(caught.value, "errors", (caught.value,))[0]
    assert words in first.message
    assert first.place is not None
    assert (first.place.file, first.place.line) == ("templates/t.cu.jinja", line)


@pytest.mark.parametrize("value", [True, None, 0.5, float("inf"), [1], {"a": 1}])
def test_a_value_without_a_literal_filter_is_refused_at_its_line(tmp_path: Path, value: object) -> None:
    with pytest.raises(TemplateError, match="literal") as caught:
        render(tmp_path, "x\nconstexpr auto v = {{ value }};\n", value=value)
    assert str(caught.value.place) == "templates/t.cu.jinja:2"


def test_whole_numbers_and_text_need_no_filter(tmp_path: Path) -> None:
    assert render(tmp_path, "{{ number }} {{ word }}\n", number=64, word="name") == "64 name\n"


def test_a_missing_attribute_is_an_error_even_in_a_condition(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="clustr"):
        render(tmp_path, "{% if facts.clustr %}x{% endif %}\n", facts=Path("x"))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (4294967295, "4294967295u"),
        (2**63, "9223372036854775808ull"),
        (-1, "-1"),
        (1e-6, "1e-06f"),
        (-0.0, "-0.0f"),
        (3.0, "3.0f"),
        (float("inf"), "from_bits(0x7f800000u)"),
        (float("-inf"), "from_bits(0xff800000u)"),
        (float("nan"), "from_bits(0x7fc00000u)"),
    ],
)
def test_cpp_literals(tmp_path: Path, value: object, text: str) -> None:
    assert render(tmp_path, "{{ value | cpp }}\n", value=value) == f"{text}\n"


@pytest.mark.parametrize("value", [None, "text", object()])
def test_values_without_a_cpp_literal_form_are_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(TemplateError, match="no C\\+\\+ literal form"):
        render(tmp_path, "{{ value | cpp }}\n", value=value)


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "True"), ("a", '"a"'), (float("inf"), 'float("inf")'), ((1,), "(1,)"), ({"a": (1, 2)}, '{"a": (1, 2)}')],
)
def test_python_literals(tmp_path: Path, value: object, text: str) -> None:
    assert render(tmp_path, "{{ value | py }}\n", value=value) == f"{text}\n"


def test_a_long_call_takes_a_line_per_operand_and_a_short_one_stays_whole(tmp_path: Path) -> None:
    expression = Expr.parse("max(1, min(heads // 4, tokens))")
    whole = "return max(1, min(heads // 4, tokens))"
    broken = ["return max(", "        1,", "        min(heads // 4, tokens),", "    )"]
    text = "    return {{ value | py_block(4, %d) }}\n"
    assert render(tmp_path, text % (len(whole) + 4), value=expression) == f"    {whole}\n"
    assert render(tmp_path, text % (len(whole) + 3), value=expression).strip().split("\n") == broken


def test_only_an_expression_is_printed_in_lines(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="1 is no expression"):
        render(tmp_path, "{{ value | py_block(4) }}\n", value=1)


def test_output_has_lf_ends_one_final_newline_and_no_trailing_blanks(tmp_path: Path) -> None:
    assert render(tmp_path, "a  \r\n\r\n\r\n\r\nb\r\n\r\n") == "a\n\nb\n"


def test_the_sandbox_keeps_templates_from_python(tmp_path: Path) -> None:
    with pytest.raises(TemplateError):
        render(tmp_path, "{{ wave.__class__.__mro__ | py }}\n", wave=1)


def test_a_template_that_includes_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="includes itself, perhaps through others"):
        render(tmp_path, '{% include "t.cu.jinja" %}\n')
