"""Choice of compiler, messages at template lines, crashes, missing kernels, and the cache."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dsv4gen.base.errors import CompileError, DsvError, Place, Problems, UsageError
from dsv4gen.toolchain import Task, compile_source, hip, locate, run_tasks
from dsv4gen.toolchain.code import CodeObject
from tests.toolchain.sources import HIP_TARGETS, TWO_KERNELS, record, source
from tests.toolchain.stubs import path_with, write_program
from tests.tools import need_module, need_tool

# nvcc is optional: its cases exist where it is installed.
NVCC = [("sm_90", "nvcc")] if locate.find_program("nvcc") else []
ALL_COMPILERS = [("gfx950", "clang"), ("gfx950", "zig"), ("sm_90", "nvrtc"), *NVCC]


@dataclass(frozen=True)
class TemplateMap:
    """Generated line n comes from line n + 100 of the template; the layer's lines come from nowhere."""

    first: int

    def origin(self, line: int) -> Place | None:
        return Place("templates/hip_cuda/topk.cu.jinja", line + 100) if line >= self.first else None


@pytest.fixture(params=ALL_COMPILERS, ids=[kind for _, kind in ALL_COMPILERS])
def target_and_compiler(request: pytest.FixtureRequest) -> tuple[str, str]:
    target, kind = request.param
    if kind == "clang":
        need_tool("clang++-22")
    elif kind != "nvcc":
        need_module("ziglang" if kind == "zig" else "nvidia")
    return target, kind


def test_messages_name_the_template_line(target_and_compiler: tuple[str, str]) -> None:
    target, kind = target_and_compiler
    layer = source(record(target), "").count("\n")
    body = "KERNEL(64) bad(float* x) {\n  x[0] = first_mistake;\n  x[1] = second_mistake;\n}\n"
    with pytest.raises(Problems) as raised:
        compile_source(
            source(record(target), body),
            record(target),
            compiler=kind,
            name="topk",
            symbols=["bad"],
            source_map=TemplateMap(layer + 1),
        )
    lines = [layer + 102, layer + 103]
    assert [(error.place.file, error.place.line) for error in raised.value.errors if error.place] == [
        ("templates/hip_cuda/topk.cu.jinja", line) for line in lines
    ]
    message = str(raised.value)
    assert "first_mistake" in message
    assert "second_mistake" in message
    assert f"for {target} (bad)" in message
    assert "command: " in message


def test_a_line_without_an_origin_keeps_its_place(target_and_compiler: tuple[str, str]) -> None:
    target, kind = target_and_compiler
    with pytest.raises(CompileError) as raised:
        compile_source("\n#error mistake\n", record(target), compiler=kind, source_map=TemplateMap(99))
    assert raised.value.place is not None
    assert raised.value.place.line == 2
    assert raised.value.place.file.startswith("kernels.")


def test_warnings_are_kept_with_their_place(target_and_compiler: tuple[str, str]) -> None:
    target, kind = target_and_compiler
    body = "KERNEL(64) odd(float* x) {\n  int unused_variable;\n  x[0] = 1.0f;\n}\n"
    layer = source(record(target), "").count("\n")
    flags = ["-Wall"] if kind in ("clang", "zig") else []
    code = compile_source(
        source(record(target), body),
        record(target),
        compiler=kind,
        flags=flags,
        source_map=TemplateMap(layer + 1),
    )
    (warning,) = [one for one in code.warnings if "unused_variable" in one.message]
    assert warning.place is not None
    assert warning.place.line == layer + 102


def test_a_kernel_that_does_not_come_out_is_an_error() -> None:
    need_module("ziglang")
    with pytest.raises(CompileError, match="renamed is not in the code object for gfx950"):
        compile_source(
            source(record("gfx950"), TWO_KERNELS),
            record("gfx950"),
            symbols=["one", "renamed"],
            compiler="zig",
        )


def test_a_compiler_of_the_other_vendor_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="'nvcc' does not compile for gfx950") as raised:
        compile_source("", record("gfx950"), compiler="nvcc")
    assert raised.value.remedy == "auto, clang or zig"


