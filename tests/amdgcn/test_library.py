"""The instruction library: tables are well formed and reachable, and every host compiler takes the C++."""

from __future__ import annotations

import ctypes

import pytest

from dsv4gen.base.errors import EmulationError, ToolMissing
from dsv4gen.emulate.amdgcn import layout, library
from dsv4gen.emulate.amdgcn.lowering.lower import _VECTOR
from dsv4gen.emulate.amdgcn.names import canonical
from dsv4gen.emulate.amdgcn.tables import compare, scalar
from dsv4gen.emulate.amdgcn.tables.rows import parse_rows
from dsv4gen.toolchain.host import KINDS, host_compiler
from tests.tools import need_module, need_tool

TYPES = {"u32", "i32", "f32", "u64", "i64", "f64", "u16", "i16", "f16", "bf16", "mask", "scc", "s16", "exec", "mix"}
TYPES |= {"f16x2", "u16x2", "i16x2", "f32x2"}
ROWS = {**_VECTOR, **compare.COMPARE, **scalar.SCALAR, **scalar.SAVE_EXEC}


def test_rows_have_known_types_and_an_expression() -> None:
    for row in ROWS.values():
        assert set(row.results) | set(row.sources) <= TYPES, row.name
        assert row.expression, row.name
        assert 1 <= len(row.sources) <= 4, row.name


def test_rows_are_reachable_under_their_own_name() -> None:
    for name in ROWS:
        assert canonical(name.split(".")[0]) == name.split(".")[0]


def test_rdna_names_lead_to_the_same_rows() -> None:
    pairs = {
        "v_add_nc_u32_e32": "v_add_u32",
        "v_dual_add_nc_u32": "v_add_u32",
        "v_add_co_ci_u32_e64": "v_addc_co_u32",
        "v_max_num_f32_e64_dpp": "v_max_f32",
        "s_and_not1_saveexec_b32": "s_andn2_saveexec",
        "s_add_co_ci_u32": "s_addc_u32",
        "ds_load_2addr_stride64_b32": "ds_read2st64_b32",
    }
    assert {name: canonical(name) for name in pairs} == pairs


def test_a_name_with_two_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="two rows"):
        parse_rows("v_x u32 = u32 : a\nv_x u32 = u32 : ~a")


def test_no_instruction_is_in_two_groups() -> None:
    assert len(library.group_of()) == sum(len(group.functions) for group in library.groups())


def test_structures_agree_with_the_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    layout.check_layout(library.executor())
    monkeypatch.setattr(layout, "ROWS_OFFSET", layout.ROWS_OFFSET + 64)
    with pytest.raises(EmulationError, match="disagree"):
        layout.check_layout(library.executor())


@pytest.mark.parametrize("kind", KINDS)
def test_host_compilers_take_the_runtime(kind: str) -> None:
    if kind == "zig":
        need_module("ziglang")
    elif kind == "g++":
        need_tool("g++")
    try:
        compiler = host_compiler(kind)
    except ToolMissing:
        need_tool(kind)
        raise
    group = next(group for group in library.groups() if group.name == "lanes")
    built = ctypes.CDLL(str(library.compile_text(library.group_source(group), group.name, compiler)))
    table = (ctypes.c_uint64 * len(group.functions)).in_dll(built, "emulator_functions")
    assert all(table)
