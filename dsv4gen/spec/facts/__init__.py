"""The groups of facts that describe one GPU target, as they are once `extends` is resolved.

Every leaf is a hardware, compiler or driver fact with a source. Field names are the keys of
`specs/platforms/*.yaml`; dotted paths such as `shared.block` are the names expressions and templates use.

naming      how compilers and drivers name a target
execution   waves, units, registers, blocks and what launches them
memory      shared memory, copies, atomics, widths, caches
arithmetic  matrix units, FP8, bf16
product     single cards
"""

from __future__ import annotations

from dsv4gen.spec.facts.arithmetic import Bf16, DotFloor, Fp8, Matrix, MaxFinite, NativeSince, TritonFp8
from dsv4gen.spec.facts.execution import Block, Bounds, Cluster, Launch, Regs, Split, Unit, Wave
from dsv4gen.spec.facts.memory import Access, Atomics, Cache, Copy, Shared
from dsv4gen.spec.facts.naming import Compile, Detect, Triton
from dsv4gen.spec.facts.product import Product
from dsv4gen.spec.models import Model

__all__ = [
    "GROUPS",
    "Access",
    "Atomics",
    "Bf16",
    "Block",
    "Bounds",
    "Cache",
    "Cluster",
    "Compile",
    "Copy",
    "Detect",
    "DotFloor",
    "Fp8",
    "Launch",
    "Matrix",
    "MaxFinite",
    "NativeSince",
    "Product",
    "Regs",
    "Shared",
    "Split",
    "Triton",
    "TritonFp8",
    "Unit",
    "Wave",
]

#: Groups that become facts, by key; `products` stay out on purpose.
GROUPS: dict[str, type[Model]] = {
    "compile": Compile,
    "detect": Detect,
    "wave": Wave,
    "unit": Unit,
    "regs": Regs,
    "block": Block,
    "shared": Shared,
    "bounds": Bounds,
    "cluster": Cluster,
    "split": Split,
    "launch": Launch,
    "copy": Copy,
    "matrix": Matrix,
    "fp8": Fp8,
    "bf16": Bf16,
    "atomics": Atomics,
    "access": Access,
    "cache": Cache,
}
