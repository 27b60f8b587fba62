"""sglang's top-k calls over the stand-in driver and the reference."""

from __future__ import annotations

import inspect
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from dsv4gen.base.errors import ArgumentError, CaptureError
from dsv4gen.compat import sglang
from dsv4gen.reference.topk import Selection, check_selection
from dsv4gen.reference.topk_rows import Rows
from dsv4gen.runtime import platform
from dsv4gen.runtime.platform import HostPlatform
from dsv4gen.runtime.workspaces import WorkspacePool
from tests.runtime import stubs, synthetic

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("compat") / "generated"
    command = [sys.executable, "-m", "dsv4gen", "build", "--target", "sm_90", "--family", "topk", "--out", str(root)]
    subprocess.run(command, check=True, cwd=ROOT)
    return root


@pytest.fixture(autouse=True)
def places(generated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(generated))
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("DSV4GEN_REGENERATE", "0")
    monkeypatch.delenv("DSV4GEN_TARGET", raising=False)
    monkeypatch.setattr(sglang, "_loaded", {})
    monkeypatch.setattr(sglang, "_workspaces", WorkspacePool())


@pytest.fixture
def cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> stubs.StubDriver:
    driver, compiler = (stubs.build_library(tmp_path, name) for name in ("libcuda.so.1", "libnvrtc.so.13"))
    stubs.place(monkeypatch, driver, compiler)
    stub = stubs.open_stub(driver, "cuda")
    stub.set("params_bytes", 144)
    return stub


@pytest.fixture
def host() -> Iterator[HostPlatform]:
    here = HostPlatform("sm_90")
    with platform.use(here):
        yield here


def _inputs(batch: int = 2, width: int = 300, k: int = 16) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    table = torch.arange(batch * 8, dtype=torch.int32).view(batch, 8)
    return {
        "scores": torch.randn(batch, width, generator=generator),
        "seq_lens": torch.tensor([width, 3][:batch], dtype=torch.int32),
        "page_tables": table,
        "out_page_indices": torch.zeros(batch, k, dtype=torch.int32),
        "page_size": 64,
    }


def _call(inputs: dict[str, Any], **more: Any) -> None:
    sglang.topk_transform_paged_v2(**inputs, metadata=sglang.plan_topk_v2(inputs["seq_lens"]), **more)


def test_signatures_are_sglangs() -> None:
    def names(function: Any) -> str:
        return ", ".join(str(p.replace(annotation=p.empty)) for p in inspect.signature(function).parameters.values())

    assert names(sglang.plan_topk_v2) == "seq_lens, static_threshold=-1"
    paged = "scores, seq_lens, page_tables, out_page_indices, page_size, metadata, out_raw_indices=None"
    assert names(sglang.topk_transform_paged_v2) == paged
    assert names(sglang.topk_transform_ragged_v2) == "scores, seq_lens, out_offsets, out_indices, row_starts=None"
    keyword = inspect.signature(sglang.topk_transform_ragged_v2).parameters["out_offsets"]
    assert keyword.kind is keyword.KEYWORD_ONLY


def test_the_plan_has_a_row_per_batch_row_and_one() -> None:
    plan = sglang.plan_topk_v2(torch.zeros(5, dtype=torch.int32))
    assert plan.shape == (6, 2) and plan.dtype is torch.int32


@pytest.mark.usefixtures("host")
def test_the_mode_follows_from_the_tensors(cuda: stubs.StubDriver) -> None:
    inputs = _inputs()
    raw = torch.zeros_like(inputs["out_page_indices"])
    _call(inputs)
    _call({**inputs, "page_tables": None})
    _call(inputs, out_raw_indices=raw)
    kinds = [cuda.symbol(launch).rsplit("_t", 1)[0] for launch in cuda.launches()]
    assert kinds == ["topk_short2_page_table", "topk_short2_indices", "topk_short2_dual"]
    pointers = struct.unpack_from("<QQQQQ", bytes(cuda.launches()[2].params))
    tensors = (inputs["scores"], inputs["seq_lens"], inputs["page_tables"], inputs["out_page_indices"], raw)
    assert list(pointers) == [tensor.data_ptr() for tensor in tensors]
    assert struct.unpack_from("<IIIII", bytes(cuda.launches()[2].params), 88) == (2, 300, 16, 8, 6)


