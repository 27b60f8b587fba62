"""Shared parts: stand-in libraries, a hand-written generated folder, a private cache, and a platform of host memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dsv4gen.runtime import cache, native, platform, torch_ops
from dsv4gen.runtime.platform import HostPlatform
from tests.runtime import stubs, synthetic
from tests.tools import need_extension


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> stubs.Builder:
    """Builds a stand-in library by file name, once per session."""
    folder = tmp_path_factory.mktemp("stubs")
    return lambda name: stubs.build_library(folder, name)


@pytest.fixture(autouse=True)
def private_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Cache, generated folder and temporary folder of this test; nothing is rebuilt, warned or loaded before."""
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(tmp_path / "generated"))
    monkeypatch.setenv("DSV4GEN_REGENERATE", "0")
    for name in ("DSV4GEN_TARGET", "DSV4GEN_NO_COMPILE", "DSV4GEN_DEMO", "DSV4GEN_TOPK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(cache, "_warned", set())
    monkeypatch.setattr(torch_ops, "_bound", {})
    for recent in torch_ops._recent.values():
        recent.clear()
    return tmp_path


@pytest.fixture
def generated(tmp_path: Path) -> Path:
    """A generated root with the demo family for sm_90."""
    synthetic.write_folder(tmp_path / "generated")
    return tmp_path / "generated"


@pytest.fixture
def cuda(build: stubs.Builder, monkeypatch: pytest.MonkeyPatch) -> stubs.StubDriver:
    """The recording CUDA driver and the stand-in NVRTC, in place of whatever the machine has."""
    driver, compiler = build("libcuda.so.1"), build("libnvrtc.so.13")
    stubs.place(monkeypatch, driver, compiler)
    stub = stubs.open_stub(driver, "cuda")
    stub.set("params_bytes", 48)
    return stub


@pytest.fixture(scope="session")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The extension of the short way, whatever the installation holds."""
    return need_extension(tmp_path_factory.mktemp("extension"))


@pytest.fixture(params=["python", "native"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The short way without and with the extension."""
    chosen: str = request.param
    module = request.getfixturevalue("extension") if chosen == "native" else None
    monkeypatch.setattr(native, "find", lambda: native.Found(module, "" if module else "a test wants it so"))
    return chosen


@pytest.fixture
def host() -> Iterator[HostPlatform]:
    """A platform whose one device is an sm_90 with host memory."""
    with platform.use(HostPlatform("sm_90")) as here:
        assert isinstance(here, HostPlatform)
        yield here
