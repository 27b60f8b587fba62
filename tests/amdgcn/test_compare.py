"""Comparisons: every relation, ordered and unordered, integers of all sizes; masks on wave64 and wave32."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from tests.amdgcn.compiled import TARGETS, WAVE64
from tests.amdgcn.snippets import run_snippet
from tests.amdgcn.test_vector_float import inputs as float_inputs
from tests.amdgcn.test_vector_integer import inputs as integer_inputs
from tests.amdgcn.test_vector_integer import signed

RELATIONS = {
    "lt": operator.lt,
    "eq": operator.eq,
    "le": operator.le,
    "gt": operator.gt,
    "ne": operator.ne,
    "ge": operator.ge,
}


def masks(target: str, name: str, values: np.ndarray, operands: str = "v8, v9") -> list[bool]:
    """The result of a comparison, spread over lanes by v_cndmask."""
    vcc = "vcc" if target in WAVE64 else "vcc_lo"
    lines = [f"v_cmp_{name}_e32 {vcc}, {operands}", f"v_cndmask_b32_e64 v16, 0, 1, {vcc}"]
    return [bool(bit) for bit in run_snippet(target, lines, values)[:, 0]]


@pytest.mark.parametrize("relation", RELATIONS)
def test_integers(relation: str) -> None:
    values = integer_inputs()
    compare = RELATIONS[relation]
    for target in TARGETS:
        first, second = values[:, 0].tolist(), values[:, 1].tolist()
        pairs = list(zip(first, second, strict=True))
        assert masks(target, f"{relation}_u32", values) == [compare(a, b) for a, b in pairs]
        assert masks(target, f"{relation}_i32", values) == [compare(signed(a), signed(b)) for a, b in pairs]


@pytest.mark.parametrize("relation", RELATIONS)
def test_integers_of_16_and_64_bits(relation: str) -> None:
    values = integer_inputs()
    compare = RELATIONS[relation]
    wide = values[:, :4].copy().view(np.uint64).tolist()
    short = (values[:, :2] & 0xFFFF).tolist()
    for target in ("gfx90a", "gfx950"):
        assert masks(target, f"{relation}_u64", values, "v[8:9], v[10:11]") == [compare(a, b) for a, b in wide]
        wanted = [compare(signed(a, 16), signed(b, 16)) for a, b in short]
        assert masks(target, f"{relation}_i16", values) == wanted


ORDERED = [relation for relation in RELATIONS if relation != "ne"]


@pytest.mark.parametrize("relation", [*ORDERED, "lg", "o", "u", "nge", "nlg", "ngt", "nle", "neq", "nlt"])
def test_floats(relation: str) -> None:
    values = float_inputs()
    a, b = values[:, 0].copy(), values[:, 1].copy()
    ordered = ~(np.isnan(a) | np.isnan(b))
    base = {
        "lg": ordered & (a != b),
        "o": ordered,
        "u": ~ordered,
        "nlg": ~(ordered & (a != b)),
        "neq": ~(a == b),
    }
    if relation in base:
        wanted = base[relation]
    elif relation.startswith("n"):
        wanted = ~RELATIONS[relation[1:]](a, b)
    else:
        wanted = RELATIONS[relation](a, b)
    for target in TARGETS:
        assert masks(target, f"{relation}_f32", values.view(np.uint32)) == wanted.tolist(), target


@pytest.mark.parametrize("target", TARGETS)
def test_cmpx_narrows_exec(target: str) -> None:
    values = integer_inputs()
    operands = "vcc, v8, v9" if target in WAVE64 else "v8, v9"
    lines = [f"v_cmpx_lt_u32_e32 {operands}", "v_mov_b32_e32 v16, 7"]
    found = run_snippet(target, lines, values)[:, 0]
    wanted = np.where(values[:, 0] < values[:, 1], 7, values[:, 4])
    assert found.tolist() == wanted.tolist()
