"""The list for `doctor`: what is here, what is missing, and what is here and does not work."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from dsv4gen.base.errors import ToolMissing
from dsv4gen.toolchain import find_tools, locate, tools
from tests.toolchain.stubs import write_program

NAMES = {"clang++", "ld.lld", "ziglang", "NVRTC", "nvcc", "g++", "ptxas", "cuobjdump", "llvm-objdump"}


def test_every_tool_has_a_version_or_a_remedy() -> None:
    found = find_tools()
    assert {tool.name for tool in found} == NAMES
    for tool in found:
        assert tool.used_for
        assert tool.remedy
        assert (tool.path is None) <= (tool.found == "")


def test_a_bare_machine_lists_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(locate, "find_spec", lambda _: None)
    monkeypatch.setattr("ctypes.util.find_library", lambda _: None)
    assert [tool.found for tool in find_tools()] == [""] * len(NAMES)
    with pytest.raises(ToolMissing, match="NVRTC is not on this machine") as raised:
        tools.require("NVRTC")
    assert "pip install" in raised.value.remedy


@pytest.mark.parametrize(
    ("body", "version", "trouble"),
    [
        ("exit 0", "Debian clang version 14.0.6", "too old"),
        ("echo '  x86-64 - 64-bit'", "clang version 30.0.1", "without AMD GPUs"),
    ],
)
def test_an_unusable_clang_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str, version: str, trouble: str
) -> None:
    write_program(tmp_path, "clang++-30", body, version)
    monkeypatch.setenv("PATH", str(tmp_path))
    (clang,) = [tool for tool in find_tools() if tool.name == "clang++"]
    assert clang.found == ""
    assert trouble in clang.trouble
    with pytest.raises(ToolMissing, match=trouble):
        tools.require("clang++")


def test_a_program_that_dies_is_trouble_and_no_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "nvcc").write_text("#!/bin/sh\nkill -SEGV $$\n")
    (tmp_path / "nvcc").chmod(0o755)
    (tmp_path / "g++").write_text("no program at all")
    (tmp_path / "g++").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {tool.name: tool for tool in find_tools()}
    assert "killed by signal 11" in found["nvcc"].trouble
    assert "cannot be started" in found["g++"].trouble


def test_importing_the_package_starts_and_loads_nothing() -> None:
    script = (
        "import sys, subprocess; subprocess.Popen = None; import dsv4gen.toolchain as t;"
        "assert t.host_compiler; heavy = {'pydantic', 'ruamel', 'torch', 'triton', 'numpy'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_unknown_names_are_attribute_errors() -> None:
    import dsv4gen.toolchain

    assert set(dsv4gen.toolchain.__all__) == set(dsv4gen.toolchain._HOMES)
    for name, home in dsv4gen.toolchain._HOMES.items():
        assert getattr(dsv4gen.toolchain, name) is vars(import_module(f"dsv4gen.toolchain.{home}"))[name]
    with pytest.raises(AttributeError, match="no attribute 'compile_all'"):
        dsv4gen.toolchain.compile_all  # noqa: B018
