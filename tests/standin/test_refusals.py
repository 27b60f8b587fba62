"""What must not run, or runs wrong: every failure reaches the user as a message that names the cause."""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

import pytest
import torch

import dsv4gen
from dsv4gen.base.errors import ArgumentError, CompileError, DriverError, LoadError, ToolMissing
from dsv4gen.emulate.standin import libraries, memory
from dsv4gen.runtime.driver_backend import shared_driver
from dsv4gen.verify.standin import amd
from tests.standin.calls import plant, topk_call

ROOT = Path(__file__).parents[2]
TEMPLATE = "templates/hip_cuda/topk.cu.jinja"
_PAGE = "load_scalar(output.table + (static_cast<u32>(position) >> output.page_bits))"
#: how short rows look their pages up, and where
_SHORT_TEMPLATE = "templates/hip_cuda/topk_short.cu.jinja"
_SHORT_PAGE = "load_scalar(output.table + (inside >> output.page_bits))"
_WAVE_SUM = "if (warp_lane() == 0) warp_totals[warp_id()] = total;\n  block_barrier();"


def test_wrong_arguments_launch_nothing(cache: Path) -> None:
    arguments = dict(topk_call().arguments)
    wrong = {**arguments, "seq_lens": torch.zeros(3, dtype=torch.int64), "page_bits": -1}
    with amd("gfx950") as here:
        with pytest.raises(ArgumentError) as caught:
            dsv4gen.load("topk", cache_dir=cache)(**wrong)
        assert not here.gpu.launches and not here.gpu.modules
    for word in ("seq_lens", "int64", "page_bits"):
        assert word in str(caught.value)


def test_out_of_bounds_is_a_launch_failure_with_tensor_and_line(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(built, tmp_path / "bad", "gfx950", _SHORT_PAGE, "load_scalar(output.table + inside)")
    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(tmp_path / "bad"))
    with amd("gfx950") as here:
        topk = dsv4gen.load("topk", cache_dir=tmp_path / "cache")
        with pytest.raises(DriverError) as caught:
            topk(**topk_call().arguments)
        assert here.gpu.launches[0].result.error
        good = topk_call(length=3, k=2)  # positions below the number of pages: the bug cannot show
        topk(**good.arguments)
    text = str(caught.value)
    failure = "hipErrorLaunchFailure (719): topk_short2_page_table_t512: global access out of"
    assert f"launching topk.select: {failure}" in text
    assert re.search(r"\d+ bytes past the end of page_table \(\d+ bytes\)", text)
    line = _line_of(tmp_path / "bad" / "gfx950" / "topk.hip", "load_scalar(output.table + inside)")
    assert f"topk.hip:{line} = {_SHORT_TEMPLATE}:{_line_of(ROOT / _SHORT_TEMPLATE, _SHORT_PAGE)}" in text
    # The entry's own line, which the slice that was compiled has elsewhere than the whole file.
    assert f"= {TEMPLATE}:{_line_of(ROOT / TEMPLATE, 'select_short_row<Mode::')}" in text


def test_a_race_is_a_launch_failure(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(built, tmp_path / "bad", "gfx950", _WAVE_SUM, _WAVE_SUM.replace("block_barrier();", ""))
    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(tmp_path / "bad"))
    with amd("gfx950"), pytest.raises(DriverError, match="LDS race") as caught:
        dsv4gen.load("topk", cache_dir=tmp_path / "cache")(**topk_call().arguments)
    assert "hipErrorLaunchFailure" in str(caught.value)


def test_a_compile_error_names_the_template_line(built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(built, tmp_path / "bad", "gfx950", _PAGE, _PAGE.replace("output.table", "outptu.table"))
    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(tmp_path / "bad"))
    with amd("gfx950") as here, pytest.raises(CompileError) as caught:
        dsv4gen.load("topk", cache_dir=tmp_path / "cache")(**topk_call().arguments)
    assert not here.gpu.modules
    assert caught.value.place is not None
    assert str(caught.value.place) == f"{TEMPLATE}:{_line_of(ROOT / TEMPLATE, _PAGE)}"
    assert "use of undeclared identifier 'outptu'" in str(caught.value)
    assert "topk_short2_page_table_t512 for gfx950, hipRTC 7.0" in str(caught.value)