@pytest.mark.usefixtures("cuda", "host")
def test_wrong_calls() -> None:
    with pytest.raises(ArgumentError, match="page_size is 48"):
        _call({**_inputs(), "page_size": 48})
    with pytest.raises(ArgumentError, match="out_raw_indices needs page_tables"):
        _call({**_inputs(), "page_tables": None}, out_raw_indices=torch.zeros(2, 16, dtype=torch.int32))
    with pytest.raises(ArgumentError, match="page_table is int64"):
        _call({**_inputs(), "page_tables": torch.zeros(2, 8, dtype=torch.int64)})
    lengths, out = torch.zeros(2, dtype=torch.int32), torch.zeros(2, 4, dtype=torch.int32)
    with pytest.raises(ArgumentError, match="out_offsets has size 3 in dimension 0; batch is 2"):
        sglang.topk_transform_ragged_v2(
            torch.zeros(2, 8), lengths, out_offsets=torch.zeros(3, dtype=torch.int32), out_indices=out
        )
    with pytest.raises(ArgumentError, match="row_starts is int64"):
        sglang.topk_transform_ragged_v2(
            torch.zeros(2, 8), lengths, out_offsets=lengths, out_indices=out, row_starts=lengths.long()
        )
    with pytest.raises(ArgumentError, match="mode 'pages' is not one of"):
        sglang.prewarm(modes=["pages"])


@pytest.mark.usefixtures("host")
def test_the_ragged_call_passes_windows(cuda: stubs.StubDriver) -> None:
    scores = torch.randn(2, 300)
    starts, lengths, offsets = (torch.tensor(values, dtype=torch.int32) for values in ([7, 1], [200, 3], [1000, 0]))
    out = torch.zeros(2, 16, dtype=torch.int32)
    for row_starts in (starts, None):
        sglang.topk_transform_ragged_v2(scores, lengths, out_offsets=offsets, out_indices=out, row_starts=row_starts)
    assert [cuda.symbol(launch) for launch in cuda.launches()] == ["topk_ragged_t512"] * 2
    params = [bytes(launch.params) for launch in cuda.launches()]
    address = struct.unpack_from("<QQQQ", params[0])
    assert address == (scores.data_ptr(), lengths.data_ptr(), 0, out.data_ptr())
    assert struct.unpack_from("<QQQ", params[0], 112) == (starts.data_ptr(), offsets.data_ptr(), 0)
    assert struct.unpack_from("<QQQ", params[1], 112) == (0, offsets.data_ptr(), 0)


def test_the_reference_selects_in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_TARGET", "reference")
    scores = torch.arange(20.0).view(2, 10)
    words = [torch.tensor(values, dtype=torch.int32) for values in ([2, 0], [5, 2], [100, -1])]
    out = torch.zeros(2, 3, dtype=torch.int32)
    sglang.topk_transform_ragged_v2(scores, words[1], out_offsets=words[2], out_indices=out, row_starts=words[0])
    assert out.tolist() == [[104, 103, 102], [-1, 0, -1]]


def test_prewarmed_calls_may_be_captured(cuda: stubs.StubDriver, host: HostPlatform) -> None:
    shape = {"batch": 2, "width": 300, "k": 16}
    sglang.prewarm(shapes=[shape])
    modules = cuda.count("modules")
    host.capturing = True
    _call(_inputs())
    assert cuda.count("modules") == modules == 1 and cuda.count("launches") == 1
    with pytest.raises(CaptureError, match=r"dsv4gen\.prewarm\('topk'"):
        _call({**_inputs(), "page_tables": None})


def test_the_reference_answers_behind_the_same_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_TARGET", "reference")
    inputs = _inputs()
    raw = torch.zeros_like(inputs["out_page_indices"])
    _call(inputs, out_raw_indices=raw)
    rows = Rows(inputs["scores"], inputs["seq_lens"], "dual", page_table=inputs["page_tables"], page_bits=6)
    check_selection(Selection(inputs["out_page_indices"], raw), rows)


def test_workspaces_are_owned_per_device_and_stream(
    cuda: stubs.StubDriver, host: HostPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dsv4gen

    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(tmp_path / "generated"))
    synthetic.write_folder(tmp_path / "generated")
    op = dsv4gen.load("demo").op()
    pool, cpu = WorkspacePool(), torch.device("cpu")
    first = pool.get(op, cpu, 1, rows=4, width=8192)
    assert first["scratch"].nbytes == 1024 and not first["scratch"].any()
    assert pool.get(op, cpu, 1, rows=2, width=8192) is first
    assert pool.get(op, cpu, 2, rows=4, width=8192) is not first
    larger = pool.get(op, cpu, 1, rows=8, width=8192)
    assert larger["scratch"].nbytes == 2048 and pool._kept == [first]
    host.capturing = True
    assert pool.get(op, cpu, 1, rows=4, width=8192) is larger
    with pytest.raises(CaptureError, match="too small"):
        pool.get(op, cpu, 1, rows=9, width=8192)
    assert cuda.count("launches") == 0
