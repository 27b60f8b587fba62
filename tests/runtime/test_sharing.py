"""What a kernel writes may share memory with nothing else, but for pairs that the spec permits."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dsv4gen.base.errors import ArgumentError
from dsv4gen.runtime import sharing
from tests.runtime.test_repeat import Recorder, plain_call

DTYPES = (torch.uint8, torch.bfloat16, torch.float32, torch.int64)


@st.composite
def views(draw: st.DrawFn, buffer: torch.Tensor) -> torch.Tensor:
    """Any view of a small buffer: any dtype, up to three dimensions, steps that nest or not, one element or none."""
    dtype = draw(st.sampled_from(DTYPES))
    whole = buffer.view(dtype)
    sizes = [draw(st.integers(0, 4)) for _ in range(draw(st.integers(0, 3)))]
    strides = [draw(st.integers(0, 9)) for _ in sizes]
    reach = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True) if size)
    return whole.as_strided(sizes, strides, draw(st.integers(0, max(0, whole.numel() - reach - 1))))


def touched(tensor: torch.Tensor) -> set[int]:
    """Addresses of all bytes of a tensor."""
    item = tensor.element_size()
    places = torch.zeros(tensor.shape, dtype=torch.int64)
    for dimension, stride in enumerate(tensor.stride()):
        shape = [-1 if other == dimension else 1 for other in range(tensor.dim())]
        places += (torch.arange(tensor.shape[dimension]) * stride).view(shape)
    starts = (tensor.data_ptr() + places * item).flatten().tolist()
    return {start + byte for start in starts for byte in range(item)}


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_two_views_share_memory_where_they_have_a_byte_in_common(data: st.DataObject) -> None:
    buffer = torch.zeros(1024, dtype=torch.uint8)
    one, other = data.draw(views(buffer)), data.draw(views(buffer))
    common = touched(one) & touched(other)
    assert sharing.share(one, other) is sharing.share(other, one) is bool(common)


def test_large_pools_are_told_apart_at_once() -> None:
    """Pages of one pool between those of another, and steps that do not nest: no search through millions of rows."""
    pool = torch.empty(2**26 * 600, dtype=torch.uint8, device="meta")
    pages = [Placed(pool[begin:].as_strided((2**25, 584), (1200, 1)), begin) for begin in (0, 600, 599)]
    odd = Placed(pool.as_strided((2**24, 128), (1999, 2)), 600)
    started = time.perf_counter()
    assert not sharing.share(pages[0], pages[1])
    assert not sharing.share(pages[0], pages[2])
    assert sharing.share(pages[0], odd)
    assert time.perf_counter() - started < 0.5


class Placed:
    """A tensor without memory, as if it lay at an address."""

    def __init__(self, tensor: torch.Tensor, address: int) -> None:
        self._tensor = tensor
        self.data_ptr = lambda: address

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tensor, name)


def _columns(rows: int, *widths: int) -> list[torch.Tensor]:
    """Columns of one buffer: they interleave and share nothing."""
    return list(torch.zeros(rows, sum(widths), dtype=torch.int32).split(widths, 1))


@pytest.mark.usefixtures("way")
def test_columns_of_one_buffer_pass_and_take_the_short_way() -> None:
    topk = Recorder("dual")
    call = plain_call(topk.table)
    for _ in range(3):
        out, raw_out = _columns(3, 8, 8)
        topk.launched({**call, "out": out, "raw_out": raw_out})
    assert topk.long_ways == 1
    moved = torch.zeros(3, 16, dtype=torch.int32)
    for raw_out in (moved[:, 7:15], moved[:, :8]):
        with pytest.raises(ArgumentError, match="out shares memory with raw_out"):
            topk.call(**{**call, "out": moved[:, :8], "raw_out": raw_out})


@pytest.mark.usefixtures("way")
def test_one_tensor_twice_is_refused_the_first_time_and_later() -> None:
    topk = Recorder("dual")
    call = plain_call(topk.table)
    for _ in range(3):
        for twice in (call["out"], call["out"].view_as(call["out"]), call["out"].detach()):
            with pytest.raises(ArgumentError, match=r"topk\.select: out shares memory with raw_out"):
                topk.call(**{**call, "raw_out": twice})
        topk.launched(call)
    with pytest.raises(ArgumentError, match="workspace shares memory with scores"):
        topk.call(**{**call, "workspace": call["scores"].view(torch.uint8).flatten()[:64]})


@pytest.mark.usefixtures("way")
def test_without_checks_nothing_is_tested() -> None:
    topk = Recorder("dual", checked=False)
    call = plain_call(topk.table)
    topk.launched(call)
    topk.launched({**call, "raw_out": call["out"]})
    assert "_passed" not in (topk.call.__doc__ or "")
