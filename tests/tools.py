"""Tools that tests need: missing ones fail in CI (DSV4GEN_REQUIRE_TOOLS=1) and skip with one line elsewhere."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

from dsv4gen.base import env


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


def _missing(what: str) -> None:
    if env.flag(env.REQUIRE_TOOLS):
        pytest.fail(f"{what} is required here and missing", pytrace=False)
    pytest.skip(f"{what} is not installed")
