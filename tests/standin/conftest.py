"""Generated sources of three AMD targets, one cache of compiled kernels for the run, none of the caller's variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsv4gen.emit.build import Request, build
from tests.standin.calls import TARGETS
from tests.tools import need_tool


@pytest.fixture(scope="session", autouse=True)
def _compilers() -> None:
    for name in ("clang++-22", "ld.lld-22"):
        need_tool(name)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds a folder per target. Copy what a test changes."""
    root = tmp_path_factory.mktemp("generated")
    build(Request(TARGETS, ("topk",), out=root))
    return root


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled kernels, shared by the tests that do not look at the cache itself."""
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(autouse=True)
def generated(built: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`built`, in the place of the checkout's own; nothing is rebuilt at load."""
    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(built))
    monkeypatch.setenv("DSV4GEN_REGENERATE", "0")
    for name in ("DSV4GEN_TARGET", "DSV4GEN_NO_COMPILE", "DSV4GEN_TOPK"):
        monkeypatch.delenv(name, raising=False)
    return built
