"""The short way of a launch function launches what the long way would, and takes nothing that the long way refuses;
with the extension and without."""

from __future__ import annotations

import ctypes
import gc
import json
import struct
import weakref
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsv4gen.base.errors import ArgumentError
from dsv4gen.runtime import arguments, driver_backend, native, repeat, specialise
from dsv4gen.runtime.call_table import CallTable
from dsv4gen.runtime.driver_launch import DriverLaunch, packers
from dsv4gen.runtime.launching import Prepared
from dsv4gen.runtime.read_table import make_table
from tests.checkout import ROOT

pytestmark = pytest.mark.usefixtures("way")
MODES = ("indices", "page_table", "dual", "ragged", "packed")


LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)


class Recorder:
    """The launch function of top-k over a driver that keeps the parameters, with the number of calls the long way."""

    def __init__(self, mode: str, *, checked: bool = True) -> None:
        plan = json.loads((ROOT / "generated" / "sm_90" / "plans" / "topk.json").read_text())
        options = {name: option["default"] for name, option in plan["options"].items()}
        self.table = make_table("topk", plan, "select", {**options, "mode": mode})
        self.params: list[bytes] = []
        self.long_ways = self.launches_from_python = 0
        self.stream = 0
        decided = Prepared(launches=((1, 2), (3, 4)), needs=(0,), names=("workspace",), path="single", keep=())

        def prepare(*_: Any) -> Prepared:
            self.long_ways += 1
            return decided

        def launch(_config: int, _kernel: int, pointers: int, _extra: None) -> int:
            address = ctypes.c_uint64.from_address(pointers).value
            self.params.append(ctypes.string_at(address, self.table.size))
            return 0

        def launch_from_python(*values: Any) -> int:
            self.launches_from_python += 1
            return int(entry(*values))

        entry = self._entry = LAUNCH(launch)
        calls = native.make_calls(self.table, entry, True, checked, lambda _: self.stream, None, lambda *_: None)
        self.memories = repeat.Memories(calls)
        names = {
            **packers(self.table),
            "_stream": lambda _: self.stream,
            "_decisions": {},
            "_prepare": prepare,
            "_recheck": lambda **values: arguments.check(self.table, values, False),
            "_free": [],
            "_memories": self.memories,
            "_new_slot": lambda: driver_backend._new_slot(bytes(self.table.size)),
            "_copied_slot": lambda packed: driver_backend._new_slot(packed[: self.table.size]),
            "_pack": struct.Struct(self.table.format).pack_into,
            "_pack_error": struct.error,
            "_launch": launch_from_python,
        }
        ending = DriverLaunch(self.table)
        self.call = specialise.make_function(
            self.table, ending, checked=checked, on_cuda=False, many_devices=False, names=names, native=calls
        )

    def launched(self, call: Mapping[str, Any]) -> bytes:
        """The parameters of one call; both of its launches get the same."""
        del self.params[:]
        self.call(**call)
        first, second = self.params
        assert first == second
        return first


def plain_call(
    table: CallTable, *, width: int = 96, rows: int = 3, k: int = 8, optional: bool = True
) -> dict[str, Any]:
    """A right call with tensors of its own."""
    sizes = {"batch": rows, "width": width, "k": k, "pages": 4, "tables": 2}
    made: dict[str, Any] = {}
    for rule in (*table.inputs, *table.outputs):
        if optional or not rule.optional:
            shape = [sizes[tree] for tree in rule.shape if isinstance(tree, str)]
            made[rule.name] = torch.zeros(shape, dtype=getattr(torch, rule.dtypes[0]))
    made["workspace"] = torch.zeros(64, dtype=torch.uint8) if optional else None
    return {**made, **({"page_bits": 6} if "page_bits" in table.required_numbers else {})}


