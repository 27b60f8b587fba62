"""Shipped qk_norm_rope kernels through Triton's real compiler: spills, access widths, 64-bit addresses, no re-reads."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import pytest

from dsv4gen.base import paths
from dsv4gen.render.render import render_triton
from dsv4gen.spec import load_specs
from dsv4gen.target import TargetRecord, resolve_target
from dsv4gen.toolchain import TritonKernel, TritonObject, check_budget, compile_triton_many
from dsv4gen.verify.triton_requests import triton_requests
from tests.qk_norm_rope.modules import module, plan
from tests.tools import need_module
from tests.triton.compiled import access_widths

TARGETS = ("gfx90a", "gfx950", "gfx1201", "sm_80", "sm_90")
#: kernels that only move heads: no lane needs what another warp holds
HEADS = ("norm_heads", "rotate_heads")
Built = Sequence[tuple[TritonKernel, TritonObject]]

pytestmark = pytest.mark.usefixtures("triton")


@pytest.fixture(scope="session")
def triton() -> None:
    need_module("triton")


@lru_cache(maxsize=1)
def _records() -> Mapping[str, TargetRecord]:
    specs = load_specs(paths.specs())
    return {target: resolve_target(specs, target) for target in TARGETS}


@lru_cache
def built(target: str) -> Built:
    """Everything that the module of a target states."""
    chosen = plan(target)
    stated = triton_requests(chosen, render_triton(chosen), module(target))
    found = []
    for kernel, finished in zip(
        stated, compile_triton_many([(k, _records()[target]) for k in stated], jobs=1), strict=True
    ):
        if finished.value is None:
            raise finished.error or AssertionError(kernel.function)
        found.append((kernel, finished.value))
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_no_spills_little_shared_memory_and_wide_accesses(target: str) -> None:
    for kernel, code in built(target):
        name = (kernel.function, dict(kernel.constexprs), dict(kernel.options))
        (resources,) = code.code.kernels
        assert code.shared_bytes <= 64, name
        budget = check_budget(resources, _records()[target], expected_shared=code.shared_bytes, threads=code.threads)
        assert not budget, (name, budget)
        widths = access_widths(code.code.assembly or "")
        # The elements of a key are shared among the lanes of all warps, four or so a lane.
        assert widths["load"] >= (8 if kernel.function == "store_keys" else 16), name
        assert kernel.function == "store_keys" or widths["store"] == 16, name


@pytest.mark.parametrize("target", TARGETS)
def test_every_kernel_is_stated_once(target: str) -> None:
    """What `verify` compiles: each kernel of the spec, no combination twice."""
    chosen, stated = plan(target), [kernel for kernel, _ in built(target)]
    assert {kernel.function for kernel in stated} == {kernel.entry for kernel in chosen.kernels}
    combinations = {(k.function, *sorted(k.constexprs.items()), *sorted(k.options.items())) for k in stated}
    assert len(combinations) == len(stated)


@pytest.mark.parametrize("target", TARGETS)
def test_addresses_are_64_bit(target: str) -> None:
    wide = r"v_mad_u?i?64_[iu]32|v_mad_nc_|v_mul_hi_|s_mul_u64|s_mul_hi|mul\.lo\.s64|mad\.lo\.s64|mul\.wide"
    for kernel, code in built(target):
        assert re.search(wide, code.code.assembly or ""), kernel.function


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_heads_cross_no_warp_and_nothing_is_loaded_after_a_store(target: str) -> None:
    """A tile of heads needs no barrier, and the rotation reads nothing that was stored before (B18)."""
    for kernel, code in built(target):
        if kernel.function in HEADS:
            text = code.code.assembly or ""
            assert "bar.sync" not in text, kernel.function
            # Straight-line code apart from the choice between queries and keys, which are one block each.
            for block in re.split(r"^\$L\w+:|\bret;", text, flags=re.MULTILINE):
                stores = block.find("st.global")
                assert stores < 0 or "ld.global" not in block[stores:], kernel.function


def test_only_targets_that_can_launch_dependently_say_so() -> None:
    texts = {target: module(target).read_text(encoding="utf-8") for target in TARGETS}
    assert {target for target, text in texts.items() if "gdc_wait" in text or "launch_pdl" in text} == {"sm_90"}


def test_nothing_is_read_before_the_launch_in_front_has_ended() -> None:
    for kernel, code in built("sm_90"):
        text = code.code.assembly or ""
        assert text.index("griddepcontrol.wait") < text.index("ld.global"), kernel.function
