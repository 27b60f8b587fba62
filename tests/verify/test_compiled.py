"""Every shipped HIP/CUDA source compiles for every device, spills nothing and needs what the proofs say."""

from __future__ import annotations

from functools import lru_cache

import pytest

from dsv4gen.base import paths
from dsv4gen.emit.build import make_plans
from dsv4gen.emit.select import known_targets
from dsv4gen.spec import load_specs
from dsv4gen.target import resolve_target
from dsv4gen.verify.compiled import Compiled, Job, compile_all
from tests.tools import need_module, need_tool

TARGETS = known_targets()
#: all targets, and of the devices that share a source one per vendor (`verify` compiles for every one)
DEVICES = {*TARGETS, "sm_86", "gfx1151"}


@lru_cache(maxsize=1)
def compiled() -> Compiled:
    specs = load_specs(paths.specs())
    jobs = []
    for target in TARGETS:
        record = resolve_target(specs, target)
        families = [name for name, loaded in specs.families.items() if loaded.model.language == "hip_cuda"]
        for plan in make_plans(specs, target, families):
            jobs += [Job(plan, device) for device in (record, *record.also) if device.device in DEVICES]
    return compile_all(jobs)


@pytest.fixture(autouse=True)
def tools() -> None:
    need_tool("clang++-22")
    need_tool("ld.lld-22")
    need_module("nvidia")


def test_nothing_is_outside_its_budget() -> None:
    assert compiled().findings == ()


@pytest.mark.parametrize("target", TARGETS)
def test_every_kernel_of_a_target_is_in_the_table(target: str) -> None:
    rows = [row for row in compiled().rows if row.device == target]
    assert {"topk_page_table_t1024", "topk_v1_page_table_t512"} <= {row.symbol for row in rows}
    windows = ("_ragged_", "_packed_")  # the only ones that the spec allows some
    assert not [row for row in rows if (row.spills or row.scratch) and not any(word in row.symbol for word in windows)]
    assert all(0 < row.shared <= row.shared_limit for row in rows)
    assert all(row.blocks_per_unit >= 1 for row in rows)


def test_devices_that_share_a_source_are_compiled_for_themselves() -> None:
    assert {row.device for row in compiled().rows} == DEVICES