def test_the_second_time_nothing_is_compiled(
    target_and_compiler: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    target, kind = target_and_compiler
    text = source(record(target), TWO_KERNELS)
    first = compile_source(text, record(target), compiler=kind)
    started: list[object] = []

    def no_start(*arguments: object, **options: object) -> None:
        started.append((arguments, options))
        raise AssertionError("a program was started")

    monkeypatch.setattr("dsv4gen.toolchain.process.subprocess.Popen", no_start)
    assert compile_source(text, record(target), compiler=kind) == first
    with pytest.raises(AssertionError):
        compile_source(text, record(target), compiler=kind, flags=["-DOTHER"])
    with pytest.raises(AssertionError):
        compile_source(text + "\n", record(target), compiler=kind)
    assert len(started) == 2


def test_a_damaged_entry_is_compiled_again(fresh_cache: Path) -> None:
    need_module("ziglang")
    text = source(record("gfx950"), TWO_KERNELS)
    first = compile_source(text, record("gfx950"), compiler="zig")
    (binary,) = fresh_cache.glob("toolchain/kernels/*/*/code")
    binary.write_bytes(first.binary[:-1])
    assert compile_source(text, record("gfx950"), compiler="zig") == first
    assert binary.read_bytes() == first.binary


def test_a_cache_that_cannot_be_written_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_module("ziglang")
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr("dsv4gen.toolchain.store._private_fallback", lambda: ())
    with pytest.warns(RuntimeWarning, match="no folder for compiled results"):
        code = compile_source(source(record("gfx950"), TWO_KERNELS), record("gfx950"), compiler="zig")
    assert code.kernel("one").max_threads == 64


@pytest.fixture
def crashing_clang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clang that writes half a file and dies of signal 11 for gfx942, and works for the others."""
    clang = need_tool("clang++-22")
    body = f"""for word in "$@"; do
  if [ "$word" = --offload-arch=gfx942 ]; then echo half > topk.s; exit 139; fi
done
exec {clang} "$@\""""
    write_program(tmp_path / "bin", "clang++-30", body, "stub clang version 30.0.0")
    monkeypatch.setenv("PATH", path_with(tmp_path / "bin"))


@pytest.mark.usefixtures("crashing_clang")
def test_a_crash_names_everything_and_the_other_targets_are_built(fresh_cache: Path) -> None:
    def compile_for(target: str) -> CodeObject:
        text = source(record(target), TWO_KERNELS)
        return compile_source(text, record(target), name="topk", symbols=["reverse"])

    def task(target: str) -> Task[CodeObject]:
        return Task(target, lambda: compile_for(target))

    finished = run_tasks([task(target) for target in HIP_TARGETS])
    assert [one.name for one in finished] == list(HIP_TARGETS)
    failed = [one for one in finished if one.error is not None]
    assert [one.name for one in failed] == ["gfx942"]
    message = str(failed[0].error)
    assert "topk.hip for gfx942 (reverse)" in message
    assert "killed by signal 11" in message
    assert "command: clang++-30 -x hip" in message
    assert failed[0].error is not None
    assert failed[0].error.exit_status != 0
    assert "compiler='zig'" in failed[0].error.remedy
    kept = list(fresh_cache.glob("toolchain/kernels/*/*"))
    assert len(kept) == len(HIP_TARGETS) - 1


def test_a_compiler_that_lies_about_success_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_cache: Path
) -> None:
    write_program(tmp_path / "bin", "clang++-30", "for last; do :; done; echo x > $last", "clang version 30.0")
    write_program(tmp_path / "bin", "ld.lld-30", "for last; do :; done; echo garbage > $last", "LLD 30.0")
    monkeypatch.setenv("PATH", path_with(tmp_path / "bin"))
    with pytest.raises(CompileError, match="not a readable ELF file"):
        compile_source("", record("gfx950"), compiler="clang")
    assert not fresh_cache.exists()


def test_a_compiler_without_end_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_program(tmp_path / "bin", "clang++-30", "exec sleep 60", "clang version 30.0")
    write_program(tmp_path / "bin", "ld.lld-30", "", "LLD 30.0")
    monkeypatch.setenv("PATH", path_with(tmp_path / "bin"))
    with pytest.raises(DsvError, match="did not end within"):
        compile_source("", record("gfx950"), compiler="clang", timeout_s=0.2)


def test_a_newer_compiler_is_another_key(monkeypatch: pytest.MonkeyPatch, fresh_cache: Path) -> None:
    need_module("ziglang")
    zig = hip.hip_compiler("zig")
    for version in (zig.version, f"{zig.version}.1", zig.version):
        monkeypatch.setattr(hip, "hip_compiler", lambda _, text=version: replace(zig, version=text))
        compile_source(source(record("gfx950"), TWO_KERNELS), record("gfx950"))
    assert len(list(fresh_cache.glob("toolchain/kernels/*/*"))) == 2
