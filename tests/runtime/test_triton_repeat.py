"""Triton ops called again: the launcher gets the same, tests are not skipped, and captures never compile."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dsv4gen
from dsv4gen.base.errors import ArgumentError, CaptureError
from dsv4gen.runtime import triton_launch
from dsv4gen.runtime.platform import HostPlatform, use
from dsv4gen.runtime.read_table import make_table
from tests.checkout import ROOT
from tests.runtime import synthetic
from tests.runtime.test_triton import write_triton

pytestmark = pytest.mark.usefixtures("host")
MODULE = """\
TRITON_RANGE = ("3.0", "99.0")
calls = []

def run(*, data, out, scale=2.0, scratch=None, mode="none", tile=None):
    calls.append({"data": data, "out": out, "scale": scale, "scratch": scratch, "mode": mode, "tile": tile})
"""


@pytest.fixture
def demo(tmp_path: Path) -> Any:
    """The demo family's op."""
    write_triton(tmp_path / "generated", MODULE, "tiled_demo")
    return dsv4gen.load("tiled_demo").run


def _hits(op: Any) -> list[int]:
    return [len(memory.hits) for memory in op.raw.__globals__["_memories"].known]


def _last(op: Any) -> dict[str, Any]:
    found: dict[str, Any] = op._backend.module.calls[-1]
    return found


def test_a_repeated_call_passes_what_the_first_one_passed(demo: Any) -> None:
    for number in range(3):
        data, out = torch.zeros(16, 16), torch.zeros(16)
        assert demo(data, out, scale=3.0) is out
        last = _last(demo)
        assert last["data"] is data and last["out"] is out and last["scale"] == 3.0 and last["mode"] == "plain"
        assert _hits(demo) == [number > 0]


def test_numbers_workspaces_and_choices_of_the_launcher_are_not_mixed_up(demo: Any) -> None:
    data, out, scratch = torch.zeros(16, 16), torch.zeros(16), torch.zeros(64, dtype=torch.uint8)
    for _ in range(2):
        for more in ({}, {"scale": 3.0}, {"scratch": scratch}, {"tile": 7}, {"tile": "wide"}):
            demo(data, out, **more)
            assert {name: value for name, value in _last(demo).items() if name in ("scale", "scratch", "tile")} == {
                "scale": 2.0,
                "scratch": None,
                "tile": None,
                **more,
            }
    assert sum(_hits(demo)) >= 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"data": torch.zeros(16, 16).double()}, "data is float64"),
        ({"out": torch.zeros(17)}, "out has size 17"),
        ({"data": None}, "data is missing"),
        ({"scale": "3"}, "scale is '3', not a number"),
        ({"sale": 3}, "no argument 'sale'"),
        ({"data": torch.zeros(16, 32)[:, ::2]}, "data has stride 2"),
    ],
)
def test_a_wrong_call_is_refused_after_right_ones(demo: Any, wrong: dict[str, Any], message: str) -> None:
    call = {"data": torch.zeros(16, 16), "out": torch.zeros(16), "scale": 1.5}
    demo(**call)
    demo(**call)
    with pytest.raises(ArgumentError, match=message):
        demo(**{**call, **wrong})
    assert len(demo._backend.module.calls) == 2


