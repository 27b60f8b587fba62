"""Offline compile of the shipped tiles of indexer_logits: which kernels, and what they need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from dsv4gen.base import paths
from dsv4gen.plan.ir import Instance
from dsv4gen.render.render import render_triton
from dsv4gen.spec import load_specs
from dsv4gen.target import TargetRecord, resolve_target
from dsv4gen.toolchain import TritonKernel, TritonObject, compile_triton_many
from dsv4gen.verify.triton_requests import triton_requests
from tests.indexer_logits.modules import module, plan

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120")


@dataclass(frozen=True)
class Variant:
    """One compile: a shipped tile, and whether codes are multiplied as they are."""

    target: str
    instance: str
    fp8: bool


@lru_cache
def record(target: str) -> TargetRecord:
    """The target's record."""
    return resolve_target(load_specs(paths.specs()), target)


@lru_cache
def requests(target: str) -> Mapping[Variant, tuple[Instance, TritonKernel]]:
    """The module's own ahead-of-time requests, by the tile that each is."""
    chosen = plan(target)
    found = {}
    for request in triton_requests(chosen, render_triton(chosen), module(target)):
        constants = {**request.constexprs, **request.options}
        names = {"block_r": "ROWS", "block_n": "BLOCK_N", "blocks": "BLOCKS"}
        (instance,) = (
            instance
            for instance in chosen.kernel(request.function.removeprefix("logits_")).instances
            if all(constants[names.get(name, name)] == value for name, value in instance.tile.items())
        )
        found[Variant(target, instance.symbol, bool(constants.get("FP8_DOT")))] = (instance, request)
    return found


@lru_cache
def compile_all(target: str) -> Mapping[Variant, tuple[Instance, TritonObject]]:
    """Every shipped tile of a target; raises on the first that fails."""
    wanted = requests(target)
    work = [(request, record(target)) for _, request in wanted.values()]
    compiled = {}
    for (variant, (instance, _)), finished in zip(wanted.items(), compile_triton_many(work, jobs=1), strict=True):
        if finished.value is None:
            raise finished.error or AssertionError(variant)
        compiled[variant] = (instance, finished.value)
    return compiled


def table() -> str:
    """Registers, spills and shared memory of the tiles for more than 64 keys, as text."""
    lines = ["| target | kernel | products | registers | spills | shared |", "|---|---|---|---|---|---|"]
    for target in TARGETS:
        for variant, (instance, built) in compile_all(target).items():
            (kernel,) = built.code.kernels
            if instance.tile["block_n"] > 32 or instance.tile["blocks"] > 4:
                figures = (kernel.vector_registers, kernel.spilled_registers, built.shared_bytes)
                cells = (target, instance.symbol, "FP8" if variant.fp8 else "float16", *figures)
                lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
