"""A copy of this checkout that a test may add to, and its command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
_KEPT = ("DSV4GEN_REQUIRE_TOOLS",)
_PARTS = ("dsv4gen", "specs", "templates")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "_data", "*.pyc")


@dataclass(frozen=True)
class Checkout:
    """The copy's root folder."""

    root: Path

    def environment(self, **more: str) -> dict[str, str]:
        """This process's variables, without ours, and with the copy's package in front of the installed one."""
        kept = {name: value for name, value in os.environ.items() if name in _KEPT or not name.startswith("DSV4GEN_")}
        own = {"PYTHONPATH": str(self.root), "DSV4GEN_CACHE_DIR": str(self.root / ".cache")}
        return {**kept, **own, "DSV4GEN_EXTENSIONS": "none", **more}

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """A command in the copy's root; `dsv4gen` and `python` are this interpreter's."""
        programs = {"dsv4gen": [sys.executable, "-m", "dsv4gen"], "python": [sys.executable]}
        command = [*programs.get(words[0], [words[0]]), *words[1:]]
        return subprocess.run(
            command, cwd=self.root, env=self.environment(**more), capture_output=True, text=True, check=False
        )


def copy_checkout(root: Path) -> Checkout:
    """Copy the package, specs, templates and pyproject.toml; nothing generated."""
    for part in _PARTS:
        shutil.copytree(ROOT / part, root / part, ignore=_LEFT_OUT)
    shutil.copy(ROOT / "pyproject.toml", root)
    return Checkout(root)
