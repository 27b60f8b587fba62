"""Offline compile of the shipped tiles of sparse_decode: which kernels, and what they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from dsv4gen.base import paths
from dsv4gen.plan.ir import Instance
from dsv4gen.spec import load_specs
from dsv4gen.spec.signature import divisible_pointers, triton_signature
from dsv4gen.target import TargetRecord, resolve_target
from dsv4gen.toolchain import TritonKernel, TritonObject, compile_triton_many
from tests.sparse_decode.modules import FAMILY, module, plan

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "sm_80", "sm_90", "sm_100", "sm_120")
#: strides that are multiples of 16 in every ordinary call, and those that are 1; Triton finds both by itself
_EVEN = ("q_token_stride", "q_head_stride", "page_stride", "extra_page_stride", "out_token_stride", "out_head_stride")
_ONE = ("index_stride", "length_stride", "extra_index_stride", "extra_length_stride", "lse_head_stride")


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
    """The compile request of two scopes with lengths and sinks, specialised as an ordinary call is."""
    family = load_specs(paths.specs()).families[FAMILY].model
    op = family.ops["attend"]
    tile = instance.tile
    constants: dict[str, int | bool | str] = {
        "PAGE_SIZE": 256, "EXTRA_PAGE_SIZE": 64, "BIAS": 120, "EXTRA_BIAS": 120, "HAS_LENGTHS": True,
        "HAS_EXTRA": True, "HAS_EXTRA_LENGTHS": True, "HAS_SINK": True, "REDUCE": "none",
        "SWAP": tile["block_h"] <= family.constants["swap_heads"],
        "BLOCK_H": tile["block_h"], "BLOCK_N": tile["block_n"],
    }  # fmt: skip
    constants |= dict.fromkeys(_ONE, 1)
    if "NATIVE: tl.constexpr" in module(target).read_text(encoding="utf-8"):
        constants |= {"DIALECT": "e4m3fn", "NATIVE": True}
    return TritonKernel(
        module(target),
        "attend_scopes",
        triton_signature(family, op, {}),
        constants,
        dict.fromkeys([*divisible_pointers(op), "indices", "extra_indices", *_EVEN], 16),
        {"num_warps": tile["num_warps"], "num_stages": tile["num_stages"], "enable_fp_fusion": False},
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
