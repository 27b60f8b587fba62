"""Offline compile of the shipped tiles of sparse_decode: which kernels, and what they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from dsv4gen.base import paths
from dsv4gen.plan.ir import Instance
from dsv4gen.render.render import render_triton
from dsv4gen.spec import load_specs
from dsv4gen.target import TargetRecord, resolve_target
from dsv4gen.toolchain import TritonKernel, TritonObject, compile_triton_many
from dsv4gen.verify.triton_requests import triton_requests
from tests.sparse_decode.modules import module, plan

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_80", "sm_90", "sm_100", "sm_120")


@dataclass(frozen=True)
class Variant:
    """One compile: a shipped tile of the fused kernel."""

    target: str
    instance: str


@lru_cache
def record(target: str) -> TargetRecord:
    """The target's record."""
    return resolve_target(load_specs(paths.specs()), target)


def shipped(target: str) -> Iterator[Instance]:
    """Tiles of the fused kernel that calls with more than 16 keys take."""
    yield from plan(target).kernel("fused").instances[:-1]


def request(target: str, instance: Instance) -> TritonKernel:
    """The module's own ahead-of-time request for a tile of the fused kernel."""
    chosen = plan(target)
    tile = instance.tile
    wanted = {"BLOCK_H": tile["block_h"], "BLOCK_N": tile["block_n"], "REDUCE": "none"}
    return next(
        kernel
        for kernel in triton_requests(chosen, render_triton(chosen), module(target))
        if kernel.function == "attend_scopes" and wanted.items() <= kernel.constexprs.items()
    )


@lru_cache
def compile_all() -> Mapping[Variant, tuple[Instance, TritonObject]]:
    """Every shipped tile for every target; raises on the first that fails, limits included."""
    wanted = [(target, instance) for target in TARGETS for instance in shipped(target)]
    work = [(request(target, instance), record(target)) for target, instance in wanted]
    compiled = {}
    for (target, instance), finished in zip(wanted, compile_triton_many(work, jobs=1), strict=True):
        if finished.value is None:
            raise finished.error or AssertionError(f"{target} {instance.symbol}")
        compiled[Variant(target, instance.symbol)] = (instance, finished.value)
    return compiled
