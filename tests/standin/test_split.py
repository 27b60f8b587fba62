"""Split rows through the real runtime on GPUs that are not there: workspaces asked for, checked, owned, restored."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import dsv4gen
from dsv4gen.base.errors import ArgumentError, CaptureError
from dsv4gen.compat import sglang
from dsv4gen.runtime.workspaces import WorkspacePool
from dsv4gen.verify.standin import amd
from tests.standin.calls import topk_call

SHAPE = {"batch": 2, "width": 41005, "k": 512}
ROW = 32896


@pytest.fixture(autouse=True)
def kernels(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(cache))
    monkeypatch.setattr(sglang, "_loaded", {})
    monkeypatch.setattr(sglang, "_workspaces", WorkspacePool())


def test_the_loaded_op_says_how_much_it_needs_and_leaves_zero() -> None:
    with amd("gfx942", units=64, order="random:3") as here:
        op = dsv4gen.load("topk").op()
        assert op.workspace_bytes(**SHAPE) == {"workspace": 2 * ROW}
        assert op.workspace_bytes(batch=2, width=4096, k=512) == {"workspace": 0}
        spaces = op.make_workspaces("cpu", **SHAPE)
        for length in (41000, 20000, 300):
            call = topk_call(length, 512)
            padded = {**call.arguments, "scores": torch.nn.functional.pad(call.problem.scores, (0, 41005 - length - 5))}
            op(**padded, **spaces)
            call.check()
            assert not spaces["workspace"].any()
    symbols = {launch.symbol.rsplit("_page", 1)[0] for launch in here.gpu.launches}
    assert symbols == {"topk_split_count", "topk_split_select"}


def test_wrong_workspaces_are_refused_before_anything_runs() -> None:
    with amd("gfx950", units=64) as here:
        op = dsv4gen.load("topk").op()
        call = topk_call(41000, 512)
        with pytest.raises(ArgumentError, match=f"workspace has 0 bytes, {2 * ROW} are needed") as missing:
            op(**call.arguments)
        assert "workspace_bytes(...)" in str(missing.value.remedy)
        right = torch.zeros(2 * ROW + 16, dtype=torch.uint8)
        with pytest.raises(ArgumentError, match=f"workspace has {2 * ROW - 1} bytes"):
            op(**call.arguments, workspace=right[: 2 * ROW - 1])
        with pytest.raises(ArgumentError, match="multiple of 16"):
            op(**call.arguments, workspace=right[4 : 4 + 2 * ROW])
        with pytest.raises(ArgumentError, match="not contiguous"):
            op(**call.arguments, workspace=torch.zeros(4 * ROW, dtype=torch.uint8)[::2])
        assert here.gpu.launches == []


def test_the_sglang_calls_own_a_workspace_per_stream() -> None:
    with amd("gfx950", units=64) as here:
        sglang.prewarm(shapes=[SHAPE])
        here.platform.capturing = True
        for _ in range(2):
            call = topk_call(41000, 512)
            given = call.arguments
            sglang.topk_transform_paged_v2(
                given["scores"], given["seq_lens"], given["page_table"], given["out"], 1 << 4, None
            )
            call.check()
        with pytest.raises(CaptureError, match="too small"):
            wide = torch.zeros(3, 50000)
            lengths, table = torch.zeros(3, dtype=torch.int32), torch.zeros(3, 3125, dtype=torch.int32)
            sglang.topk_transform_paged_v2(wide, lengths, table, torch.zeros(3, 512, dtype=torch.int32), 16, None)
        (owned,) = sglang._workspaces._sets.values()
        assert owned["workspace"].nbytes == 2 * ROW and not owned["workspace"].any()
