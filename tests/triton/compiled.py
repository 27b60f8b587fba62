"""Offline compile of gather_dequant for every target: what ships, and the integer twin of each native conversion."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from dsv4gen.base import paths
from dsv4gen.spec import load_specs
from dsv4gen.target import TargetRecord, resolve_all
from dsv4gen.toolchain import TritonKernel, TritonObject, compile_triton_many
from dsv4gen.verify.triton_requests import triton_requests
from tests.triton.modules import module, plan, rendered

TARGETS = (
    "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120",
)  # fmt: skip
#: where the tiles of large work are compiled too; they differ in the number of rows only
WIDE_TARGETS = ("gfx950", "gfx1201", "sm_90")
#: rows of a program where work is small
SMALL_ROWS = 2


@dataclass(frozen=True)
class Variant:
    """One compiled kernel: `decode` is how its codes are converted."""

    target: str
    function: str
    dialect: str
    decode: str
    rows: int

    @property
    def name(self) -> str:
        """For messages and tables."""
        return f"{self.target} {self.function} {self.dialect} {self.decode} {self.rows} rows"


@lru_cache(maxsize=1)
def _records() -> Mapping[str, TargetRecord]:
    return {record.name: record for record in resolve_all(load_specs(paths.specs()))}


def record(target: str) -> TargetRecord:
    """The target's record."""
    return _records()[target]


def native_dialects(target: str) -> tuple[str, ...]:
    """Dialects that the target's own text converts natively."""
    text = module(target).read_text(encoding="utf-8")
    types = {"e4m3fn": "tl.float8e4nv", "e4m3fnuz": "tl.float8e4b8"}
    return tuple(dialect for dialect, name in types.items() if name in text)


def requests(target: str) -> dict[Variant, TritonKernel]:
    """What ships for a target, and the integer twin of each native conversion with the smallest tile."""
    found = {}
    for request in triton_requests(plan(target), rendered(target), module(target)):
        dialect = str(request.constexprs["DIALECT"])
        native = dialect in native_dialects(target)
        rows = int(request.constexprs["ROWS"] or 0)
        variant = Variant(target, request.function, dialect, "native" if native else "integer", rows)
        if request.function == "gather_scope" and rows > SMALL_ROWS and target not in WIDE_TARGETS:
            continue
        found[variant] = request
        if native and request.function == "gather_scope" and rows == SMALL_ROWS:
            twin = replace(request, constexprs={**request.constexprs, "NATIVE": False})
            found[replace(variant, decode="integer")] = twin
    return found


@lru_cache(maxsize=1)
def compile_all() -> Mapping[Variant, TritonObject]:
    """Every variant for every target; raises on the first that fails."""
    wanted = {variant: request for target in TARGETS for variant, request in requests(target).items()}
    work = [(request, record(variant.target)) for variant, request in wanted.items()]
    compiled = {}
    for variant, finished in zip(wanted, compile_triton_many(work, jobs=1), strict=True):
        if finished.value is None:
            raise finished.error or AssertionError(variant.name)
        compiled[variant] = finished.value
    return compiled


def vector_instructions(assembly: str) -> int:
    """Arithmetic instructions of the kernel: VALU on AMD, anything but memory and control flow in PTX."""
    amd = re.findall(r"^\tv_\w+", assembly.rpartition("s_endpgm")[0], re.MULTILINE)
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


def table() -> str:
    """The resource table as text, native beside integer."""
    lines = [
        "| target | kernel | rows | dialect | decode | registers | spills | shared | arithmetic | blocks per unit |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|---|---|")
    for variant, built in compile_all().items():
        (kernel,) = built.code.kernels
        blocks = kernel.occupancy.blocks if kernel.occupancy else 0
        cells = (variant.target, variant.function, variant.rows, variant.dialect, variant.decode)
        figures = (kernel.vector_registers, kernel.spilled_registers, built.shared_bytes)
        arithmetic = vector_instructions(built.code.assembly or "")
        lines.append(f"| {' | '.join(map(str, (*cells, *figures, arithmetic, blocks)))} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
