"""Tools that tests need: missing ones fail in CI (DSV4GEN_REQUIRE_TOOLS=1) and skip with one line elsewhere."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

from dsv4gen.base import env
from dsv4gen.runtime import build_native, native


def need_tool(name: str) -> str:
    """The path of a program, or a failure / skip that names it."""
    found = shutil.which(name)
    if found is None:
        _missing(f"program {name}")
    return found or ""


def need_module(name: str) -> None:
    """Fail or skip unless a Python module can be imported."""
    if importlib.util.find_spec(name) is None:
        _missing(f"Python module {name}")


def need_extension(folder: Path) -> Any:
    """The extension of the short way, built from this tree into a folder, or a failure / skip that says why not."""
    why_not = build_native.build(folder / native.NAME)
    if not why_not and native.exchange() is None:
        why_not = "this torch has no DLPack exchange table"
    if why_not:
        _missing(f"the extension ({why_not})")
    return native.load(folder / native.NAME)


def _missing(what: str) -> None:
    if env.flag(env.REQUIRE_TOOLS):
        pytest.fail(f"{what} is required here and missing", pytrace=False)
    pytest.skip(f"{what} is not installed")
