"""Every output line maps to the template line it came from, through macros, loops and includes."""

from __future__ import annotations

from pathlib import Path

from dsv4gen.render.environment import make_environment, render_template
from dsv4gen.render.source_map import SourceMap, take_markers

MAIN = """\
{% from "macros.jinja" import pair %}
// head
{% for name in names %}
int {{ name }};
{{ pair(name) }}
{% endfor %}
{# a comment #}
{% if names %}
  {% include "part.jinja" %}
{% endif %}
// tail
"""
MACROS = """\
{% macro pair(name) %}
struct {
  int {{ name }}_pair;
};
{% endmacro %}
"""
PART = "// part {{ names | length }}\n"


def rendered(tmp_path: Path) -> tuple[str, SourceMap]:
    for name, text in (("main.jinja", MAIN), ("macros.jinja", MACROS), ("part.jinja", PART)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    marked = render_template(make_environment(tmp_path, ["names"]), "main.jinja", {"names": ["a", "b"]})
    return take_markers(marked, "main", "main.jinja")


def test_each_line_maps_to_its_template_line(tmp_path: Path) -> None:
    text, source_map = rendered(tmp_path)
    lines = text.split("\n")
    places = {line: str(source_map.origin(number)) for number, line in enumerate(lines, start=1) if line}
    assert places["// head"] == "templates/main.jinja:2"
    assert places["int b;"] == "templates/main.jinja:4"
    assert places["  int b_pair;"] == "templates/macros.jinja:3"
    assert places["// part 2"] == "templates/part.jinja:1"
    assert places["// tail"] == "templates/main.jinja:11"


def test_no_marker_is_left_in_the_text(tmp_path: Path) -> None:
    text, _ = rendered(tmp_path)
    assert not set("\x01\x02") & set(text)


def test_the_map_covers_every_line_and_nothing_else(tmp_path: Path) -> None:
    text, source_map = rendered(tmp_path)
    assert len(source_map.origins) == text.count("\n")
    assert source_map.origin(0) is None
    assert source_map.origin(len(source_map.origins) + 1) is None


def test_the_stored_form_gives_the_origins_back(tmp_path: Path) -> None:
    _, source_map = rendered(tmp_path)
    assert SourceMap.from_json(source_map.to_json()) == source_map
