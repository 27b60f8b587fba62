"""Offline compile of the compress kernels: which kernels, with which constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from dsv4gen.base import paths
from dsv4gen.spec import load_specs
from dsv4gen.spec.signature import divisible_pointers, triton_signature
from dsv4gen.target import TargetRecord, resolve_target
from dsv4gen.toolchain import TritonKernel, TritonObject, compile_triton_many
from tests.compress.modules import FAMILY, module, plan

TARGETS = ("gfx942", "gfx950", "gfx1201", "sm_80", "sm_90")
#: compiled in all variants; one wave width each
FULL = ("gfx950", "sm_90")
#: strides that are multiples of 16 elements in every ordinary call; run-time specialisation finds them by itself
_EVEN_STRIDES = (
    "state_stride", "source_stride", "source_row_stride", "page_stride", "pooled_stride", "table_stride", "out_stride",
    "value_stride", "value_row_stride", "score_stride", "score_row_stride",
)  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """One compile: a kernel of the spec, through an op that launches it, for one head dimension."""

    target: str
    kernel: str
    op: str
    ratio: int
    head_dim: int = 512
    dialect: str = "e4m3fn"
    narrow: bool = False

    @property
    def name(self) -> str:
        """For messages and tables."""
        types = "bf16" if self.narrow else "f32"
        return f"{self.target} {self.kernel} r{self.ratio} d{self.head_dim} {self.dialect} {types}"


#: kernel, op, ratio
KERNELS = (
    ("decode_four", "decode", 4),
    ("decode_many", "decode", 128),
    ("decode_split", "decode_pool", 128),
    ("prefill_four", "prefill", 4),
    ("prefill_many", "prefill", 128),
    ("prefill_split", "prefill_pool", 128),
    ("write_rows", "write", 4),
    ("finish_rows", "finish_pooled", 128),
    ("pool_rows", "pool", 128),
    ("pool_inputs", "pool_norm_rope", 4),
    ("online_rows", "online_decode", 128),
    ("online_segments", "online_prefill", 128),
    ("plan_decode_rows", "plan_decode", 4),
    ("plan_prefill_rows", "plan_prefill", 4),
)


@lru_cache
def record(target: str) -> TargetRecord:
    """The target's record."""
    return resolve_target(load_specs(paths.specs()), target)


def variants(target: str) -> list[Variant]:
    """Every kernel of a target in float32; on two targets also heads of 128, bf16, and the other dialect."""
    found = [Variant(target, kernel, op, ratio) for kernel, op, ratio in KERNELS]
    if target in FULL:
        found += [
            Variant(target, kernel, op, 4, 128)
            for kernel, op, ratio in KERNELS
            if op in ("decode", "prefill") and ratio == 4
        ]
        found.append(Variant(target, "decode_four", "decode", 4, dialect="e4m3fnuz", narrow=True))
        found.append(Variant(target, "prefill_many", "prefill", 128, narrow=True))
    return found


def request(variant: Variant) -> TritonKernel:
    """The compile request of a variant."""
    family = load_specs(paths.specs()).families[FAMILY].model
    op, kernel = family.ops[variant.op], family.kernels[variant.kernel]
    tile = _tile(variant)
    types = dict.fromkeys(("source_dtype", "state_dtype"), "bf16" if variant.narrow else "f32")
    even = [*divisible_pointers(op), *(name for name in _EVEN_STRIDES if name in op.params)]
    return TritonKernel(
        module(variant.target),
        kernel.entry,
        triton_signature(family, op, types),
        constants(variant, tile),
        dict.fromkeys(even, 16),
        {"num_warps": tile["num_warps"], "num_stages": 1, "enable_fp_fusion": False},
    )


def _tile(variant: Variant) -> Mapping[str, int]:
    """The tile that the launch function takes."""
    buckets = plan(variant.target).kernel(variant.kernel).buckets
    return next(bucket.tile for bucket in buckets if bucket.when.evaluate({"head_dim": variant.head_dim}))


def constants(variant: Variant, tile: Mapping[str, int]) -> dict[str, int | float | bool | str]:
    """The constant parameters of a variant's kernel."""
    dims = tile.get("dims", variant.head_dim)
    rows = tile["num_warps"] * record(variant.target).wave.launch * tile.get("lane_elements", 0) // dims
    known: dict[str, int | float | bool | str] = {
        "D": variant.head_dim,
        "DIMS": dims,
        "ROWS": max(1, rows),
        "STAGES": tile["num_stages"],
        "RATIO": variant.ratio,
        "BIAS_AT": "pool",
        "TABLE": "interleaved",
        "HADAMARD": variant.head_dim == 128,
        "RECORD": "v4_584" if variant.head_dim == 512 else "idx_fp8_132",
        "DIALECT": variant.dialect,
        "LIMIT": 448.0 if variant.dialect == "e4m3fn" else 224.0,
        "FLOOR": 1e-4,
        "FLOOR_OF_SCALE": False,
        "SOURCE": "bf16",
        "FIRST_SLOT": 0,
        "DECODE": True,
        "TRANSFORM": True,
        "HAS_BIAS": True,
        "HAS_MASK": True,
        "PAGED": True,
        "BLOCK": 128 if variant.kernel == "plan_decode_rows" else 256,
    }
    return {name: known[name] for name in _constant_names(variant)}


def _constant_names(variant: Variant) -> list[str]:
    """Names of the constant parameters, read from the rendered text."""
    entry = plan(variant.target).kernel(variant.kernel).entry
    text = module(variant.target).read_text(encoding="utf-8")
    start = text.index(f"def {entry}(")
    header = text[start : text.index("):\n", start)]
    return [part.split(":")[0].strip() for part in header.split(",") if "tl.constexpr" in part]


@lru_cache
def compile_target(target: str, kernels: tuple[str, ...] = ()) -> Mapping[Variant, TritonObject]:
    """Every variant of a target, or those of some kernels; raises on the first that fails."""
    wanted = [variant for variant in variants(target) if not kernels or variant.kernel in kernels]
    results = compile_triton_many([(request(variant), record(target)) for variant in wanted], jobs=1)
    compiled = {}
    for variant, finished in zip(wanted, results, strict=True):
        if finished.value is None:
            raise finished.error or AssertionError(variant.name)
        compiled[variant] = finished.value
    return compiled
