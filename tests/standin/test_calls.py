"""`load` and call on AMD GPUs that are not there, through the real runtime: results, parameters, caches, modules."""

from __future__ import annotations

import shutil
import struct
import threading
from pathlib import Path

import pytest
import torch

import dsv4gen
from dsv4gen.base.errors import CaptureError, LoadError
from dsv4gen.base.prebuilt import binary_name, record_name, record_text
from dsv4gen.emulate.standin import images
from dsv4gen.reference.topk_cases import Call
from dsv4gen.reference.topk_rows import WINDOWED
from dsv4gen.verify.standin import Amd, amd
from tests.standin.calls import topk_call
from tests.tools import need_tool

#: target, variant, mode: every value of each, and both variants on both wave sizes
WAYS = (
    ("gfx950", "v2", "page_table"),
    ("gfx950", "v1", "dual"),
    ("gfx942", "v2", "indices"),
    ("gfx942", "v1", "page_table"),
    ("gfx1201", "v2", "dual"),
    ("gfx1201", "v1", "indices"),
)
#: lengths and k: nothing to select, all of a row, less than a row, several strides of the block
SHAPES = ((0, 7), (1, 1), (63, 64), (64, 64), (65, 64), (700, 64), (2049, 512))

#: in the order of the op, and of the kernel's parameters
_TENSORS = ("scores", "seq_lens", "page_table", "out")


def run(here: Amd, call: Call, cache: Path) -> None:
    """Load for the call's mode, call, judge."""
    dsv4gen.load("topk", cache_dir=cache, mode=call.options["mode"])(**call.arguments)
    call.check()
    assert here.gpu.launches[-1].result.problems == ()


