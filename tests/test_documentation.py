"""Snippets of the documentation that need no card print what the page says, and links lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

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
