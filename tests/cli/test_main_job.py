"""README's first command without its install: build for gfx950 and verify it, and it prints what README says."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.checkout import ROOT
from tests.tools import need_module, need_tool

VERDICT = r"verified: 1 target, \d+ kernels compiled, \d+ cases executed, 0 findings"


def test_build_and_verify_as_the_readme_says() -> None:
    """Every kernel of the target is compiled and every symbol and branch executed, as machine code too."""
    for tool in ("g++", "clang++-22", "ld.lld-22"):
        need_tool(tool)
    need_module("triton")
    for words in (["build", "--target", "gfx950", "--check"], ["verify", "--target", "gfx950"]):
        done = subprocess.run([sys.executable, "-m", "dsv4gen", *words], capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, (done.stdout[-3000:], done.stderr[-1000:])
    (said,) = re.findall(VERDICT, (ROOT / "README.md").read_text(encoding="utf-8"))
    assert done.stdout.splitlines()[-1].startswith(said)