@pytest.mark.parametrize(("target", "variant", "mode"), WAYS)
def test_results_equal_the_reference(
    target: str, variant: str, mode: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DSV4GEN_TOPK", variant)
    with amd(target) as here:
        for number, (length, k) in enumerate(SHAPES):
            here.gpu.order = ("ascending", "descending", "random:1")[number % 3]
            run(here, topk_call(length, k, mode, head=number % 4, seq_stride=1 + number % 2), cache)
        assert len(here.gpu.launches) == len(SHAPES)
        short = "" if mode in WINDOWED else "short2_"
        expected = f"topk_{'v1_' if variant == 'v1' else short}{mode}"
        assert {expected} == {launch.symbol.rsplit("_t", 1)[0] for launch in here.gpu.launches}


@pytest.mark.parametrize("extended", [True, False], ids=["ROCm 7", "ROCm 6"])
def test_stream_grid_and_parameters_arrive(extended: bool, cache: Path) -> None:
    call = topk_call()
    with amd("gfx950", extended=extended) as here:
        here.platform.stream = 0x5150
        topk = dsv4gen.load("topk", cache_dir=cache)
        topk(**call.arguments)
        (launch,) = here.gpu.launches
        planned = topk.explain(batch=2, width=call.problem.scores.shape[1], k=64).launches[0]
    assert (launch.symbol, launch.grid, launch.block[0]) == (planned.symbol, planned.grid, planned.block)
    assert launch.stream == 0x5150 and launch.extended is extended and launch.shared_bytes == 0
    (params,) = launch.arguments
    assert struct.unpack_from("<4Q", params) == tuple(_address(call, name) for name in _TENSORS)
    assert set(launch.buffers) == set(_TENSORS)
    assert launch.result.counters["barriers"] > 0


def test_outputs_are_made_when_not_given(cache: Path) -> None:
    call = topk_call()
    given = {name: value for name, value in call.arguments.items() if name != "out"}
    with amd("gfx950"):
        topk = dsv4gen.load("topk", cache_dir=cache)
        made = topk(**given)
        topk(**call.arguments)
    assert torch.equal(made.sort().values, call.problem.out.tensor.sort().values)


def test_a_kernel_is_compiled_once_and_then_cached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("DSV4GEN_LOG", "info")
    for origin in ("compiled", "cache"):
        with amd("gfx950") as here:
            run(here, topk_call(), tmp_path)
        assert f"({origin}, for gfx950)" in caplog.text
        assert caplog.text.count("compiled topk_short2_page_table_t512 for gfx950") == 1


def test_cached_kernels_need_no_compiler(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with amd("gfx950") as here:
        run(here, topk_call(), cache)
    monkeypatch.setenv("DSV4GEN_NO_COMPILE", "1")
    with amd("gfx950", compiler=None) as here:
        run(here, topk_call(), cache)
        with pytest.raises(LoadError, match="DSV4GEN_NO_COMPILE forbids to compile"):
            run(here, topk_call(), tmp_path)


def test_prebuilt_objects_are_disassembled_and_run(
    built: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    need_tool("llvm-objdump-22")
    with amd("gfx950") as here:
        run(here, topk_call(), cache)
        (module,) = here.gpu.modules.values()
        counted = here.gpu.launches[0].result.executed
    shutil.copytree(built / "gfx950", tmp_path / "gfx950")
    source = (tmp_path / "gfx950" / "topk.hip").read_bytes()
    (tmp_path / "gfx950" / binary_name("topk", "gfx950", "hip")).write_bytes(module.binary)
    record = record_text(source, module.binary, "a compiler")
    (tmp_path / "gfx950" / record_name("topk", "gfx950")).write_text(record, encoding="utf-8")
    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(tmp_path))
    monkeypatch.setenv("DSV4GEN_NO_COMPILE", "1")
    monkeypatch.setattr(images, "_assembly", lambda _: None)
    images.kernel.cache_clear()
    monkeypatch.setenv("DSV4GEN_LOG", "info")
    with amd("gfx950", compiler=None) as here:
        run(here, topk_call(), tmp_path / "empty")
        # The machine code is the text's: the same instructions, as often.
        assert [count for count in here.gpu.launches[0].result.executed if count] == [
            count for count in counted if count
        ]
    images.kernel.cache_clear()
    assert "(prebuilt, for gfx950)" in caplog.text


def test_several_modules_are_loaded_at_once(cache: Path) -> None:
    with amd("gfx950") as here:
        loaded = {mode: dsv4gen.load("topk", cache_dir=cache, mode=mode) for mode in ("page_table", "dual")}
        for mode in ("page_table", "dual", "page_table", "dual"):
            call = topk_call(mode=mode)
            loaded[mode](**call.arguments)
            call.check()
        assert len(here.gpu.modules) == 2
        assert [launch.symbol for launch in here.gpu.launches] == [
            "topk_short2_page_table_t512",
            "topk_short2_dual_t512",
        ] * 2


def test_threads_launch_on_one_gpu(cache: Path) -> None:
    calls = [topk_call(length=600 + number) for number in range(4)]
    with amd("gfx950") as here:
        topk = dsv4gen.load("topk", cache_dir=cache)
        threads = [threading.Thread(target=topk, kwargs=dict(call.arguments)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(here.gpu.launches) == len(calls)
    for call in calls:
        call.check()


def test_two_gpus_do_not_share_anything(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_TOPK", "v1")
    with amd("gfx942") as outer:
        old = dsv4gen.load("topk", cache_dir=cache)
        run(outer, topk_call(), cache)
        old(**topk_call().arguments)
        monkeypatch.delenv("DSV4GEN_TOPK")
        with amd("gfx950") as inner:
            run(inner, topk_call(), cache)
            old(**topk_call().arguments)
        assert (len(outer.gpu.launches), len(inner.gpu.launches)) == (3, 1)


def test_prewarm_loads_without_launching_and_capture_needs_it(cache: Path) -> None:
    call = topk_call()
    shape = {"batch": 2, "width": 705, "k": 64, "pages": 45, "page_bits": 4}
    with amd("gfx950") as here:
        here.platform.capturing = True
        with pytest.raises(CaptureError, match="prewarm"):
            dsv4gen.load("topk", cache_dir=cache)
        here.platform.capturing = False
        topk = dsv4gen.prewarm("topk", cache_dir=cache, shapes=[shape])
        assert len(here.gpu.modules) == 1 and not here.gpu.launches
        here.platform.capturing = True
        topk(**call.arguments)
        call.check()


def test_an_op_in_torchs_dispatcher_reaches_the_kernel(cache: Path) -> None:
    call = topk_call()
    tensors = [call.arguments[name] for name in _TENSORS]
    with amd("gfx950") as here:
        dsv4gen.load("topk", cache_dir=cache).select.torch_op(*tensors, page_bits=4)
        call.check()
        assert set(here.gpu.launches[0].buffers) == set(_TENSORS)


def _address(call: Call, name: str) -> int:
    tensor = call.arguments[name]
    assert isinstance(tensor, torch.Tensor)
    return tensor.data_ptr()
