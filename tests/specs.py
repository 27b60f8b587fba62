"""A private copy of the specs and templates that a test may damage."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Copy:
    """Specs and templates below one folder; `run` calls the command line on them."""

    folder: Path

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text that occurs in one file of the copy."""
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{old!r} is not in {name}"
        path.write_text(text.replace(old, new), encoding="utf-8")

    def environment(self, **more: str) -> dict[str, str]:
        """Environment variables that point every command at the copy and at a private cache."""
        own = {
            "DSV4GEN_SPECS_DIR": str(self.folder / "specs"),
            "DSV4GEN_TEMPLATES_DIR": str(self.folder / "templates"),
            "DSV4GEN_GENERATED_DIR": str(self.folder / "generated"),
            "DSV4GEN_CACHE_DIR": str(self.folder / "cache"),
        }
        return {**os.environ, **own, **more}

    def run(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """`dsv4gen WORDS` in a process of its own, in the copy's folder."""
        command = [sys.executable, "-m", "dsv4gen", *words]
        return subprocess.run(
            command, env=self.environment(**more), cwd=self.folder, capture_output=True, text=True, check=False
        )

    def run_python(self, script: str, **more: str) -> subprocess.CompletedProcess[str]:
        """A Python script in a process of its own, in the copy's folder."""
        environment = self.environment(**more)
        return subprocess.run(
            [sys.executable, "-c", script],
            env=environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def generated(self) -> Path:
        """Where builds go."""
        return self.folder / "generated"


def copy_specs(folder: Path) -> Copy:
    """Copy `specs/` and `templates/` of this checkout."""
    for name in ("specs", "templates"):
        shutil.copytree(ROOT / name, folder / name)
    return Copy(folder)


def tree_bytes(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its relative name."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }
