"""Stand-in programs for tests: shell scripts that answer `--version` and then misbehave as told."""

from __future__ import annotations

import os
from pathlib import Path


def write_program(folder: Path, name: str, body: str, version: str = "stub 1.0") -> Path:
    """An executable script that prints `version` for `--version` and runs `body` otherwise."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text(f'#!/bin/sh\nif [ "$1" = "--version" ]; then echo "{version}"; exit 0; fi\n{body}\n')
    program.chmod(0o755)
    return program


def path_with(folder: Path) -> str:
    """A search path with `folder` in front of the machine's."""
    return f"{folder}{os.pathsep}{os.environ['PATH']}"
