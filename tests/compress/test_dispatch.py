"""Which launches a call of the generated module makes, with the launches themselves replaced."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dsv4gen.base.errors import ArgumentError
from tests.compress.host import loaded
from tests.compress.modules import module, plan


class Recorder:
    """Stands in for kernels and launch functions; remembers the order of names."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        self.made: list[str] = []
        self.constants: dict[str, Any] = {}
        for name in names:
            monkeypatch.setattr(loaded(module("sm_90")), name, _Named(self, name))


class _Named:
    def __init__(self, recorder: Recorder, name: str) -> None:
        self.recorder, self.name = recorder, name

    def __getitem__(self, _: object) -> _Named:
        return self

    def __call__(self, *_: object, **constants: object) -> None:
        self.recorder.made.append(self.name)
        self.recorder.constants[self.name] = constants


def arguments(rows: int) -> dict[str, Any]:
    """A step of ratio 128 with this many plan entries."""
    return {
        "state": torch.zeros(128, 1024), "source": torch.zeros(rows, 1024), "bias": torch.zeros(128, 512),
        "plan": torch.zeros(rows, 4, dtype=torch.int32), "weight": torch.zeros(512), "cosines": torch.zeros(1, 64),
        "out_loc": torch.zeros(rows, dtype=torch.int64), "cache": torch.zeros(1, 1728, dtype=torch.uint8),
        "page_size": 2, "ratio": 128,
    }  # fmt: skip


@pytest.mark.parametrize("op", ["decode", "prefill"])
def test_few_rows_are_shared_if_a_buffer_is_given(monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    """Two launches up to `split_rows`, in decode `split_requests`, the second told what it follows; else one."""
    most = plan("sm_90").constants["split_requests" if op == "decode" else "split_rows"]
    halves, whole = [f"{op}_pool", "finish_pooled"], [f"{op}_row"]
    for rows, buffer, expected in ((1, True, halves), (most, True, halves), (most + 1, True, whole), (1, False, whole)):
        recorder = Recorder(monkeypatch, *halves, *whole)
        pooled = torch.zeros(rows, 512) if buffer else None
        getattr(loaded(module("sm_90")), op)(**arguments(rows), pooled=pooled)
        assert recorder.made == expected, (rows, buffer)
        if expected == halves:
            assert recorder.constants["finish_pooled"]["after_pool"] is True


@pytest.mark.parametrize("rows", [1, 4, 5, 48, 49, 80, 81, 256, 1024])
def test_the_tile_of_few_rows_covers_every_dimension(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    recorder = Recorder(monkeypatch, "decode_part")
    given = {name: value for name, value in arguments(rows).items() if name in ("state", "source", "plan", "bias")}
    loaded(module("sm_90")).decode_pool(**given, pooled=torch.zeros(rows, 512))
    constants = recorder.constants["decode_part"]
    assert 128 % (constants["ROWS"] * constants["UNROLL"]) == 0 and 512 % constants["DIMS"] == 0
    assert constants["ROWS"] * constants["DIMS"] == 4 * 32 * constants["num_warps"]


@pytest.mark.parametrize(("rows", "shares"), [(48, 1), (49, 4), (80, 4), (81, 4), (256, 4), (257, 1)])
def test_programs_share_few_groups_if_the_plan_is_ready(
    monkeypatch: pytest.MonkeyPatch, rows: int, shares: int
) -> None:
    recorder = Recorder(monkeypatch, "decode_part")
    given = {name: value for name, value in arguments(rows).items() if name in ("state", "source", "plan", "bias")}
    for ready, expected in ((True, shares), (False, 1)):
        loaded(module("sm_90")).decode_pool(**given, pooled=torch.zeros(rows, 512), plan_ready=ready)
        assert recorder.constants["decode_part"]["SHARE"] == expected


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"floor": "amax_fp4"}, "floor='amax_fp4' does not go with record 'v4_584'"),
        ({"floor": "amax_1e4", "record": "v41_288"}, "floor='amax_1e4' does not go with record 'v41_288'"),
        ({"dialect": "e4m3fnuz", "record": "v41_288_inline"}, "record 'v41_288_inline' with dialect 'e4m3fnuz'"),
    ],
)
def test_what_goes_with_no_record(chosen: dict[str, str], message: str) -> None:
    given = {name: value for name, value in arguments(1).items() if name not in ("state", "source", "bias")}
    with pytest.raises(ArgumentError, match=message):
        loaded(module("sm_90")).finish_pooled(**given, pooled=torch.zeros(1, 512), decode=True, **chosen)


@pytest.mark.parametrize("record", ["v41_528", "v41_288", "v41_528_inline", "v41_288_inline"])
def test_records_of_v41_are_for_heads_of_512(record: str) -> None:
    given = {name: value for name, value in arguments(1).items() if name not in ("state", "source", "bias", "weight")}
    with pytest.raises(ArgumentError, match="does not go with head dimension 128"):
        loaded(module("sm_90")).finish_pooled(
            **given, weight=torch.zeros(128), pooled=torch.zeros(1, 128), decode=True, record=record
        )
