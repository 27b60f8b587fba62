"""The machine code that Triton makes for AMD targets, executed: matrix instructions on float16 and on FP8 codes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dsv4gen.reference.indexer_logits_cases import build_case
from tests.indexer_logits import compiled, emulated
from tests.tools import need_module

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
STEP = {"batch": 2, "queries": 2, "heads": 11, "width": 80, "page_size": 16, "pages": 9}
RAGGED = {"batch": 2, "rows": 3, "heads": 11, "width": 80, "page_size": 16, "pages": 9}
NAMES = (
    "index_minus_one",
    "index_past_end",
    "index_garbage",
    "length_zero",
    "length_above_width",
    "poisoned_slot_zero",
)


@pytest.mark.parametrize("target", TARGETS)
def test_compiled_kernels_are_right(target: str) -> None:
    need_module("triton")
    requests = compiled.for_emulation(target, PAGE_SIZE=16, FILL=True, BLOCK_H=16, BLOCKS=2)
    built = compiled.compile_requests(requests)
    assert {variant.fp8 for variant in requests} == (
        {False, True} if target in ("gfx942", "gfx950", "gfx1201") else {False}
    )
    for variant, request in requests.items():
        dialect, query_dialect = (str(request.constexprs[name]) for name in ("DIALECT", "QUERY_DIALECT"))
        shape = RAGGED if "prefill" in request.function else STEP
        case = build_case(shape, names=NAMES, dialect=dialect, query_dialect=query_dialect, tail="minus_inf", seed=9)
        case = replace(case, name=f"{variant}: {case.name}")
        order = "descending" if variant.fp8 else "random:1"
        result = emulated.launch(target, request, built[variant], case, order=order)
        case.check()
        assert result.counters["matrix"]
