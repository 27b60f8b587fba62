"""Split rows as machine code of five AMD GPUs, and the fences that no emulator sees, in the code of every API."""

from __future__ import annotations

import re
from functools import lru_cache

import pytest

from dsv4gen.reference.topk import Rules
from dsv4gen.reference.topk_cases import Case
from dsv4gen.render import render_source
from dsv4gen.target import resolve_target
from dsv4gen.toolchain import compile_source
from dsv4gen.verify.amdgcn import AmdgcnFamily
from tests.tools import need_tool
from tests.topk.host import only, topk_specs
from tests.topk.split import failures, split_plan
from tests.topk.test_split import CASES

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
ORDERS = ("ascending", "descending", "random:7")
SYMBOL = "topk_split_select_page_table_t512"
#: between the stores of a block and its arrival: what makes them visible to the device, and what drops stale lines
FENCE = {
    "gfx942": ("buffer_wbl2 sc1", "buffer_inv sc1"),
    "gfx1201": ("global_wb scope:SCOPE_DEV|s_wait_storecnt", "global_inv scope:SCOPE_DEV"),
}


@lru_cache(maxsize=2)
def family(target: str, *mutations: str) -> AmdgcnFamily:
    need_tool("clang++-22")
    need_tool("ld.lld-22")
    return AmdgcnFamily(split_plan(target), resolve_target(topk_specs(), target), frozenset(mutations))


@pytest.mark.parametrize("target", TARGETS)
def test_exact_and_clean_in_every_order(target: str) -> None:
    assert failures(family(target), CASES, ORDERS) == []


#: a border in any slice, in the first one among NaN, ties narrowed by key and by place, down to the very first, and
#: more than are staged
BORDERS = (
    ("sparse_zeros", 40001, 2048),
    ("nan_all", 20001, 700),
    ("plateau_in_a_bin", 50001, 2048),
    ("ties_in_front", 50001, 1024),
    ("one_bin", 35002, 512),
)


@pytest.mark.parametrize("target", ("gfx950", "gfx1201"))
@pytest.mark.parametrize("rules", [Rules("low", "lowest", "index"), Rules("high", "lowest", "none")], ids=str)
def test_ties_and_order_of_split_rows(target: str, rules: Rules) -> None:
    cases = [Case("split", *shape, "packed", start=3, mapped=True, page_bits=4, rules=rules) for shape in BORDERS]
    assert failures(family(target), cases, ORDERS[1:]) == []


def test_places_that_wrap_around_are_a_race() -> None:
    """Every staged score would count as one of the winners, which share their slots with the right ones."""
    case = Case("split", "ties_in_front", 50001, 1024, "indices", rules=Rules(tie_break="low"))
    assert failures(family("gfx950"), [case], ORDERS) == []
    (wrong,) = failures(family("gfx950", "places_wrap"), [case], ORDERS[1:2])
    assert "LDS race" in wrong


@pytest.mark.parametrize("mutation", ["early_ticket", "counter_kept", "overflow_dropped", "short_slices"])
def test_planted_defects_are_rejected(mutation: str) -> None:
    assert failures(family("gfx950", mutation), CASES, ("ascending",))


def _assembly(target: str, *mutations: str) -> str:
    need_tool("clang++-22")
    plan = only(split_plan(target), [SYMBOL])
    text = render_source(plan, mutations=frozenset(mutations)).text
    return compile_source(text, resolve_target(topk_specs(), target), name="topk").assembly or ""


@pytest.mark.parametrize("target", list(FENCE))
def test_a_block_publishes_before_it_arrives_and_looks_afresh_after(target: str) -> None:
    publish, refresh = FENCE[target]
    right, broken = _assembly(target), _assembly(target, "missing_fence")
    assert re.search(publish, right) and re.search(refresh, right)
    assert not re.search(refresh, broken)
