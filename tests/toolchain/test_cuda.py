"""Real compiles for every NVIDIA target with NVRTC and, where it is installed, nvcc."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dsv4gen.base.errors import CompileError, ResourceError, ToolMissing
from dsv4gen.toolchain import cubin, cuda, locate
from dsv4gen.toolchain.compile import compile_source
from dsv4gen.toolchain.resources import check_budget
from tests.toolchain import readers
from tests.toolchain.sources import CUDA_TARGETS, SPILLING, TWO_KERNELS, record, source, with_shared_bytes
from tests.toolchain.stubs import path_with, write_program
from tests.tools import need_module

# nvcc is an optional check on NVRTC and slower: one target of each generation is enough for it.
NVCC_TARGETS = ("sm_80", "sm_90", "sm_120") if shutil.which("nvcc") else ()
COMPILES = [*((target, "nvrtc") for target in CUDA_TARGETS), *((target, "nvcc") for target in NVCC_TARGETS)]


@pytest.fixture(autouse=True)
def nvrtc_is_here() -> None:
    if locate.find_nvrtc() is None:
        need_module("nvidia")


@pytest.mark.parametrize(("target", "compiler"), COMPILES)
def test_two_kernels_in_one_run(target: str, compiler: str) -> None:
    code = compile_source(
        source(record(target), TWO_KERNELS), record(target), symbols=["reverse", "one"], compiler=compiler
    )
    reverse, one = code.kernel("reverse"), code.kernel("one")
    assert (reverse.shared_bytes, reverse.max_threads, one.shared_bytes, one.max_threads) == (
        1024,
        256,
        0,
        64,
    )
    assert (reverse.wave, reverse.waves) == (32, 8)
    assert not check_budget(reverse, record(target), expected_shared=1024, threads=256)
    assert code.assembly is None


@pytest.mark.parametrize(("target", "compiler"), COMPILES)
@pytest.mark.parametrize("body", [TWO_KERNELS, SPILLING], ids=["small", "spilling"])
def test_three_readers_agree(target: str, compiler: str, body: str, tmp_path: Path) -> None:
    """The cubin's sections, the assembler's log, and cuobjdump."""
    program = locate.find_triton_program("cuobjdump") or locate.find_program("cuobjdump")
    if program is None:
        need_module("triton")
    chosen = cuda.cuda_compiler(compiler)
    code = compile_source(source(record(target), body), record(target), compiler=compiler)
    log = (next(tmp_path.glob("cache/toolchain/kernels/*/*/log.txt"))).read_text()
    figures = cubin.read_log(log)
    dumped = readers.cuobjdump(str(program), code.binary, tmp_path)
    assert set(figures) == set(dumped) == {kernel.symbol for kernel in code.kernels}
    for kernel in code.kernels:
        registers, stack, shared = dumped[kernel.symbol]
        reserve = 1024 if record(target).detect.capability >= (9, 0) and shared else 0
        assert (kernel.vector_registers, kernel.scratch_bytes) == (registers, stack)
        assert kernel.static_shared_bytes == shared - reserve == figures[kernel.symbol].static_shared_bytes
        assert kernel.spilled_vector == figures[kernel.symbol].spill_store_bytes // 4
    assert chosen.kind == code.compiler


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_spills_are_found_with_and_without_the_log(target: str) -> None:
    code = compile_source(source(record(target), SPILLING), record(target))
    with_log = code.kernel("spilling")
    (without_log,) = cubin.read_kernels(code.binary)
    assert with_log.spilled_vector > 0
    assert without_log.spilled_vector > 0
    assert any("spilled" in str(error) for error in check_budget(with_log, record(target)))


@pytest.mark.parametrize(("target", "compiler"), COMPILES)
def test_static_shared_memory_stops_at_48_kib(target: str, compiler: str) -> None:
    """ptxas itself refuses only for sm_80 and sm_89; for later targets the rule is ours."""
    at_limit = compile_source(with_shared_bytes(record(target), 49152), record(target), compiler=compiler)
    assert at_limit.kernel("roomy").shared_bytes == 49152
    with pytest.raises(ResourceError, match=r"roomy.*49156 bytes of static shared memory.*limit is 49152"):
        compile_source(with_shared_bytes(record(target), 49156), record(target), compiler=compiler)


def test_an_odd_folder(odd_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = source(record("sm_90"), TWO_KERNELS)
    plain = compile_source(text, record("sm_90"))
    monkeypatch.setattr("tempfile.tempdir", str(odd_folder))
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(odd_folder / "cache"))
    assert compile_source(text, record("sm_90")).binary == plain.binary
    assert sorted(entry.name for entry in odd_folder.iterdir()) == ["cache"]


def test_nvcc_is_kept_out_of_folders_it_would_execute(
    odd_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(tmp_path / "bin", "nvcc", "touch started")
    monkeypatch.setenv("PATH", path_with(tmp_path / "bin"))
    monkeypatch.setattr("tempfile.tempdir", str(odd_folder))
    with pytest.raises(CompileError, match="shell") as raised:
        compile_source(source(record("sm_90"), TWO_KERNELS), record("sm_90"), compiler="nvcc")
    assert "nvrtc" in raised.value.remedy
    assert not list(odd_folder.iterdir())


def test_a_library_that_cannot_be_loaded_is_a_compile_error(tmp_path: Path) -> None:
    broken = tmp_path / "libnvrtc.so.13"
    broken.write_bytes(b"not a library")
    with pytest.raises(ToolMissing, match=r"libnvrtc\.so\.13.* exit status 1"):
        cuda.nvrtc_version(broken)


def test_without_nvrtc_nvcc_is_used_and_without_both_the_remedy_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(locate, "find_nvrtc", lambda: None)
    if shutil.which("nvcc"):
        assert cuda.cuda_compiler().kind == "nvcc"
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolMissing, match="neither NVRTC nor nvcc") as raised:
        cuda.cuda_compiler()
    assert "pip install nvidia-cuda-nvrtc" in raised.value.remedy


def test_a_cuda_home_that_points_nowhere_does_no_harm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "nowhere"))
    assert compile_source(source(record("sm_80"), TWO_KERNELS), record("sm_80")).compiler == "nvrtc"
