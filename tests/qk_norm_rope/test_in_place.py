"""Outputs that are inputs: what the spec permits, and no other sharing of memory."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import dsv4gen
from dsv4gen.base.errors import ArgumentError
from dsv4gen.base.manifest import read_manifest
from dsv4gen.runtime import arguments, repeat, specialise
from dsv4gen.runtime.dispatch import complete_options
from dsv4gen.runtime.read_table import make_table
from dsv4gen.runtime.triton_launch import TritonLaunch
from tests.checkout import ROOT


def _heads(tokens: int) -> torch.Tensor:
    return torch.randn(tokens, 4, 64).bfloat16()


@pytest.fixture
def rotate() -> Any:
    """`q_norm_rope` in torch: the checks are those of every target."""
    loaded = dsv4gen.load("qk_norm_rope", target="reference").op("q_norm_rope")
    table = torch.rand(8, 64)
    return lambda **heads: loaded(cosines=table, positions=torch.arange(3), eps=1e-6, **heads)


def test_an_output_may_be_the_input_that_its_spec_names(rotate: Any) -> None:
    heads = _heads(3)
    expected = rotate(q=heads.clone())
    for same in (lambda q: q, lambda q: q.view_as(q)):
        q = heads.clone()
        rotate(q=q, q_out=same(q))
        assert torch.equal(q, expected)


def test_an_output_may_not_be_a_part_of_its_input_nor_another_input(rotate: Any) -> None:
    buffer = torch.zeros(5, 4, 64, dtype=torch.bfloat16)
    wrong = {
        "a token later": buffer[1:4],
        "heads permuted": buffer[:3].as_strided((3, 4, 64), (64, 3 * 64, 1)),
    }
    for q_out in wrong.values():
        with pytest.raises(ArgumentError, match="q_out shares memory with q; in place it must be q itself, all of it"):
            rotate(q=buffer[:3], q_out=q_out)
    heads = _heads(3)
    with pytest.raises(ArgumentError, match="q_out shares memory with q_weight; what a kernel writes must lie apart"):
        rotate(q=_heads(3), q_weight=heads.flatten().view(torch.float32)[:64], q_out=heads)


def test_help_says_what_may_be_in_place() -> None:
    text = dsv4gen.load("qk_norm_rope", target="reference").op("qk_norm").__doc__ or ""
    assert "q_out: bfloat16 [tokens, heads, head_dim], out, made when not given, may be q itself" in text


@pytest.mark.parametrize("view", [False, True])
def test_a_repeated_call_in_place_takes_the_short_way(view: bool) -> None:
    entry = read_manifest(ROOT / "generated" / "sm_90").families["qk_norm_rope"]
    table = make_table("qk_norm_rope", entry, "q_norm_rope", complete_options(entry, {}))
    launched: list[Any] = []
    memories = repeat.Memories()
    names = {
        "_memories": memories, "_launcher": lambda **values: launched.append(values), "_warm": set(),
        "_cold": lambda: None, "_recheck": lambda **values: arguments.check(table, values, False),
    }  # fmt: skip
    ending = TritonLaunch(table, amd=False)
    rotate = specialise.make_function(table, ending, checked=True, on_cuda=False, many_devices=False, names=names)
    common = {"cosines": torch.rand(8, 64), "positions": torch.arange(3), "eps": 1e-6}
    for number in range(3):
        q = _heads(3)
        rotate(q=q, q_out=q.view_as(q) if view else q, **common)
        assert launched[-1]["q_out"].data_ptr() == q.data_ptr()
        assert [len(memory.hits) for memory in memories.known] == [number > 0]
    buffer = torch.zeros(5, 4, 64, dtype=torch.bfloat16)
    with pytest.raises(ArgumentError, match="in place it must be q itself"):
        rotate(q=buffer[:3], q_out=buffer[1:4], **common)
