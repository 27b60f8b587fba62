"""Shipped HIP/CUDA sources compile for every device, spill what the spec allows and need what the proofs say.

One target is compiled whole. The others' kernels are compiled with one combination of options for each tile, another
one on each device: bodies are shared, and all of them for all devices take twenty minutes, which `verify` spends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

import pytest

from dsv4gen.base import paths
from dsv4gen.emit.build import make_plans
from dsv4gen.emit.select import known_targets
from dsv4gen.plan.ir import FamilyPlan, Instance, Kernel
from dsv4gen.spec import load_specs
from dsv4gen.target import resolve_target
from dsv4gen.verify.compiled import Compiled, Job, compile_all
from tests.tools import need_module, need_tool

TARGETS = known_targets()
WHOLE = "gfx950"
#: all targets, and of the devices that share a source one per vendor (`verify` compiles for every one)
DEVICES = sorted({*TARGETS, "sm_86", "gfx1151"})
#: kernels that may keep registers in memory on CUDA, where 1024 threads a unit leave 64 of them
TIGHT = ("short", "select", "cluster")


def covering(plan: FamilyPlan, turn: int) -> FamilyPlan:
    """The plan with one instance of each kernel and tile; turns differ in which."""
    return replace(plan, kernels=tuple(replace(k, instances=tuple(_in_turn(k, turn))) for k in plan.kernels))


def _in_turn(kernel: Kernel, turn: int) -> Iterator[Instance]:
    for number, (_, group) in enumerate(groupby(kernel.instances, key=lambda instance: instance.tile)):
        instances = list(group)
        yield instances[(turn + number) % len(instances)]


@lru_cache(maxsize=1)
def plans() -> dict[str, FamilyPlan]:
    specs = load_specs(paths.specs())
    families = [name for name, loaded in specs.families.items() if loaded.model.language == "hip_cuda"]
    return {plan.target.name: plan for target in TARGETS for plan in make_plans(specs, target, families)}


@lru_cache(maxsize=1)
def jobs() -> tuple[Job, ...]:
    specs, found = load_specs(paths.specs()), []
    for target, plan in plans().items():
        record = resolve_target(specs, target)
        for one in (record, *record.also):
            if one.device == WHOLE:
                found.append(Job(plan, one))
            elif one.device in DEVICES:
                found.append(Job(covering(plan, DEVICES.index(one.device)), one))
    return tuple(found)


@lru_cache(maxsize=1)
def compiled() -> Compiled:
    return compile_all(jobs())


@pytest.fixture(autouse=True)
def tools() -> None:
    need_tool("clang++-22")
    need_tool("ld.lld-22")
    need_module("nvidia")


def test_nothing_is_outside_its_budget() -> None:
    assert compiled().findings == ()


@pytest.mark.parametrize("device", DEVICES)
def test_every_kernel_of_a_device_is_in_the_table(device: str) -> None:
    (job,) = (job for job in jobs() if job.record.device == device)
    rows = [row for row in compiled().rows if row.device == device]
    assert [row.symbol for row in rows] == [i.symbol for kernel in job.plan.kernels for i in kernel.instances]
    assert all(0 < row.shared <= row.shared_limit for row in rows)
    assert all(row.blocks_per_unit >= 1 for row in rows)


def test_only_tight_kernels_keep_registers_in_memory() -> None:
    tight = {i.symbol for plan in plans().values() for k in plan.kernels if k.name in TIGHT for i in k.instances}
    assert {row.symbol for row in compiled().rows if row.scratch} <= tight
    assert not [row for row in compiled().rows if row.scratch and row.device.startswith("gfx")]


def test_devices_together_are_compiled_with_every_choice() -> None:
    """Each kernel with each choice that some target has, on a device that is not compiled whole."""
    others = [job.plan for job in jobs() if job.record.device != WHOLE]
    assert _choices(others) == _choices(plans().values())


def _choices(plans: Iterable[FamilyPlan]) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    return {(k.name, tuple(i.options.items())) for plan in plans for k in plan.kernels for i in k.instances}
