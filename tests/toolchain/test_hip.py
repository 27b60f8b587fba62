"""Real compiles for every AMD target with clang and with ziglang."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dsv4gen.base.errors import CompileError, ToolMissing
from dsv4gen.target.occupancy import waves_by_registers
from dsv4gen.toolchain import hip, hsaco, locate
from dsv4gen.toolchain.code import Job
from dsv4gen.toolchain.compile import compile_source
from dsv4gen.toolchain.elf import Elf
from dsv4gen.toolchain.resources import KernelResources, check_budget
from tests.toolchain import readers
from tests.toolchain.sources import HIP_TARGETS, SPILLING, TWO_KERNELS, record, source, with_shared_bytes
from tests.toolchain.stubs import write_program
from tests.tools import need_module, need_tool


@pytest.fixture(params=hip.KINDS)
def compiler(request: pytest.FixtureRequest) -> str:
    if request.param == "clang":
        need_tool("clang++-22")
        need_tool("ld.lld-22")
    else:
        need_module("ziglang")
    return str(request.param)


@pytest.mark.parametrize("target", HIP_TARGETS)
def test_two_kernels_in_one_run(target: str, compiler: str) -> None:
    code = compile_source(
        source(record(target), TWO_KERNELS), record(target), symbols=["reverse", "one"], compiler=compiler
    )
    assert code.compiler == compiler
    assert [kernel.symbol for kernel in code.kernels] == ["reverse", "one"]
    reverse, one = code.kernels
    assert (reverse.shared_bytes, reverse.max_threads, one.shared_bytes, one.max_threads) == (
        1024,
        256,
        0,
        64,
    )
    assert reverse.wave == record(target).wave.launch
    assert reverse.waves == 256 // reverse.wave
    assert not check_budget(reverse, record(target), expected_shared=1024, threads=256)
    assert hsaco.read_metadata(code.binary)["amdhsa.target"] == f"amdgcn-amd-amdhsa--{target}"
    assert code.assembly is not None
    assert "reverse:" in code.assembly


@pytest.mark.parametrize("target", HIP_TARGETS)
@pytest.mark.parametrize("body", [TWO_KERNELS, SPILLING], ids=["small", "spilling"])
def test_three_readers_agree(target: str, body: str, compiler: str) -> None:
    architecture = record(target).compile.clang
    assert architecture is not None
    text = source(record(target), body)
    job = Job(text, "read.hip", architecture, "read.hip", record(target).shared.static, readers.REMARKS)
    built = hip.hip_compiler(compiler).build(job)
    remarks = readers.remarks(built.log)
    metadata = readers.assembly_metadata(built.assembly or "")
    kernels = hsaco.read_kernels(built.binary)
    assert len(kernels) == len(remarks) == len(metadata)
    for kernel in kernels:
        assert _of_remarks(remarks[kernel.symbol]) == _comparable(kernel)
        assert _of_metadata(metadata[kernel.symbol]) == _comparable(kernel)
        waves = int(remarks[kernel.symbol]["Occupancy [waves/SIMD]"])
        assert waves_by_registers(record(target), *_registers(kernel)) == waves or kernel.shared_bytes


def _comparable(kernel: KernelResources) -> tuple[int, ...]:
    accumulators = kernel.accumulator_registers
    return (
        kernel.vector_registers + accumulators,
        accumulators,
        kernel.spilled_vector,
        kernel.spilled_scalar,
        kernel.scratch_bytes,
        kernel.static_shared_bytes,
    )


def _registers(kernel: KernelResources) -> tuple[int, int, int]:
    return kernel.vector_registers, kernel.accumulator_registers, kernel.scalar_registers


def _of_remarks(figures: dict[str, str]) -> tuple[int, ...]:
    vectors, accumulators = int(figures["VGPRs"]), int(figures.get("AGPRs", "0"))
    total = (vectors + 3) // 4 * 4 + accumulators if accumulators else vectors
    names = ("VGPRs Spill", "SGPRs Spill", "ScratchSize [bytes/lane]", "LDS Size [bytes/block]")
    return (total, accumulators, *(int(figures[name]) for name in names))


def _of_metadata(figures: dict[str, object]) -> tuple[int, ...]:
    names = (
        ".vgpr_count",
        ".agpr_count",
        ".vgpr_spill_count",
        ".sgpr_spill_count",
        ".private_segment_fixed_size",
        ".group_segment_fixed_size",
    )
    return tuple(int(str(figures.get(name, 0))) for name in names)


@pytest.mark.parametrize("target", HIP_TARGETS)
def test_the_machine_code_is_that_of_a_single_step(target: str, tmp_path: Path) -> None:
    clang = need_tool("clang++-22")
    text = source(record(target), TWO_KERNELS)
    (tmp_path / "kernels.hip").write_text(text)
    flags = [*hip.FLAGS, f"--offload-arch={record(target).compile.clang}"]
    command = [clang, *flags, "kernels.hip", "-o", "direct.hsaco"]
    subprocess.run(command, cwd=tmp_path, check=True)
    direct = Elf.parse((tmp_path / "direct.hsaco").read_bytes())
    ours = Elf.parse(compile_source(text, record(target), compiler="clang").binary)
    for name in (".text", ".rodata", ".note"):
        first, second = direct.section(name), ours.section(name)
        assert first is not None
        assert second is not None
        assert first.content == second.content, name


def test_spills_are_found(compiler: str) -> None:
    code = compile_source(source(record("gfx942"), SPILLING), record("gfx942"), compiler=compiler)
    kernel = code.kernel("spilling")
    assert kernel.spilled_vector > 0
    assert kernel.scratch_bytes > 0
    findings = [str(error) for error in check_budget(kernel, record("gfx942"))]
    assert any("spilled vector registers, 0 allowed" in finding for finding in findings)
    allowed = check_budget(
        kernel,
        record("gfx942"),
        allowed_spills=kernel.spilled_vector,
        allowed_scalar_spills=kernel.spilled_scalar,
        allowed_scratch=kernel.scratch_bytes,
    )
    assert not allowed


@pytest.mark.parametrize(("target", "limit"), [("gfx942", 65536), ("gfx950", 163840), ("gfx1250", 327680)])
def test_shared_memory_up_to_the_limit_and_no_further(target: str, limit: int, compiler: str) -> None:
    at_limit = compile_source(with_shared_bytes(record(target), limit), record(target), compiler=compiler)
    assert at_limit.kernel("roomy").shared_bytes == limit
    with pytest.raises(CompileError, match=rf"{limit + 4}\) exceeds limit \({limit}\)"):
        compile_source(with_shared_bytes(record(target), limit + 4), record(target), compiler=compiler)


def test_the_same_bytes_whatever_the_folder(compiler: str, odd_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = source(record("gfx950"), TWO_KERNELS)
    plain = compile_source(text, record("gfx950"), compiler=compiler)
    monkeypatch.setattr("tempfile.tempdir", str(odd_folder))
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(odd_folder / "cache"))
    odd = compile_source(text, record("gfx950"), compiler=compiler)
    assert (odd.binary, odd.assembly) == (plain.binary, plain.assembly)
    assert sorted(entry.name for entry in odd_folder.iterdir()) == ["cache"]


def test_ziglang_is_used_when_clang_is_missing_or_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_module("ziglang")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert hip.hip_compiler().kind == "zig"
    write_program(tmp_path, "clang++", "exit 1", "Debian clang version 14.0.6")
    assert hip.hip_compiler().kind == "zig"
    with pytest.raises(ToolMissing, match="too old"):
        hip.hip_compiler("clang")
    monkeypatch.setattr(locate, "find_zig", lambda: None)
    with pytest.raises(ToolMissing, match="too old") as raised:
        hip.hip_compiler()
    assert "pip install ziglang" in raised.value.remedy
