"""Snippets of the documentation that need no card print what the page says, and links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from dsv4gen.base.errors import ArgumentError
from tests.tools import need_module

DOCS = Path(__file__).parents[1] / "docs"
PAGES = (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md")))


@pytest.mark.parametrize(
    "family", ["compress", "gather_dequant", "indexer_logits", "qk_norm_rope", "sparse_decode", "topk"]
)
def test_the_call_of_a_family_prints_what_its_page_says(family: str) -> None:
    need_module("torch")
    if family == "compress":
        need_module("triton")
    text = (DOCS / f"{family}.md").read_text(encoding="utf-8")
    ((code, output),) = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", text, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, output), done.stderr


def column(text: str, head: str, number: int) -> list[str]:
    """The words in one column of a table, from top to bottom."""
    rows = text.split(f"{head}\n")[1].split("\n\n")[0].splitlines()[1:]
    return [word for row in rows for word in re.findall(r"\w+", row.split("|")[number])]


def test_the_emulation_page_has_the_words_of_top_k() -> None:
    need_module("torch")
    from dsv4gen.reference.topk_cases import shape_case
    from dsv4gen.reference.topk_scores import SCORES

    text = (DOCS / "emulation.md").read_text(encoding="utf-8")
    assert sorted(column(text, "| `scores` | the row |", 1)) == sorted(SCORES)
    head = "| word | default | what |"
    words = dict(zip(column(text, head, 1), column(text, head, 2), strict=True))
    sizes = {name: int(default) for name, default in words.items() if default.isdigit()}
    options = {name: default for name, default in words.items() if name not in sizes}
    assert str(shape_case("select", sizes, options).case) == str(shape_case("select", {}, {}).case)
    with pytest.raises(ArgumentError) as caught:
        shape_case("select", {"nothing": 1}, {})
    assert set(re.findall(r"\w+", caught.value.remedy)) == {"sizes", "options", *words}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for file, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", page.read_text(encoding="utf-8")):
        if file.startswith("http"):
            continue
        target = page.parent / file if file else page
        assert target.exists(), f"{page.name} links to {file}"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {file}#{anchor}"


def anchors(page: Path) -> set[str]:
    """Of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
