"""NVRTC and hipRTC: slices, template lines, missing and too new libraries; the real NVRTC where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import dsv4gen
from dsv4gen.base.errors import CompileError, ManifestError, ToolMissing
from dsv4gen.runtime import compilers, libraries, platform, sources
from dsv4gen.runtime.platform import HostPlatform
from tests.runtime import stubs, synthetic
from tests.runtime.stubs import StubDriver
from tests.tools import need_module


def test_a_slice_holds_the_sections_and_the_wanted_entries_only() -> None:
    text = synthetic.source_text()
    sliced = sources.slice_source("demo.cu", text, ["demo_large"])
    assert "==== device layer" in sliced.text and "==== kernel body" in sliced.text
    assert "demo_large" in sliced.text and "demo_small" not in sliced.text
    whole, lines = text.splitlines(), sliced.text.splitlines()
    assert [whole[number - 1] for number in sliced.lines] == lines


def test_lines_keep_their_numbers_where_other_entries_are_blanked() -> None:
    text = synthetic.source_text()
    whole, kept = text.split("\n"), sources.blank_others("demo.cu", text, ["demo_large"]).split("\n")
    assert len(kept) == len(whole) and all(line in ("", whole[number]) for number, line in enumerate(kept))
    assert "\n".join(line for line in kept if line) == "\n".join(
        line for line in sources.slice_source("demo.cu", text, ["demo_large"]).text.split("\n") if line
    )


@pytest.mark.parametrize("cut", [sources.slice_source, sources.blank_others])
def test_a_symbol_without_an_entry_is_an_error(cut: Callable[..., object]) -> None:
    with pytest.raises(ManifestError, match=r"demo\.cu has no kernel nothing"):
        cut("demo.cu", synthetic.source_text(), ["nothing"])


@pytest.mark.usefixtures("cuda", "host")
def test_errors_name_the_template_line(generated: Path) -> None:
    text = synthetic.source_text().replace(
        "// ---- entry: demo_large ----\n", "// ---- entry: demo_large ----\n#error no\n"
    )
    synthetic.write_folder(generated, source=text)
    line = text.splitlines().index("#error no") + 1
    dsv4gen.load("demo")(torch.zeros(2, 8), scale=1.0)
    with pytest.raises(CompileError) as caught:
        dsv4gen.load("demo")(torch.zeros(2, 2000), scale=1.0)
    assert str(caught.value.place) == f"templates/hip_cuda/demo.cu.jinja:{line + 100}"
    assert "#error directive" in caught.value.message and "demo_large for sm_90a" in caught.value.message


def test_clang_messages_are_read_too() -> None:
    source = sources.Slice("demo.hip", "a\nb\n", (7, 8))
    log = "demo.hip:2:5: error: use of undeclared identifier 'x'\n  x\n  ^\n1 error generated.\n"
    error = sources.compile_error(source, log, "demo", Path("nowhere"))
    assert str(error.place) == "demo.hip:8" and "undeclared identifier 'x'" in error.message


@pytest.mark.usefixtures("cuda")
def test_an_unknown_architecture_is_refused_in_words(generated: Path) -> None:
    synthetic.write_folder(generated, "sm_77", arch="sm_77")
    with platform.use(HostPlatform("sm_77")), pytest.raises(CompileError, match="invalid option") as caught:
        dsv4gen.load("demo")(torch.zeros(2, 8), scale=1.0)
    assert "newer NVRTC" in str(caught.value)


@pytest.mark.usefixtures("generated", "cuda", "host")
def test_without_a_compiler_the_message_lists_what_was_tried(
    build: stubs.Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "libnvrtc.so.13"
    broken.write_bytes(b"no library")
    stubs.place(monkeypatch, build("libcuda.so.1"), broken)
    with pytest.raises(ToolMissing, match="NVRTC cannot be loaded") as caught:
        dsv4gen.load("demo")(torch.zeros(2, 8), scale=1.0)
    assert str(broken) in str(caught.value) and "pip install nvidia-cuda-nvrtc" in str(caught.value)


@pytest.mark.usefixtures("generated", "host")
def test_a_compiler_newer_than_the_driver_is_left_out(
    cuda: StubDriver, build: stubs.Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda.set("version", 12080)
    with pytest.raises(ToolMissing) as caught:
        dsv4gen.load("demo")(torch.zeros(2, 8), scale=1.0)
    assert "libnvrtc.so.13, newer than the driver (CUDA 12)" in str(caught.value)
    stubs.place(monkeypatch, build("libcuda.so.1"), build("libnvrtc.so.13"), build("libnvrtc.so.12"))
    driver = stubs.open_stub(build("libcuda.so.1"), "cuda")
    driver.set("version", 12080)
    dsv4gen.load("demo")(torch.zeros(2, 8), scale=1.0)
    assert driver.count("launches") == 1


@pytest.mark.usefixtures("generated", "host")
def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stubs.place(monkeypatch)
    with pytest.raises(ToolMissing, match="the CUDA driver cannot be loaded"):
        dsv4gen.load("demo")(torch.zeros(2, 8), scale=1.0)


@pytest.mark.parametrize("runtime", ["libamdhip64.so.7", "libamdhip64.so.6"])
def test_hip_end_to_end_with_and_without_the_extended_launch(
    runtime: str, build: stubs.Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthetic.write_folder(tmp_path / "generated", "gfx942", api="hip", arch="gfx942")
    library = build(runtime)
    stubs.place(monkeypatch, library, build("libhiprtc.so.7"))
    driver = stubs.open_stub(library, "hip")
    here = HostPlatform("gfx942:sramecc+:xnack-")
    here.stream = 0x77
    with platform.use(here):
        demo = dsv4gen.load("demo")
        demo(torch.zeros(3, 8), scale=1.0)
        demo(torch.zeros(3, 8192), scale=1.0, scratch=torch.zeros(4096, dtype=torch.uint8))
    extended = runtime.endswith("7")
    first, *rest = driver.launches()
    assert (first.stream, tuple(first.grid), tuple(first.block)) == (0x77, (3, 1, 1), (128, 1, 1))
    assert bool(first.extended) is extended
    symbols = [driver.symbol(launch) for launch in rest]
    assert symbols == (["demo_pool", "demo_large"] if extended else ["demo_large"]), "no extended launch: no clusters"


def test_finding_looks_at_names_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a b" / "ü'$(touch x)"
    folder.mkdir(parents=True)
    for name in ("libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc-builtins.so.13.0", "libnvrtc.so.13.alt"):
        (folder / name).touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    mine = [found for found in libraries.find(libraries.NVRTC) if Path(found.name).parent == folder]
    assert [(Path(found.name).name, found.major) for found in mine] == [("libnvrtc.so.13", 13), ("libnvrtc.so.12", 12)]


def test_the_real_compiler(tmp_path: Path) -> None:
    need_module("nvidia.cu13")
    synthetic.write_folder(tmp_path / "generated")
    compiler = compilers.open_compiler("cuda")
    text = synthetic.source_text()
    sliced = sources.slice_source("demo.cu", text, ["demo_small"])
    binary = compiler.compile(sliced, "sm_90a", "demo_small", tmp_path / "generated" / "sm_90")
    assert binary[:4] == b"\x7fELF" and binary[18] == 190 and b"demo_small" in binary
    wrong = sources.slice_source("demo.cu", text.replace("p.scale", "p.scal"), ["demo_small"])
    with pytest.raises(CompileError, match="scal") as caught:
        compiler.compile(wrong, "sm_90a", "demo_small", tmp_path / "generated" / "sm_90")
    assert str(caught.value.place).startswith("templates/hip_cuda/demo.cu.jinja:1")