def test_a_capture_takes_no_address_that_compiles_anew(demo: Any, host: HostPlatform) -> None:
    space = torch.zeros(16 * 16 + 4)
    shift = -(space.data_ptr() // 4) % 4
    aligned, shifted = (space[start : start + 256].view(16, 16) for start in (shift, shift + 1))
    out = torch.zeros(16)
    demo(aligned, out, scale=1.5)
    host.capturing = True
    demo(aligned, out, scale=1.5)
    assert _hits(demo) == [1]
    with pytest.raises(CaptureError, match="would be compiled now"):
        demo(shifted, out, scale=1.5)


def _launch_lines(amd: bool, out_stride: str | int = 1) -> list[str]:
    """What the demo's launch function does once its arguments are known."""
    family = synthetic.demo_family()
    family["ops"]["run"]["tensors"][2]["strides"] = [out_stride]
    launcher = {"required": ["data", "out"], "defaults": {"scale": 2.0, "scratch": None}}
    entry = {**family, "language": "triton", "launchers": {"run": launcher}}
    ending = triton_launch.TritonLaunch(make_table("demo", entry, "run", {"mode": "plain"}), amd=amd)
    return [*ending.conditions, *ending.launch("", lambda _: ["remember()"])]


def test_an_inner_stride_of_one_is_a_class_of_its_own() -> None:
    """Triton compiles a stride of 1 as a constant; a multiple of 16 is another kernel."""
    text = "\n".join(_launch_lines(amd=False, out_stride="out_stride"))
    classes: set[object] = set()
    for out in (torch.zeros(4), torch.zeros(64)[::16], torch.zeros(12)[::3]):
        names = {"data": torch.zeros(4, 16), "out": out, "scratch": None, "scale": 1.0, "_device": -1}
        addresses = {"_at_data": 0, "_at_out": 0, "_at_scratch": 0}
        calls = {"_warm": classes, "_cold": list, "_launcher": dict, "remember": list}
        exec(text, {**names, **addresses, **calls})
    assert len(classes) == 3


def test_amd_captures_ask_for_the_memory_behind_a_tensor() -> None:
    amd, other = ("\n".join(_launch_lines(amd)) for amd in (True, False))
    assert "data.untyped_storage().nbytes() > 2147483647" in amd and "not _capturing()" in amd
    assert "untyped_storage" not in other and "_capturing" not in other


def test_an_output_may_be_its_input_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(ROOT / "generated"))
    with use(HostPlatform("sm_90")):
        op = dsv4gen.load("qk_norm_rope").op("q_norm_rope")
        seen = _stubbed(op, "q_norm_rope", monkeypatch)
        q, cosines, positions = torch.zeros(2, 4, 512).bfloat16(), torch.zeros(8, 64), torch.zeros(2, dtype=torch.int64)
        other = torch.zeros_like(q)
        for out in (q, other, q, other):
            op(q, cosines, positions, q_out=out)
            assert seen[-1]["q"] is q and seen[-1]["q_out"] is out
        assert _hits(op) == [1, 1]


@pytest.mark.parametrize("family", ["gather_dequant", "sparse_decode", "qk_norm_rope", "indexer_logits", "compress"])
def test_every_case_of_the_families_is_passed_on_alike_by_every_way(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = importlib.import_module(f"dsv4gen.reference.{family}_cases").verification_cases(full=False)
    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(ROOT / "generated"))
    short = 0
    with use(HostPlatform("sm_90")):
        for case in cases:
            op = dsv4gen.load(family, **case.options).op(case.op)
            assert {*op.table.defaults, *op.table.required_numbers}.isdisjoint(case.options)
            seen = _stubbed(op, case.op, monkeypatch)
            call = {name: value for name, value in case.arguments.items() if name not in case.options}
            if not any(isinstance(value, torch.Tensor) for value in call.values()):
                continue
            op.raw(**call)
            op.raw(**call)
            op.torch_op(**call)
            first, *others = seen
            for other in others:
                assert first.keys() == other.keys()
                assert all(first[name] is other[name] or first[name] == other[name] for name in first)
            short += sum(len(memory.hits) for memory in op.raw.__globals__["_memories"].known)
    assert short > 0


def test_a_compiled_function_holds_a_triton_op(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(ROOT / "generated"))
    torch._dynamo.reset()
    with use(HostPlatform("sm_90")):
        gather = dsv4gen.load("gather_dequant").op("gather")
        seen = _stubbed(gather, "gather", monkeypatch)
        cache, indices = torch.zeros(2, 64 * 584, dtype=torch.uint8), torch.zeros(3, 16, dtype=torch.int32)

        def step(indices: torch.Tensor) -> torch.Tensor:
            out, mask = gather(cache, indices + 1, page_size=64, columns=16)
            return out.sum() + mask.sum()

        torch.compile(step, backend="aot_eager", fullgraph=True)(indices)
    assert seen[0]["page_size"] == 64 and seen[0]["queries"] == 1 and seen[0]["indices"].min() == 1
    torch._dynamo.reset()


