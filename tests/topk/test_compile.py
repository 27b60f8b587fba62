"""What the compilers make of the kernels: nothing spilled but what the spec allows, and as many blocks resident as it
asks for."""

from __future__ import annotations

import pytest

from dsv4gen.plan.make import make_plan
from dsv4gen.render import render_source
from dsv4gen.target import resolve_target
from dsv4gen.toolchain import compile_source
from tests.tools import need_module, need_tool
from tests.topk.host import only, topk_specs

#: one target for each wave size and vendor, and the oldest of each
TARGETS = ("gfx90a", "gfx1201", "sm_80", "sm_90")


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_spills_but_what_is_allowed(target: str) -> None:
    if target.startswith("gfx"):
        need_tool("clang++-22")
    else:
        need_module("nvidia")
    record = resolve_target(topk_specs(), target)
    plan = make_plan(topk_specs().families["topk"], record)
    wanted = {i.symbol: i for kernel in plan.kernels for i in kernel.instances if i.options["mode"] == "page_table"}
    text = render_source(only(plan, wanted)).text
    code = compile_source(text, record, symbols=list(wanted))
    assert len(code.kernels) == len(wanted)
    allowances = {i.symbol: kernel.spills for kernel in plan.kernels for i in kernel.instances}
    for kernel in code.kernels:
        spills = allowances[kernel.symbol]
        allowed = spills.allowed(wanted[kernel.symbol].options) if spills else 0
        in_memory = allowed if target.startswith("sm_") else 0
        assert kernel.spilled_vector <= in_memory and kernel.spilled_scalar <= allowed, kernel.symbol
        assert kernel.scratch_bytes <= 8 * in_memory, kernel.symbol
        assert kernel.static_shared_bytes <= wanted[kernel.symbol].shared_bytes
        assert kernel.occupancy is not None
        assert kernel.occupancy.blocks >= wanted[kernel.symbol].min_blocks, kernel.symbol
