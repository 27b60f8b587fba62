"""The machine code that Triton makes for AMD targets, executed: native conversions, wave sizes, real addresses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dsv4gen.reference.gather_dequant_cases import build_case, products_case
from tests.tools import need_module
from tests.triton import compiled, emulated
from tests.triton.checks import DUAL, SHAPE

TARGETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
NAMES = ("index_minus_one", "index_negative", "index_past_end", "index_garbage", "length_zero", "length_above_width")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("order", ["ascending", "descending", "random:1"])
def test_compiled_kernels_are_exact(target: str, order: str) -> None:
    need_module("triton")
    built = compiled.compile_all()
    for variant, request in compiled.requests(target).items():
        shape = {**(DUAL if variant.function == "gather_scopes" else SHAPE), "tokens": 5, "queries": 2, "width": 19}
        extra = str(request.constexprs.get("EXTRA_DIALECT", "e4m3fn"))
        names = (*NAMES, "scale_extremes", "nan_code", "poisoned_slot_zero")
        case = build_case(shape, names=names, dialect=variant.dialect, extra_dialect=extra, seed=9)
        case = replace(case, name=f"{variant.name}: {case.name}")
        result = emulated.launch(target, request, built[variant], case, order=order)
        case.check()
        assert result.counters


@pytest.mark.parametrize("target", TARGETS)
def test_every_code_and_scale(target: str) -> None:
    need_module("triton")
    built = compiled.compile_all()
    for variant, request in compiled.requests(target).items():
        if variant.function == "gather_scope":
            case = products_case(variant.dialect)
            emulated.launch(target, request, built[variant], case)
            case.check()


def test_native_conversion_executes_fewer_instructions() -> None:
    need_module("triton")
    built = compiled.compile_all()
    for target, dialect in (("gfx942", "e4m3fnuz"), ("gfx950", "e4m3fn")):
        executed = {}
        for variant, request in compiled.requests(target).items():
            if (variant.function, variant.dialect, variant.rows) == ("gather_scope", dialect, compiled.SMALL_ROWS):
                case = build_case({**SHAPE, "width": 64}, dialect=dialect)
                executed[variant.decode] = emulated.launch(target, request, built[variant], case).instructions
        assert executed["native"] < 0.95 * executed["integer"], executed
