"""Execute compiled AMD machine code on this CPU: checked, counted, no GPU needed.

    program          the record both front ends produce
    registers        slots of the scalar file
    generation       what differs between ISA generations
    operands, instruction_text              the text of one instruction
    metadata, expressions, data_section     the rest of a file
    assembly_scan, assembly_text            front end for the text of clang, ziglang and Triton
    code_object      front end for ELF files, through llvm-objdump
    tables           one row per instruction: types and a C++ expression
    names            RDNA spellings to the tables' names
    layout           the runtime's structures
    emit_cpp, library                       tables to C++, compiled once and cached
    lowering         a program to calls of instruction functions
    arguments, counters, result, launch     one launch
    kernel           the front door

Nothing is compiled per kernel: a kernel becomes a list of calls into the instruction library (docs/emulation.md).
"""

from __future__ import annotations

from dsv4gen.emulate.amdgcn.arguments import HostBuffer
from dsv4gen.emulate.amdgcn.kernel import Kernel
from dsv4gen.emulate.amdgcn.result import Finding, Result

__all__ = ["Finding", "HostBuffer", "Kernel", "Result"]
