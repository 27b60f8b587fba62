"""Launchers are read from a module's text; one that the runtime could not call is refused at its template line."""

from __future__ import annotations

import pytest

from dsv4gen.base.errors import LintError
from dsv4gen.render.launchers import Launcher, read_launchers
from dsv4gen.render.source_map import SourceMap

MAP = SourceMap("demo.py", tuple(("triton/demo.py.jinja", 10 * line) for line in range(1, 10)))
NEEDED = {"run": ("q",)}


def test_keywords_with_and_without_defaults() -> None:
    text = "\ndef run(*, q, out, scale=0.5, sink=None, fast=False, mode='on'): pass\ndef helper(x): pass\n"
    defaults = {"scale": 0.5, "sink": None, "fast": False, "mode": "on"}
    assert read_launchers("demo.py", text, MAP, NEEDED) == {"run": Launcher(("q", "out"), defaults)}


def test_text_that_is_no_python_is_left_to_the_lint() -> None:
    assert read_launchers("demo.py", "def run(", MAP, NEEDED) == {}


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("x = 1\n", "demo.py has no launcher for the op run", 10),
        ("x = 1\ndef run(q, *, out): pass\n", "the launcher run takes more than keywords", 20),
        ("x = 1\ndef run(*, q, **more): pass\n", "the launcher run takes more than keywords", 20),
        ("x = 1\n\ndef run(*, q=x): pass\n", "run: the default x of q is no constant", 30),
        ("x = 1\ndef run(*, out): pass\n", "the launcher run does not take q", 20),
        ("def run(*, q=(1, 2)): pass\n", r"run: the default \(1, 2\) of q is no constant", 10),
    ],
)
def test_what_the_runtime_could_not_call_is_refused(text: str, message: str, line: int) -> None:
    with pytest.raises(LintError, match=message) as caught:
        read_launchers("demo.py", text, MAP, NEEDED)
    assert str(caught.value.place) == f"templates/triton/demo.py.jinja:{line}" and caught.value.remedy
