"""`build --compile`: whole code objects that the runtime takes; a compiler that dies leaves the rest built (BL-13)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dsv4gen.base import env, extensions
from dsv4gen.base.errors import DsvError, ManifestError, ToolMissing
from dsv4gen.base.target_id import parse
from dsv4gen.emit.build import Request, build
from dsv4gen.emit.compile import Compiled, compile_folders
from dsv4gen.runtime.cache import Cache
from dsv4gen.runtime.driver_backend import kernel_source
from dsv4gen.runtime.selection import choose, own_architecture
from dsv4gen.scaffold.family import new_family
from dsv4gen.spec import load_specs
from dsv4gen.target import resolve_all
from tests.specs import Copy, copy_specs, tree_bytes
from tests.toolchain.stubs import path_with, write_program
from tests.tools import need_module, need_tool

TARGETS = ("gfx1201", "gfx950")
FAMILY = "tiny"


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copy:
    """Private specs and an extension with one small family, built for TARGETS; this process sees them too."""
    need_tool("clang++-22")
    copied = copy_specs(tmp_path)
    new_family(FAMILY, folder=tmp_path / "ext")
    monkeypatch.setenv(env.EXTENSIONS.name, str(tmp_path / "ext"))
    for name, value in copied.environment().items():
        monkeypatch.setenv(name, value)
    build(Request(TARGETS, (FAMILY,)))
    return copied


def compile_all(copy: Copy) -> Compiled:
    return compile_folders([copy.generated / target for target in TARGETS])


def shown(compiled: Compiled) -> list[tuple[str, str, str, bool]]:
    return [(file.target, file.device, file.file, file.changed) for file in compiled.files]


def test_every_device_that_shares_the_source_gets_its_object(copy: Copy) -> None:
    compiled = compile_all(copy)
    assert compiled.errors == ()
    assert shown(compiled) == [
        ("gfx1201", "gfx1201", "tiny.gfx1201.hsaco", True),
        ("gfx1201", "gfx1200", "tiny.gfx1200.hsaco", True),
        ("gfx950", "gfx950", "tiny.gfx950.hsaco", True),
    ]


def test_objects_leave_the_manifest_and_the_sources_alone(copy: Copy) -> None:
    before = tree_bytes(copy.generated)
    compile_all(copy)
    after = tree_bytes(copy.generated)
    assert {name: after[name] for name in before} == before
    assert copy.run("build", "--check", "--target", "gfx950", "--family", FAMILY).returncode == 0
    assert copy.run("build", "--target", "gfx950", "--family", FAMILY).stdout.startswith("nothing to do")
    assert tree_bytes(copy.generated) == after


@pytest.mark.parametrize("device", ["gfx1201", "gfx1200", "gfx950:sramecc+:xnack-"])
def test_the_runtime_takes_them(copy: Copy, tmp_path: Path, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_all(copy)
    monkeypatch.setenv(env.NO_COMPILE.name, "1")
    accepted = choose(FAMILY, parse(device), "a test", copy.generated)
    source = kernel_source(FAMILY, accepted, Cache((tmp_path / "none",)), None)
    assert source.get("tiny_t64").origin == "prebuilt"
    assert source.get("tiny_t256").origin == "prebuilt"


def test_names_are_those_the_runtime_asks_for() -> None:
    for record in resolve_all(load_specs(*extensions.spec_folders())):
        for device in record.also:
            own, other = ((one.compile.clang or one.compile.nvrtc or "") for one in (record, device))
            assert own_architecture(own, parse(device.device)) == other


def test_what_is_current_is_not_compiled_again(copy: Copy) -> None:
    compile_all(copy)
    assert not any(file.changed for file in compile_all(copy).files)
    damaged = copy.generated / "gfx950" / "tiny.gfx950.hsaco"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    assert [file.file for file in compile_all(copy).files if file.changed] == ["tiny.gfx950.hsaco"]
    template = copy.folder / "ext" / "templates" / "hip_cuda" / "tiny.cu.jinja"
    template.write_text(template.read_text(encoding="utf-8").replace("> 0.0f", "> 1.0f"), encoding="utf-8")
    build(Request(TARGETS, (FAMILY,)))
    assert all(file.changed for file in compile_all(copy).files)


def test_an_edited_source_is_not_compiled(copy: Copy) -> None:
    (copy.generated / "gfx950" / "tiny.hip").write_text("// mine\n", encoding="utf-8")
    with pytest.raises(ManifestError, match=r"tiny\.hip \(edited\)"):
        compile_all(copy)


def crashing_clang(folder: Path) -> str:
    """A search path whose newest clang dies on gfx1201 and is the real one otherwise."""
    real = need_tool("clang++-22")
    body = f'case "$*" in *gfx1201*) kill -SEGV $$ ;; esac\nexec {real} "$@"'
    write_program(folder, "clang++-30", body, version="clang version 30.0.0")
    return path_with(folder)


def test_a_compiler_that_dies_for_one_target_leaves_the_others_built(copy: Copy, tmp_path: Path) -> None:
    words = ["--target", "gfx1201", "--target", "gfx950", "--family", FAMILY]
    done = copy.run("build", "--compile", *words, PATH=crashing_clang(tmp_path / "bin"))
    assert done.returncode == 3
    assert "killed by signal 11" in done.stderr and "Traceback" not in done.stderr
    assert "tiny.hip for gfx1201 (tiny_t64, tiny_t256)" in done.stderr
    assert "command: clang++-30 -x hip" in done.stderr
    assert "compiler='zig'" in done.stderr
    objects = {name for name in tree_bytes(copy.generated) if name.endswith(".hsaco")}
    assert objects == {"gfx1201/tiny.gfx1200.hsaco", "gfx950/tiny.gfx950.hsaco"}
    assert not any("staged" in name or name.endswith("tiny.gfx1201.json") for name in tree_bytes(copy.generated))


def test_another_compiler_can_be_named_after_a_crash(copy: Copy, tmp_path: Path) -> None:
    need_module("ziglang")
    path = crashing_clang(tmp_path / "bin")
    done = copy.run("build", "--compile", "--compiler", "zig", "--json", "--target", "gfx1201", "-f", FAMILY, PATH=path)
    assert done.returncode == 0, done.stderr
    assert {file["compiler"] for file in json.loads(done.stdout)["compiled"]} == {"zig"}


def test_without_a_compiler_only_this_step_fails(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    """BL-35: sources are built; what is missing is named."""
    monkeypatch.setenv("PATH", str(copy.folder))
    monkeypatch.setattr("dsv4gen.toolchain.locate.find_zig", lambda: None)
    compiled = compile_all(copy)
    assert compiled.files == ()
    assert {type(error) for error in compiled.errors} == {ToolMissing}
    assert all("clang" in str(error) and error.remedy for error in compiled.errors)


def test_an_unwritable_folder_is_an_error_of_its_own(copy: Copy, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("dsv4gen.emit.compile.replace_file", refuse)
    errors: tuple[DsvError, ...] = compile_all(copy).errors
    assert len(errors) == 3
    assert all("cannot write" in str(error) for error in errors)


def test_exclusive_flags_are_refused(copy: Copy) -> None:
    done = copy.run("build", "--check", "--compile", "--target", "gfx950")
    assert done.returncode == 2
    assert "exclude each other" in done.stderr
