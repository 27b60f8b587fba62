"""`docs/specs.md` is what the models say, and no key is left without a meaning."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from dsv4gen.report.spec_page import holds, spec_page
from dsv4gen.spec.facts import GROUPS
from dsv4gen.spec.models import Distinct, Expression, Name, Positive, Table

PAGE = Path(__file__).parents[2] / "docs" / "specs.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == spec_page(), "run: dsv4gen schema --markdown > docs/specs.md"


def test_every_key_has_a_meaning() -> None:
    rows = re.findall(r"^\| (`\w+`) \|.*\| ([^|]*) \|$", spec_page(), re.MULTILINE)
    assert len(rows) > 150
    assert [key for key, meaning in rows if not meaning.strip()] == []


def test_every_group_and_every_model_has_a_section() -> None:
    page = spec_page()
    assert {f"### `{name}`\n" for name in GROUPS} <= {f"{line}\n" for line in page.split("\n")}
    links = set(re.findall(r"\(#([a-z0-9_]+)\)", page))
    titles = {re.sub(r"\W", "", title.lower()) for title in re.findall(r"^### (.+)$", page, re.MULTILINE)}
    assert links <= titles


def test_what_a_key_holds_in_words() -> None:
    assert holds(Expression | None) == "expression"
    assert holds(Table[Positive]) == "mapping to whole number above 0"
    assert holds(Distinct[str]) == "list of text, all different"
    assert holds(Annotated[tuple[Name, ...], Field(min_length=1)]) == "list of name, at least one"
    assert holds(Literal["a", "b"]) == "`a` or `b`"
    assert holds(tuple[int, int]) == "list of 2: whole number"
