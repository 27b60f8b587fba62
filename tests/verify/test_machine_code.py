"""The shipped top-k as machine code of five AMD GPUs: exact, no race, no access out of bounds, in every wave order."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import pytest

from dsv4gen.base import paths
from dsv4gen.base.errors import EmulationError, LoadError, VerifyError
from dsv4gen.emit.build import make_plans
from dsv4gen.reference import topk_cases
from dsv4gen.reference.topk_cases import Call, Case
from dsv4gen.spec import load_specs
from dsv4gen.target import resolve_target
from dsv4gen.verify.amdgcn import AmdgcnFamily
from tests.tools import need_tool
from tests.topk.host import only

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
WAVE64 = TARGETS[:3]
ORDERS = ("ascending", "descending", "random:7")
#: inputs that take different kernels and branches: rows that registers hold, a plateau that overflows, poisoned tails,
#: windows in registers and one that is sampled or streamed
CASES = (
    Case("select", "normal", 3000, 512, mode="page_table", page_bits=6, head=1),
    Case("select", "one_bin", 5000, 511, mode="dual", page_bits=4, tail="inf"),
    Case("select", "relu_sum", 9001, 1024, mode="indices", tail="1e30", seq_stride=2),
    Case("select", "normal", 3000, 512, mode="ragged", head=3),
    Case("select", "relu_sum", 33001, 1024, mode="packed", page_bits=6, tail="inf"),
)


@lru_cache(maxsize=8)
def family(target: str, *mutations: str) -> AmdgcnFamily:
    need_tool("clang++-22")
    need_tool("ld.lld-22")
    specs = load_specs(paths.specs())
    (plan,) = make_plans(specs, target, ["topk"])
    return AmdgcnFamily(plan, resolve_target(specs, target), frozenset(mutations))


def call(case: Case) -> Call:
    return Call(case, topk_cases.build_problem(case))


@pytest.mark.parametrize("target", TARGETS)
def test_exact_and_clean_in_every_order(target: str) -> None:
    for order in ORDERS:
        for case in CASES:
            family(target).run(call(case), order=order)
    for variant in ("v1",):
        family(target).run(call(CASES[0]), variant=variant)


@pytest.mark.parametrize("mutation", ["ballot_low_half", "shuffle_without_width"])
def test_wave_bugs_in_the_shipped_text_are_rejected_on_wave64(mutation: str) -> None:
    broken = family("gfx942", mutation)
    with pytest.raises((EmulationError, VerifyError)):
        for order in ORDERS:
            broken.run(call(replace(CASES[2], length=6000)), order=order)


def test_a_kernel_that_is_not_there_is_no_success() -> None:
    specs = load_specs(paths.specs())
    (plan,) = make_plans(specs, "gfx950", ["topk"])
    without = AmdgcnFamily(only(plan, ["topk_v1_dual_t512"]), resolve_target(specs, "gfx950"))
    with pytest.raises(LoadError, match="no kernel was generated for mode=page_table"):
        without.run(call(CASES[0]))


def test_tiles_without_code_for_a_row_are_not_tried_on_it() -> None:
    need_tool("clang++-22")
    specs = load_specs(paths.specs())
    (plan,) = make_plans(specs, "gfx1201", ["topk"])
    short = [
        f"topk_short{vectors}_indices_t{threads}" for vectors, threads in ((2, 512), (4, 512), (2, 1024), (4, 1024))
    ]
    every = AmdgcnFamily(
        only(plan, [*short, "topk_indices_t512", "topk_indices_t1024"]), resolve_target(specs, "gfx1201")
    )
    ran = every.run(call(Case("select", "normal", 8100, 512, mode="indices")), every_tile=True)
    assert {*ran.symbols} == {*short[1:], "topk_indices_t512", "topk_indices_t1024"}


def test_many_equal_scores_are_thinned_without_a_race() -> None:
    for order in ORDERS:
        family("gfx950").run(call(Case("select", "zeros_all", 16385, 7, mode="indices")), order=order)


def test_kernels_of_a_family_that_is_compiled_together_are_right_too() -> None:
    need_tool("clang++-22")
    specs = load_specs(paths.specs())
    (plan,) = make_plans(specs, "gfx1201", ["topk"])
    symbols = ["topk_short2_page_table_t512", "topk_short2_dual_t1024"]
    together = AmdgcnFamily(only(plan, symbols), resolve_target(specs, "gfx1201"), together=True)
    for case in CASES[:2]:
        together.run(call(case))
    assert list(together._assembly) == [together.file.text]


def test_a_missing_barrier_is_a_race() -> None:
    with pytest.raises(EmulationError, match="LDS race"):
        family("gfx1201", "missing_barrier").run(call(CASES[0]))