def test_without_hiprtc_the_remedy_is_named(tmp_path: Path) -> None:
    with amd("gfx950", compiler=None) as here:
        topk = dsv4gen.load("topk", cache_dir=tmp_path)
        with pytest.raises(ToolMissing, match="hipRTC cannot be loaded on this machine"):
            topk(**topk_call().arguments)
        assert not here.gpu.modules


def test_hiprtc_without_clang_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with amd("gfx950", compiler="clang"):
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(CompileError, match=r"no clang\+\+ on the search path"):
            dsv4gen.load("topk", cache_dir=tmp_path)(**topk_call().arguments)


def test_kernels_of_another_target_are_refused(cache: Path) -> None:
    with amd("gfx942") as here:
        with pytest.raises(LoadError, match=r"loaded for gfx950, whose code \(gfx950\) does not run on"):
            dsv4gen.load("topk", target="gfx950", cache_dir=cache)(**topk_call().arguments)
        assert not here.gpu.modules


def test_the_driver_refuses_foreign_and_broken_code(cache: Path) -> None:
    with amd("gfx950") as here:
        dsv4gen.load("topk", cache_dir=cache)(**topk_call().arguments)
        (image,) = here.gpu.modules.values()
        driver = shared_driver("hip")
        with pytest.raises(DriverError, match=r"hipErrorNotFound \(500\): no kernel 'absent' in the module"):
            driver.function(next(iter(here.gpu.modules)), "absent")
        with pytest.raises(DriverError, match=r"hipErrorInvalidHandle \(400\): 0x1 is no loaded module"):
            driver.function(1, "topk_short2_page_table_t512")
    with amd("gfx942"):
        driver = shared_driver("hip")
        with pytest.raises(DriverError, match=r"hipErrorNoBinaryForGpu \(209\): the code object is for gfx950"):
            driver.load_module(0, image.binary, "a foreign module")
        with pytest.raises(DriverError, match=r"hipErrorInvalidImage \(200\)"):
            driver.load_module(0, b"no code object", "a text")
        with pytest.raises(DriverError, match=r"hipErrorInvalidDevice \(101\): invalid device ordinal"):
            driver.load_module(1, image.binary, "a module on another device")


def test_after_the_block_there_is_no_device(cache: Path) -> None:
    call = topk_call()
    with amd("gfx950"):
        topk = dsv4gen.load("topk", cache_dir=cache)
        topk(**call.arguments)
    with pytest.raises(DriverError, match=r"hipErrorNoDevice \(100\)"):
        topk(**call.arguments)


def test_an_unconnected_library_has_no_device(tmp_path: Path) -> None:
    driver = libraries.place_driver(tmp_path, extended=True)
    assert driver.hipInit(0) == driver.hipSetDevice(0) == 100
    rtc = libraries.place_compiler(tmp_path, "")
    program = ctypes.c_void_p()
    assert rtc.hiprtcCreateProgram(ctypes.byref(program), b"", b"a.hip", 0, None, None) == 0
    assert rtc.hiprtcCompileProgram(program, 0, None) == 11
    assert rtc.hiprtcDestroyProgram(ctypes.byref(program)) == 0


def test_memory_is_what_the_innermost_caller_holds() -> None:
    whole = torch.zeros(64)
    inside = whole[8:16]

    def innermost(given: torch.Tensor, address: int) -> list[tuple[str, int]]:
        assert given.numel() == 8
        found = memory.buffers_behind([address, 0xDEAD0000], sys._getframe())
        return [(buffer.name, buffer.size) for buffer in found]

    assert innermost(inside, inside.data_ptr()) == [("given", 32)]
    assert innermost(whole[:8], inside.data_ptr()) == [("inside", 32)]
    assert innermost(inside, whole.data_ptr() + 4) == [("whole", 256)]
    assert memory.words([bytes(8), (7).to_bytes(8, "little") + b"tail"]) == {7}


def _line_of(path: Path, text: str) -> int:
    lines = path.read_text(encoding="utf-8").splitlines()
    (found,) = (number for number, line in enumerate(lines, 1) if text in line)
    return found
