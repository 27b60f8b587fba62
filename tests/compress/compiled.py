"""Offline compile of the compress kernels: those that the module states, and variants of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from dsv4gen.base import paths
from dsv4gen.render.render import render_triton
from dsv4gen.spec import load_specs
from dsv4gen.target import TargetRecord, resolve_target
from dsv4gen.toolchain import TritonKernel, TritonObject, compile_triton_many
from dsv4gen.verify.triton_requests import triton_requests
from tests.compress.modules import module, plan

TARGETS = ("gfx942", "gfx950", "gfx1201", "sm_80", "sm_90")
#: compiled in all variants; one wave width each
FULL = ("gfx950", "sm_90")
#: the kernels of the decode and prefill path; the others are compiled by `verify`
MAIN = ("decode_row", "prefill_row")
#: tensors whose element type is an option
_TYPED = ("source", "state")


@dataclass(frozen=True)
class Variant:
    """One compile: a kernel of the module with the constants that tell it from the others."""

    target: str
    kernel: str
    ratio: int
    head_dim: int
    dialect: str = "e4m3fn"
    narrow: bool = False

    @property
    def name(self) -> str:
        """For messages and tables."""
        types = "bf16" if self.narrow else "f32"
        return f"{self.target} {self.kernel} r{self.ratio} d{self.head_dim} {self.dialect} {types}"


@lru_cache
def record(target: str) -> TargetRecord:
    """The target's record."""
    return resolve_target(load_specs(paths.specs()), target)


@lru_cache
def requests(target: str) -> Mapping[Variant, TritonKernel]:
    """The module's own ahead-of-time requests for the main kernels."""
    chosen = plan(target)
    stated = triton_requests(chosen, render_triton(chosen), module(target))
    return {_variant(target, kernel): kernel for kernel in stated if kernel.function in MAIN}


def _variant(target: str, kernel: TritonKernel) -> Variant:
    ratio, head_dim = kernel.constexprs["RATIO"], kernel.constexprs["D"]
    assert isinstance(ratio, int) and isinstance(head_dim, int)
    return Variant(target, kernel.function, ratio, head_dim)


def variants(target: str) -> Iterator[tuple[Variant, TritonKernel]]:
    """The stated kernels, and on two targets also bf16 and the other dialect."""
    stated = requests(target)
    yield from stated.items()
    if target in FULL:
        four, many = Variant(target, "decode_row", 4, 512), Variant(target, "prefill_row", 128, 512)
        other = {**stated[four].constexprs, "DIALECT": "e4m3fnuz", "LIMIT": 224.0}
        yield replace(four, dialect="e4m3fnuz", narrow=True), replace(_narrow(stated[four]), constexprs=other)
        yield replace(many, narrow=True), _narrow(stated[many])


def _narrow(kernel: TritonKernel) -> TritonKernel:
    """The same kernel on bf16 rows."""
    return replace(kernel, signature={**kernel.signature, **dict.fromkeys(_TYPED, "*bf16")})


@lru_cache
def compile_target(target: str) -> Mapping[Variant, TritonObject]:
    """Every variant of a target; raises on the first that fails."""
    wanted = list(variants(target))
    results = compile_triton_many([(kernel, record(target)) for _, kernel in wanted], jobs=1)
    compiled = {}
    for (variant, _), finished in zip(wanted, results, strict=True):
        if finished.value is None:
            raise finished.error or AssertionError(variant.name)
        compiled[variant] = finished.value
    return compiled
