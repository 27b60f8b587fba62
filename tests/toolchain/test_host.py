"""C++ for the CPU with every compiler kind, cached by content."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

import pytest

from dsv4gen.base.errors import CompileError, Place, Problems, ToolMissing, UsageError
from dsv4gen.toolchain import host, locate
from tests.toolchain.stubs import path_with, write_program
from tests.tools import need_module, need_tool

ADD = 'extern "C" int add(int a, int b) { return a + b; }\n'
TWO_MISTAKES = 'extern "C" int f() { return one; }\nextern "C" int g() { return two; }\n'


@dataclass(frozen=True)
class ShiftedMap:
    """Every line comes from line + 100 of one template."""

    def origin(self, line: int) -> Place | None:
        return Place("templates/emulate/x.cpp.jinja", line + 100)


@pytest.fixture(params=host.KINDS)
def compiler(request: pytest.FixtureRequest) -> host.HostCompiler:
    kind = str(request.param)
    if kind == "g++":
        need_tool("g++")
    elif kind == "zig":
        need_module("ziglang")
    elif locate.find_llvm("clang++") is None:
        need_tool("clang++-22")
    return host.host_compiler(kind)


def test_a_library_is_built_and_found_again(compiler: host.HostCompiler, fresh_cache: Path) -> None:
    path = host.compile_shared(ADD, compiler=compiler)
    assert ctypes.CDLL(str(path)).add(2, 3) == 5
    stamp = path.stat().st_mtime_ns
    assert host.compile_shared(ADD, compiler=compiler) == path
    assert path.stat().st_mtime_ns == stamp
    assert host.compile_shared(ADD, ["-DNEW"], compiler=compiler) != path
    assert path.is_relative_to(fresh_cache)


def test_mistakes_are_reported_together_at_template_lines(compiler: host.HostCompiler, fresh_cache: Path) -> None:
    with pytest.raises(Problems) as raised:
        host.compile_shared(TWO_MISTAKES, name="emulated", compiler=compiler, source_map=ShiftedMap())
    places = [error.place for error in raised.value.errors]
    assert [(place.file, place.line) for place in places if place] == [
        ("templates/emulate/x.cpp.jinja", 101),
        ("templates/emulate/x.cpp.jinja", 102),
    ]
    assert "emulated.cpp" in str(raised.value)
    assert not fresh_cache.exists(), "a failed compile may not leave anything in the cache"


def test_native_code_is_keyed_by_the_cpu() -> None:
    plain = host._cpu_identity(["-O2"])
    native = host._cpu_identity(["-march=native"])
    assert native.startswith(plain)
    assert native != plain


def test_a_crashing_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_cache: Path) -> None:
    write_program(tmp_path / "bin", "g++", "echo half > host.so; exit 139")
    monkeypatch.setenv("PATH", path_with(tmp_path / "bin"))
    with pytest.raises(CompileError, match=r"host\.cpp .*killed by signal 11") as raised:
        host.compile_shared(ADD)
    assert "command: g++ -std=c++17" in str(raised.value)
    assert not fresh_cache.exists()


def test_a_compiler_that_writes_nothing_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_program(tmp_path / "bin", "g++", "exit 0")
    monkeypatch.setenv("PATH", path_with(tmp_path / "bin"))
    with pytest.raises(CompileError, match="wrote no file"):
        host.compile_shared(ADD)


def test_the_version_text_is_in_the_key_and_the_path_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(folder: str, version: str) -> Path:
        write_program(tmp_path / folder, "g++", "echo library > host.so", version)
        with monkeypatch.context() as patch:
            patch.setenv("PATH", path_with(tmp_path / folder))
            return host.compile_shared(ADD)

    first = build("one", "g++ 12")
    assert build("two", "g++ 12") == first
    assert build("three", "g++ 13") != first


def test_without_any_compiler_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(locate, "find_spec", lambda _: None)
    with pytest.raises(ToolMissing) as raised:
        host.compile_shared(ADD)
    assert "pip install ziglang" in raised.value.remedy


def test_zig_is_chosen_when_nothing_else_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    need_module("ziglang")
    monkeypatch.setenv("PATH", "")
    assert host.host_compiler().kind == "zig"


def test_an_unknown_kind_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="icc"):
        host.host_compiler("icc")


def test_odd_folders_build(odd_folder: Path, monkeypatch: pytest.MonkeyPatch, compiler: host.HostCompiler) -> None:
    monkeypatch.setenv("TMPDIR", str(odd_folder))
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(odd_folder / "cache"))
    monkeypatch.setattr("tempfile.tempdir", None)
    path = host.compile_shared(ADD, compiler=compiler)
    assert path.is_relative_to(odd_folder)
    assert ctypes.CDLL(str(path)).add(2, 3) == 5
    assert sorted(entry.name for entry in odd_folder.iterdir()) == ["cache"]
