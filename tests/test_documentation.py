"""Snippets of the documentation that need no card print what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.tools import need_module

DOCS = Path(__file__).parents[1] / "docs"


def test_the_call_of_sparse_decode_prints_what_its_page_says() -> None:
    need_module("torch")
    text = (DOCS / "sparse_decode.md").read_text(encoding="utf-8")
    ((code, output),) = re.findall(r"```python\n(.*?)```\n+```text\n(.*?)```", text, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, output), done.stderr
