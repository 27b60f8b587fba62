"""Offline compile of gather_dequant for every target: which kernels, and what their machine code looks like."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from dsv4gen.base import paths
from dsv4gen.spec import load_specs
from dsv4gen.spec.signature import divisible_pointers, triton_signature
from dsv4gen.target import TargetRecord, resolve_target
from dsv4gen.toolchain import TritonKernel, TritonObject, compile_triton_many
from tests.triton.modules import FAMILY, module

TARGETS = (
    "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120",
)  # fmt: skip
#: strides that are multiples of 16 elements in every ordinary call; run-time specialisation finds them by itself
_EVEN_STRIDES = ("page_stride", "extra_page_stride", "out_token_stride", "out_stride")


@dataclass(frozen=True)
class Variant:
    """One compile: `decode` is how the codes are converted, `wide` chooses the tile of large work."""

    target: str
    dialect: str
    decode: str
    dual: bool = False
    wide: bool = False

    @property
    def name(self) -> str:
        """For messages and tables."""
        shape = f"{'dual' if self.dual else 'scope'}{' wide' if self.wide else ''}"
        return f"{self.target} {shape} {self.dialect} {self.decode}"


@lru_cache
def record(target: str) -> TargetRecord:
    """The target's record."""
    return resolve_target(load_specs(paths.specs()), target)


def native_dialects(target: str) -> tuple[str, ...]:
    """Dialects that the target's own text converts natively."""
    text = module(target).read_text(encoding="utf-8")
    types = {"e4m3fn": "tl.float8e4nv", "e4m3fnuz": "tl.float8e4b8"}
    return tuple(dialect for dialect, name in types.items() if name in text)


def variants(target: str) -> list[Variant]:
    """What ships for a target, and the integer twin of each native conversion."""
    native = native_dialects(target)
    found = [Variant(target, dialect, "integer") for dialect in ("e4m3fn", "e4m3fnuz")]
    found += [Variant(target, dialect, "native") for dialect in native]
    shipped = "native" if "e4m3fn" in native else "integer"
    return [*found, Variant(target, "e4m3fn", shipped, dual=True), Variant(target, "e4m3fn", shipped, wide=True)]


def request(variant: Variant) -> TritonKernel:
    """The compile request of a variant, with the attributes that make its loads wide."""
    family = load_specs(paths.specs()).families[FAMILY].model
    op = family.ops["gather_dual" if variant.dual else "gather"]
    warps = 2 if variant.wide else 1
    constants: dict[str, int | bool | str] = {
        "DIALECT": variant.dialect,
        "HAS_LENGTHS": True,
        "ROWS": warps * record(variant.target).wave.launch // 8,
    }
    if variant.dual:
        constants |= {"EXTRA_DIALECT": "e4m3fnuz", "HAS_EXTRA_LENGTHS": False}
    if native_dialects(variant.target):
        constants["NATIVE"] = variant.decode == "native"
    even = [*divisible_pointers(op), *(name for name in _EVEN_STRIDES if name in op.params)]
    return TritonKernel(
        module(variant.target),
        "gather_scopes" if variant.dual else "gather_scope",
        triton_signature(family, op, {}),
        constants,
        dict.fromkeys(even, 16),
        {"num_warps": warps, "num_stages": 1, "enable_fp_fusion": False},
    )


@lru_cache
def compile_all() -> Mapping[Variant, TritonObject]:
    """Every variant for every target; raises on the first that fails."""
    wanted = [variant for target in TARGETS for variant in variants(target)]
    results = compile_triton_many([(request(variant), record(variant.target)) for variant in wanted], jobs=1)
    compiled = {}
    for variant, finished in zip(wanted, results, strict=True):
        if finished.value is None:
            raise finished.error or AssertionError(variant.name)
        compiled[variant] = finished.value
    return compiled


def vector_instructions(assembly: str) -> int:
    """Arithmetic instructions of the kernel: VALU on AMD, anything but memory and control flow in PTX."""
    amd = re.findall(r"^\tv_\w+", assembly.split("s_endpgm")[0], re.MULTILINE)
    if amd:
        return len(amd)
    body = assembly[assembly.index(".entry") :]
    return len(re.findall(r"^\t(?:@%p\d+ )?(?!\.|ld|st|bra|ret|\{|\}|//|mov)[a-z][\w.]*", body, re.MULTILINE))


def access_widths(assembly: str) -> dict[str, int]:
    """Bytes of the widest global load and store of one lane."""
    amd = {"dword": 4, "dwordx2": 8, "dwordx4": 16, "b32": 4, "b64": 8, "b128": 16}
    widths = {"load": 0, "store": 0}
    for kind, name in re.findall(r"(?:global|buffer)_(load|store)_(dwordx?\d?|b\d+)", assembly):
        widths[kind] = max(widths[kind], amd.get(name, 0))
    for kind, vector, bits in re.findall(r"\b(ld|st)\.global(?:\.\w+)*?(?:\.v(\d))?\.b(\d+)", assembly):
        key = "load" if kind == "ld" else "store"
        widths[key] = max(widths[key], int(vector or 1) * int(bits) // 8)
    return widths