@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("optional", [True, False])
@pytest.mark.parametrize("mode", MODES)
def test_a_repeated_call_packs_what_the_long_way_packs(mode: str, optional: bool, checked: bool, way: str) -> None:
    repeated = Recorder(mode, checked=checked)
    for number in range(3):
        call = plain_call(repeated.table, optional=optional)
        assert repeated.launched(call) == Recorder(mode, checked=checked).launched(call)
        assert repeated.long_ways == 1, f"call {number} took the long way"
        assert repeated.launches_from_python == (2 if way == "native" else 2 * number + 2)


def test_torch_here_has_the_comparison() -> None:
    tensors = (torch.zeros(2, 3), torch.zeros(4, dtype=torch.int32))
    same = repeat.make_comparison(tensors)
    assert same is not None and same(torch.ones(2, 3), torch.ones(4, dtype=torch.int32))


def test_without_the_comparison_only_the_extension_remembers(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(repeat, "make_comparison", lambda _: None)
    topk = Recorder("page_table")
    first, second = plain_call(topk.table), plain_call(topk.table)
    assert topk.launched(first)[8:] != topk.launched(second)[8:]
    assert len(topk.memories.known) == (way == "native")
    assert topk.launches_from_python == (2 if way == "native" else 4)


def _changes(table: CallTable) -> dict[str, dict[str, Any]]:
    """Calls that differ from `plain_call` in one thing, by what it is; right and wrong ones."""
    rows, width = 3, 96
    wide = torch.zeros(rows, width * 2)
    odd = torch.zeros(rows * width * 4 + 2, dtype=torch.uint8)[2:].view(torch.int8)
    return {
        "width": plain_call(table, width=80),
        "rows": plain_call(table, rows=2),
        "k": plain_call(table, k=4),
        "row stride": {"scores": wide[:, :width]},
        "fewer dimensions": {"scores": wide.view(rows * 2, width)[::2, 0][:rows].as_strided((rows,), (width,))},
        "more dimensions": {"scores": torch.zeros(rows, width, 1)},
        "inner stride": {"scores": wide[:, ::2]},
        "dtype": {"seq_lens": torch.zeros(rows, dtype=torch.int64)},
        "sizes": {"seq_lens": torch.zeros(rows + 1, dtype=torch.int32)},
        "no tensor": {"scores": [[0.0] * width] * rows},
        "none": {"page_table": None},
        "bytes": {"scores": odd},
        "meta": {"scores": torch.zeros(rows, width, device="meta")},
        "page_bits": {"page_bits": 7},
        "page_bits out of range": {"page_bits": 21},
        "page_bits of another class": {"page_bits": 6.0},
        "page_bits as a truth value": {"page_bits": True},
        "page_bits as a tensor": {"page_bits": torch.tensor(6)},
        "k given": {"k": 8},
        "k given wrong": {"k": 7},
        "k of another class": {"k": 8.0},
        "no workspace": {"workspace": None},
        "another workspace": {"workspace": torch.zeros(32, dtype=torch.uint8)},
        "no memory": {"scores": torch.zeros(rows, width)},
        "one tensor twice": {"seq_lens": torch.zeros(rows, dtype=torch.int32)},
    }


def _outcome(topk: Recorder, call: Mapping[str, Any]) -> bytes | str:
    try:
        return topk.launched(call)
    except ArgumentError as error:
        return str(error)


@pytest.mark.parametrize("name", _changes(Recorder("page_table").table))
def test_a_call_that_differs_is_judged_as_if_it_were_the_first(name: str) -> None:
    repeated, fresh = Recorder("page_table"), Recorder("page_table")
    call = plain_call(repeated.table)
    assert _outcome(repeated, call) == _outcome(repeated, call)
    changed = {**call, **_changes(repeated.table)[name]}
    if name == "no memory":
        changed["scores"].untyped_storage().resize_(0)
    outcome = _outcome(repeated, changed)
    assert outcome == _outcome(fresh, changed)
    assert isinstance(outcome, str) or "another class" not in name


@pytest.mark.parametrize("name", ["row_starts", "row_to_batch", "workspace"])
def test_an_optional_tensor_without_memory_does_not_pass_for_one_left_out(name: str) -> None:
    repeated, fresh = Recorder("packed"), Recorder("packed")
    call = plain_call(repeated.table)
    repeated.launched(call)
    empty = {**call, "workspace": torch.zeros(0, dtype=torch.uint8)}
    assert repeated.launched(empty) == repeated.launched(empty) == fresh.launched(empty)
    call[name].untyped_storage().resize_(0)
    for topk in (repeated, fresh):
        with pytest.raises(ArgumentError, match=f"{name} has no memory"):
            topk.call(**call)


def test_a_misaligned_address_is_refused_after_aligned_ones() -> None:
    topk = Recorder("page_table")
    call = plain_call(topk.table)
    topk.launched(call)
    space = torch.zeros(80, dtype=torch.uint8)
    shift = -space.data_ptr() % 16 + 8
    with pytest.raises(ArgumentError, match="workspace"):
        topk.call(**{**call, "workspace": space[shift : shift + 64]})


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_view_passes_for_another(data: st.DataObject) -> None:
    """After one right call, any view of any dtype gets what a first call would get."""
    repeated, fresh = Recorder("page_table"), Recorder("page_table")
    scores = torch.zeros(64)
    call = {**plain_call(repeated.table, width=4, rows=2, k=2), "scores": scores[:8].view(2, 4)}
    repeated.launched(call)
    name = data.draw(st.sampled_from(["scores", "seq_lens", "page_table", "out"]))
    dimensions = call[name].dim()
    sizes = [data.draw(st.integers(0, 4)) for _ in range(dimensions)]
    strides = [data.draw(st.sampled_from([0, 1, 2, 4])) for _ in range(dimensions)]
    dtype = data.draw(st.sampled_from([call[name].dtype, torch.int32, torch.float32, torch.bfloat16]))
    view = torch.zeros(64, dtype=dtype).as_strided(sizes, strides, data.draw(st.integers(0, 3)))
    if name != "scores" and data.draw(st.booleans()):
        offset = data.draw(st.integers(0, 12))
        view = scores.view(call[name].dtype).as_strided(call[name].shape, call[name].stride(), offset)
    changed = {**call, name: view}
    assert _outcome(repeated, changed) == _outcome(fresh, changed)


def test_another_stream_is_another_call() -> None:
    topk = Recorder("indices")
    for stream in (0, 7, 0, 7):
        topk.stream = stream
        topk.launched(plain_call(topk.table))
    assert [memory.more[0] for memory in topk.memories.known] == [7, 0] and topk.long_ways == 2


def test_memories_are_few_and_follow_what_is_called() -> None:
    topk = Recorder("indices")
    for width in range(16, 16 + 3 * repeat.REPLACE_EVERY):
        topk.launched(plain_call(topk.table, width=width))
        assert len(topk.memories.known) <= repeat.MEMORIES_MAX
    assert len(topk.memories.known) == 1, "memories that no call fits are kept"
    for _ in range(repeat.REPLACE_EVERY * 4):
        for width in (7, 8, 9):
            topk.launched(plain_call(topk.table, width=width))
    before = topk.long_ways
    for width in (7, 8, 9):
        topk.launched(plain_call(topk.table, width=width))
    assert topk.long_ways == before, "layouts that are called in turn are not remembered"


def test_memories_keep_no_tensor_alive() -> None:
    topk = Recorder("page_table")
    call = plain_call(topk.table)
    topk.launched(call)
    watched = [weakref.ref(value) for value in call.values() if isinstance(value, torch.Tensor)]
    del call
    gc.collect()
    assert topk.memories.known and [one() for one in watched] == [None] * len(watched)


def test_a_zero_keeps_its_sign_and_a_tile_the_classes_of_its_numbers() -> None:
    assert all(repeat._comparable(number) for number in (None, 3, 0.5, True, "3"))
    assert not any(repeat._comparable(number) for number in (0.0, -0.0, (1, 2), torch.tensor(3)))