def _stubbed(op: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Put a recorder in place of an op's launcher."""
    seen: list[dict[str, Any]] = []
    module = op._backend.module

    def stub(**values: Any) -> None:
        seen.append(values)

    stub.__signature__ = inspect.signature(getattr(module, name))  # type: ignore[attr-defined]
    monkeypatch.setattr(module, name, stub)
    return seen


@pytest.mark.parametrize("tile", [(16, 4), [16, 4, 1], 7, None, True])
def test_a_tile_goes_through_torchs_dispatcher(demo: Any, tile: Any) -> None:
    """As a tuple, which a launcher takes apart and the capture guard knows; a single number stays one."""
    expected = tuple(tile) if isinstance(tile, list) else tile
    data, out = torch.zeros(16, 16), torch.zeros(16)
    for call in (demo.torch_op, torch.compile(lambda **given: demo(**given), backend="eager", fullgraph=True)):
        call(data=data, out=out, tile=tile)
        assert _last(demo)["tile"] == expected and type(_last(demo)["tile"]) is not list


@pytest.mark.parametrize("tile", ["wide", 0.5, (16, 0.5), ("wide",)])
def test_a_choice_that_the_dispatcher_cannot_take_is_refused_with_the_way_out(demo: Any, tile: Any) -> None:
    demo(torch.zeros(16, 16), torch.zeros(16), tile=tile)
    with pytest.raises(ArgumentError, match=r"tile is .*; through torch's dispatcher .* whole numbers only\n.*\.raw"):
        demo.torch_op(torch.zeros(16, 16), torch.zeros(16), tile=tile)


CHOOSING = """\
TRITON_RANGE = ("3.0", "99.0")
calls = []

def run(*, data, out, decode, scale=2.0, scratch=None, tile=None):
    calls.append({"scale": scale, "decode": decode, "tile": tile})
"""


@pytest.fixture
def choosing(tmp_path: Path) -> Any:
    """The demo family's op with a choice that has no default."""
    write_triton(tmp_path / "generated", CHOOSING, "choosing_demo")
    return dsv4gen.load("choosing_demo").run


@pytest.mark.parametrize(
    "more", [{"tile": (16, 4)}, {"tile": [16, 4]}, {"decode": False}, {"scratch": torch.zeros(4096, dtype=torch.uint8)}]
)
def test_a_capture_takes_no_choice_that_compiles_anew(choosing: Any, host: HostPlatform, more: dict[str, Any]) -> None:
    call = {"data": torch.zeros(16, 16), "out": torch.zeros(16), "decode": True}
    choosing(**call)
    host.capturing = True
    choosing(**call)
    with pytest.raises(CaptureError, match="would be compiled now"):
        choosing(**{**call, **more})
    host.capturing = False
    choosing(**{**call, **more})
    host.capturing = True
    choosing(**{**call, **more})


def test_truth_values_and_words_take_the_short_way(choosing: Any) -> None:
    for decode in (True, False, 1, True, False, 1):
        choosing(torch.zeros(16, 16), torch.zeros(16), decode=decode, tile="wide")
        assert _last(choosing)["decode"] is decode
    assert _hits(choosing) == [1, 1, 1]


def test_numbers_reach_the_launcher_as_plain_ones(demo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton compiles anew for an integer where a float was, and takes nothing of numpy's."""
    for scale in (3, np.float32(3), np.int64(3)):
        for _ in range(2):
            demo(torch.zeros(16, 16), torch.zeros(16), scale=scale)
            assert _last(demo)["scale"].__class__ is float
    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(ROOT / "generated"))
    gather = dsv4gen.load("gather_dequant").op("gather")
    seen = _stubbed(gather, "gather", monkeypatch)
    cache, indices = torch.zeros(2, 64 * 584, dtype=torch.uint8), torch.zeros(3, 16, dtype=torch.int32)
    for number in (True, np.int64(1), 1, True):
        gather(cache, indices, page_size=np.int64(64), columns=16, queries=number, k_offset=number)
        assert [seen[-1][name].__class__ for name in ("page_size", "queries", "k_offset")] == [int] * 3
    for wrong, message in (
        ({"k_offset": 0.5}, "k_offset is 0.5, not a whole number"),
        ({"columns": 16.0}, "columns is 16.0, not the size"),
        ({"columns": -1}, "columns is -1, not the size"),
    ):
        with pytest.raises(ArgumentError, match=message):
            gather(cache, indices, **{"page_size": 64, "columns": 16, **wrong})


def test_prewarm_calls_with_the_launchers_defaults(choosing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="decode missing"):
        choosing.prewarm([{"rows": 2, "width": 16}])
    choosing.prewarm([{"rows": 2, "width": 16, "decode": False}])
    assert _last(choosing) == {"scale": 2.0, "decode": False, "tile": None}
    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(ROOT / "generated"))
    gather = dsv4gen.load("gather_dequant").op("gather")
    seen = _stubbed(gather, "gather", monkeypatch)
    gather.prewarm([{"tokens": 2, "width": 128, "pages": 4, "page_bytes": 64 * 584, "page_size": 64, "columns": 128}])
    assert seen[0]["queries"] == 1 and seen[0]["k_offset"] == 0 and seen[0]["page_size"] == 64
