"""Text and code objects give the same program; both front ends name what they cannot take."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dsv4gen.base.errors import ArgumentError, CompileError, EmulationError, UnknownTarget
from dsv4gen.emulate.amdgcn import Kernel
from dsv4gen.emulate.amdgcn.assembly_text import read_assembly
from dsv4gen.emulate.amdgcn.code_object import read_code_object
from dsv4gen.emulate.amdgcn.program import Instruction, Operand, Program, Register
from dsv4gen.emulate.amdgcn.registers import NULL_READ
from tests.amdgcn.compiled import TARGETS, compile_hip
from tests.amdgcn.snippets import kernel_text, module_text, run_snippet, snippet_kernel, snippet_text
from tests.tools import need_tool

KERNELS = (("topk", "topk"), ("stack", "pointers"), ("stack", "spill"))


def comparable(program: Program) -> list[tuple[object, ...]]:
    """Instructions without what may differ: padding, addresses, distances that depend on code sizes."""
    records: list[tuple[object, ...]] = []
    since_getpc = 99
    for record in program.instructions:
        since_getpc = 0 if record.mnemonic == "s_getpc_b64" else since_getpc + 1
        if record.mnemonic in ("s_nop", "s_code_end"):
            continue
        operands = tuple(operand for operand in record.operands if operand.value != 0)
        if "branch" in record.mnemonic or (since_getpc < 6 and record.mnemonic.startswith(("s_add", "s_sub"))):
            operands = operands[:2] if "add" in record.mnemonic else ()
        records.append((record.mnemonic, alike(operands), dict(record.modifiers), second_of(record)))
    return records


def alike(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """Operands without differences of spelling: gfx11's missing scalar offset is `0x0` or `null`, and the low half of
    a register is `v1` or `v1.l` in code compiled without 16-bit registers."""
    kept = []
    for operand in operands:
        register = operand.value
        if isinstance(register, Register):
            if register.index == NULL_READ:
                continue
            if register.half == 0:
                operand = replace(operand, value=replace(register, half=None))
        kept.append(operand)
    return tuple(kept)


def second_of(record: Instruction) -> object:
    return record.second and (record.second.mnemonic, alike(record.second.operands))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS, ids=lambda name: name[1])
def test_same_program(target: str, name: tuple[str, str]) -> None:
    text = read_assembly(compile_hip(name[0], target).decode(), name[1])
    binary = read_code_object(compile_hip(name[0], target, output="-c"), name[1])
    assert text.descriptor == binary.descriptor
    assert comparable(text) == comparable(binary)[: len(comparable(text))]


#: One line of every instruction class in the spelling of its generation; clang has to accept them.
SNIPPETS = {
    "gfx90a": (
        "v_pk_mov_b32 v[16:17], v[8:9], v[10:11] op_sel:[1,0]",
        "v_mfma_f32_16x16x16bf16_1k v[16:19], v[8:9], v[10:11], 0",
    ),
    "gfx942": (
        "v_cvt_pk_f32_fp8_sdwa v[16:17], v8 src0_sel:WORD_1",
        "v_mad_u64_u32 v[16:17], s[8:9], v8, v9, v[10:11]",
    ),
    "gfx950": ("v_bitop3_b32 v16, v8, v9, v10 bitop3:0x6c", "v_permlane32_swap_b32_e32 v16, v17"),
    "gfx1100": (
        "v_dual_add_f32 v16, v8, v9 :: v_dual_mul_f32 v17, v10, v11",
        "v_fma_mix_f32 v18, v8, v9, v10 op_sel_hi:[1,0,1]",
    ),
    "gfx1201": ("v_mov_b16_e32 v16.h, v8.l", "v_cvt_f32_fp8_e64 v17, v8 byte_sel:1"),
}


@pytest.mark.parametrize("target", TARGETS)
def test_assembled_snippets_run_alike(target: str, tmp_path: Path) -> None:
    clang = need_tool("clang-22")
    need_tool("ld.lld-22")
    source, binary = tmp_path / "snippet.s", tmp_path / "snippet.hsaco"
    source.write_text(snippet_text(target, SNIPPETS[target]))
    assembler = ["-x", "assembler", "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}"]
    if target.startswith("gfx12"):  # 16-bit registers by name
        assembler += ["-Xclangas", "-target-feature", "-Xclangas", "+real-true16"]
    command = [clang, *assembler, str(source), "-o", str(binary)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    values = np.random.default_rng(0).integers(0, 1 << 32, (64, 8), np.uint64).astype(np.uint32)
    from_text = run_snippet(target, SNIPPETS[target], values)
    kernel = Kernel.from_code_object(binary.read_bytes(), "snippet")
    results = np.zeros((64, 4), np.uint32)
    assert kernel.run(1, 64, [values, results]).problems == ()
    assert np.array_equal(from_text, results)


def test_dual_issue_reads_before_it_writes() -> None:
    values = np.arange(64 * 8, dtype=np.uint32).reshape(64, 8)
    lines = ["v_dual_mov_b32 v8, v9 :: v_dual_mov_b32 v9, v8", "v_mov_b32_e32 v16, v8", "v_mov_b32_e32 v17, v9"]
    found = run_snippet("gfx1100", lines, values)
    assert found[:, :2].tolist() == values[:, 1::-1].tolist()


def test_all_unknown_instructions_are_listed() -> None:
    lines = ["v_cubeid_f32 v16, v8, v9, v10", "v_mov_b32_e32 v17, v8", "ds_append v16", "v_cubeid_f32 v16, v8, v9, v11"]
    with pytest.raises(EmulationError) as caught:
        snippet_kernel("gfx942", lines)
    message = str(caught.value)
    assert "2 instruction(s)" in message
    assert "v_cubeid_f32" in message
    assert "ds_append" in message
    assert "docs/emulation.md" in message


def test_unknown_modifiers_are_refused() -> None:
    with pytest.raises(EmulationError, match="modifier tfe"):
        snippet_kernel("gfx942", ["buffer_load_dword v16, v2, s[8:11], 0 offen tfe"])
    with pytest.raises(EmulationError, match="modifier neg"):
        snippet_kernel("gfx942", ["v_mfma_f64_16x16x4_f64 v[16:23], v[8:9], v[10:11], v[16:23] neg:[1,0,0]"])
    with pytest.raises(EmulationError, match="clamp of an integer"):
        snippet_kernel("gfx942", ["v_mul_lo_u32 v16, v8, v9 clamp"])


def test_unknown_kernels_targets_and_texts() -> None:
    text = snippet_text("gfx942", ["s_nop 0"])
    with pytest.raises(CompileError, match="its kernels: snippet"):
        Kernel.from_assembly(text, "other")
    with pytest.raises(CompileError, match="not AMD assembly"):
        Kernel.from_assembly(".text\nnop\n", "snippet")
    with pytest.raises(UnknownTarget, match="gfx1030"):
        Kernel.from_assembly(text.replace("gfx942", "gfx1030"), "snippet")
    with pytest.raises(CompileError):
        Kernel.from_code_object(b"not an ELF file", "snippet")


def test_two_kernels_in_one_file() -> None:
    first = kernel_text("gfx942", "first", ["v_mov_b32_e32 v16, 1"])
    second = kernel_text("gfx942", "second", ["v_mov_b32_e32 v16, 2"])
    text = module_text("gfx942", [first, second], ["first", "second"])
    for value, name in enumerate(("first", "second"), start=1):
        results = np.zeros((64, 4), np.uint32)
        assert Kernel.from_assembly(text, name).run(1, 64, [np.zeros((64, 8), np.uint32), results]).problems == ()
        assert (results[:, 0] == value).all()


def test_wrong_arguments_are_refused() -> None:
    kernel = snippet_kernel("gfx942", ["s_nop 0"])
    buffer = np.zeros((64, 8), np.uint32)
    with pytest.raises(ArgumentError, match="takes 2 arguments"):
        kernel.run(1, 64, [buffer])
    with pytest.raises(ArgumentError, match="by value"):
        kernel.run(1, 64, [buffer, 5])
    with pytest.raises(ArgumentError, match="not contiguous"):
        kernel.run(1, 64, [buffer, buffer[:, ::2]])
    with pytest.raises(ArgumentError, match="has 4 bytes"):
        kernel.run(1, 64, [buffer, np.int32(1)])
    with pytest.raises(ArgumentError, match="1 to 1024 threads"):
        kernel.run(1, 2048, [buffer, buffer])
    with pytest.raises(ArgumentError, match="bytes of LDS are more than gfx942 has"):
        kernel.run(1, 64, [buffer, buffer], lds=65540)
    with pytest.raises(ArgumentError, match="unknown order"):
        kernel.run(1, 64, [buffer, buffer], order="sideways")
