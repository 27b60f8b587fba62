"""Damaged and foreign files are errors of the catalogue, never tracebacks; messages of all compilers parse."""

from __future__ import annotations

import struct

import pytest

from dsv4gen.base.errors import CompileError, Place
from dsv4gen.toolchain import cubin, diagnostics, hsaco, msgpack
from dsv4gen.toolchain.compile import compile_source
from dsv4gen.toolchain.elf import Elf
from tests.toolchain.sources import TWO_KERNELS, record, source
from tests.tools import need_module


@pytest.fixture
def code_object() -> bytes:
    need_module("ziglang")
    return compile_source(source(record("gfx950"), TWO_KERNELS), record("gfx950"), compiler="zig").binary


@pytest.mark.parametrize("size", [0, 3, 63, 64, 500, 2000, -1])
def test_a_file_that_is_cut_short(code_object: bytes, size: int) -> None:
    with pytest.raises(CompileError, match="not a readable ELF file"):
        hsaco.read_kernels(code_object[:size])


def test_any_damaged_byte_gives_a_result_or_an_error_of_ours(code_object: bytes) -> None:
    for position in range(0, len(code_object), 7):
        damaged = bytearray(code_object)
        damaged[position] ^= 0xFF
        try:
            hsaco.read_kernels(bytes(damaged))
        except CompileError:
            continue


def test_each_reader_refuses_the_other_vendor(code_object: bytes) -> None:
    with pytest.raises(CompileError, match="machine 224, not for an NVIDIA"):
        cubin.read_kernels(code_object)
    need_module("nvidia")
    cuda_code = compile_source(source(record("sm_90"), TWO_KERNELS), record("sm_90")).binary
    with pytest.raises(CompileError, match="machine 190, not for an AMD"):
        hsaco.read_kernels(cuda_code)


def test_symbols_and_sections(code_object: bytes) -> None:
    elf = Elf.parse(code_object)
    symbols = {symbol.name: symbol for symbol in elf.symbols()}
    assert {"reverse", "reverse.kd", "one", "one.kd"} <= set(symbols)
    text = elf.sections[symbols["reverse"].section]
    assert text.name == ".text"
    assert symbols["reverse"].size <= text.size == len(text.content)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"\x07", 7),
        (b"\xff", -1),
        (b"\xc3", True),
        (b"\xc0", None),
        (b"\xa2ab", "ab"),
        (b"\xd9\x02ab", "ab"),
        (b"\xda\x00\x02ab", "ab"),
        (b"\x92\x01\x02", [1, 2]),
        (b"\xdc\x00\x01\x05", [5]),
        (b"\x81\xa1k\xcd\x01\x00", {"k": 256}),
        (b"\xde\x00\x01\xa1k\xd1\xff\xfe", {"k": -2}),
        (b"\xcb" + struct.pack(">d", 1.5), 1.5),
    ],
)
def test_messagepack(raw: bytes, value: object) -> None:
    assert msgpack.decode(raw) == value


@pytest.mark.parametrize("raw", [b"", b"\xa5ab", b"\xcd\x01", b"\x81\x01\x02", b"\xc4\x01a", b"\xa1\xff"])
def test_messagepack_that_is_damaged(raw: bytes) -> None:
    with pytest.raises(CompileError, match="the metadata note"):
        msgpack.decode(raw)


@pytest.mark.parametrize(
    ("line", "severity", "place", "text"),
    [
        ("topk.hip:12:5: error: no x", "error", Place("topk.hip", 12, 5), "no x"),
        ("topk.hip:12: warning: old", "warning", Place("topk.hip", 12), "old"),
        ("topk.hip:1:2: fatal error: 'a.h' file not found", "error", Place("topk.hip", 1, 2), "'a.h' file not found"),
        ('topk.cu(12): error: identifier "x"', "error", Place("topk.cu", 12), 'identifier "x"'),
        ("topk.cu(3): warning #177-D: unused", "warning", Place("topk.cu", 3), "unused"),
        ("topk.cu(3): catastrophic error: no file", "error", Place("topk.cu", 3), "no file"),
        ("ptxas error   : too much shared data", "error", None, "ptxas: too much shared data"),
        ("nvcc fatal   : Unsupported gpu", "error", None, "nvcc: Unsupported gpu"),
        ("ld.lld: error: undefined symbol: f", "error", None, "ld.lld: undefined symbol: f"),
        ("clang++-22: error: unknown argument", "error", None, "clang++-22: unknown argument"),
    ],
)
def test_messages_of_all_compilers(line: str, severity: str, place: Place | None, text: str) -> None:
    assert diagnostics.parse(f"noise\n{line}\n  more noise") == (diagnostics.Diagnostic(severity, text, place),)


def test_progress_lines_are_not_messages() -> None:
    log = "ptxas info    : 0 bytes gmem\n1 error detected in the compilation.\nstart: 3: no\n"
    assert diagnostics.parse(log) == ()
