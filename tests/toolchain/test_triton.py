"""Triton without a GPU: real compiles, limits that Triton does not enforce, crashes and messages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dsv4gen.base.errors import CompileError, Place, ResourceError, ToolMissing
from dsv4gen.toolchain import TritonKernel, TritonObject, check_budget, compile_triton_many, triton_compile
from dsv4gen.toolchain.parallel import Finished
from dsv4gen.toolchain.triton_compile import compile_triton
from tests.toolchain.sources import CUDA_TARGETS, HIP_TARGETS, record
from tests.tools import need_module

MODULE = Path(__file__).with_name("triton_kernels.py")
SCALE = TritonKernel(
    module=MODULE,
    function="scale_rows",
    signature={"x": "*fp32", "y": "*fp32", "n": "i32", "stride": "i32"},
    constexprs={"BLOCK": 2048},
    attrs={"x": 16, "y": 16, "n": 16, "stride": 16},
    options={"num_warps": 4, "num_stages": 2},
)
POINTERS = {"x": "*fp32", "y": "*fp32"}
LARGE = TritonKernel(MODULE, "large_tile", POINTERS, {"SIZE": 256}, POINTERS.fromkeys(POINTERS, 16))
BROKEN = TritonKernel(MODULE, "broken", {"x": "*fp32"}, {"BLOCK": 64})


@pytest.fixture(autouse=True)
def triton_is_here() -> None:
    need_module("triton")


def compile_all(*work: tuple[TritonKernel, str]) -> list[Finished[TritonObject]]:
    return compile_triton_many([(kernel, record(target)) for kernel, target in work])


def value_of(finished: Finished[TritonObject]) -> TritonObject:
    assert finished.error is None, str(finished.error)
    assert finished.value is not None
    return finished.value


def test_every_target_in_one_batch() -> None:
    targets = [*HIP_TARGETS, *CUDA_TARGETS]
    for target, finished in zip(targets, compile_all(*((SCALE, target) for target in targets)), strict=True):
        compiled = value_of(finished)
        (kernel,) = compiled.code.kernels
        wave = record(target).wave.launch
        assert (compiled.symbol, compiled.threads) == ("scale_rows", 4 * wave)
        assert (kernel.max_threads, kernel.wave) == (4 * wave, wave)
        assert kernel.static_shared_bytes == 0
        assert 0 < kernel.shared_bytes == compiled.shared_bytes
        assert kernel.vector_registers > 8
        assert kernel.occupancy is not None
        assert not check_budget(kernel, record(target), threads=4 * wave)
        assert compiled.code.target == target


def test_alignment_makes_wide_loads() -> None:
    narrow = replace(SCALE, attrs={})
    results = compile_all((SCALE, "gfx950"), (narrow, "gfx950"), (SCALE, "sm_90"), (narrow, "sm_90"))
    texts = [value_of(finished).code.assembly or "" for finished in results]
    wide = [text.count("load_dwordx4") + text.count("ld.global.v4") for text in texts]
    assert wide[0] > 0 == wide[1]
    assert wide[2] > 0 == wide[3]


def test_limits_that_triton_does_not_enforce() -> None:
    on_gfx942, on_gfx950 = compile_all((LARGE, "gfx942"), (LARGE, "gfx1250"))
    assert isinstance(on_gfx942.error, ResourceError)
    assert "bytes of shared memory, the limit is 65536" in str(on_gfx942.error)
    assert value_of(on_gfx950).shared_bytes > 65536


def test_too_many_threads() -> None:
    (finished,) = compile_all((replace(SCALE, options={"num_warps": 32}), "gfx942"))
    assert "blocks of 2048 threads, the limit is 1024" in str(finished.error)


def test_types_as_constants() -> None:
    kernel = TritonKernel(MODULE, "convert", {"x": "*fp32", "y": "*bf16"}, {"BLOCK": 256, "KIND": "tl.bfloat16"})
    (finished,) = compile_all((kernel, "sm_90"))
    assert "cvt.rn.bf16" in (value_of(finished).code.assembly or "")


def test_contraction_is_pinned_whatever_the_caller_has_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "0")
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    kernel = TritonKernel(MODULE, "contract", POINTERS, {"BLOCK": 256})
    separate = replace(kernel, options={"enable_fp_fusion": False})
    fused, plain = compile_all((kernel, "gfx950"), (separate, "gfx950"))
    assert "fma" in (value_of(fused).code.assembly or "")
    assert "fma" not in (value_of(plain).code.assembly or "")


@dataclass(frozen=True)
class TemplateMap:
    def origin(self, line: int) -> Place | None:
        return Place("templates/triton/x.py.jinja", line + 1000)


def test_a_mistake_names_the_line_even_inside_a_helper() -> None:
    mistake = next(
        number for number, line in enumerate(MODULE.read_text().splitlines(), 1) if "name_that_nobody_defined" in line
    )
    plain, mapped = compile_all((BROKEN, "gfx950"), (replace(BROKEN, source_map=TemplateMap()), "sm_90"))
    assert isinstance(plain.error, CompileError)
    assert plain.error.place == Place("tests/toolchain/triton_kernels.py", mistake)
    assert "name_that_nobody_defined" in str(plain.error)
    assert "broken of triton_kernels.py for gfx950" in str(plain.error)
    assert mapped.error is not None
    assert mapped.error.place == Place("templates/triton/x.py.jinja", mistake + 1000)


def test_a_crash_costs_only_its_kernel(tmp_path: Path) -> None:
    (tmp_path / "crash.py").write_text("import os\nos.kill(os.getpid(), 11)\n")
    crashing = replace(SCALE, module=tmp_path / "crash.py")
    work = [(SCALE, "gfx950"), (crashing, "gfx950"), (SCALE, "gfx1201"), (BROKEN, "gfx950")]
    finished = compile_triton_many([(kernel, record(target)) for kernel, target in work], jobs=1)
    assert [one.error is None for one in finished] == [True, False, True, False]
    assert "scale_rows of crash.py for gfx950: killed by signal 11" in str(finished[1].error)
    assert "broken of" in str(finished[3].error)


def test_parameters_without_a_type_are_named() -> None:
    (finished,) = compile_all((replace(SCALE, signature={"x": "*fp32", "z": "i32"}), "gfx950"))
    assert "without a type: ['y', 'n', 'stride']" in str(finished.error)
    assert "no parameter: ['z']" in str(finished.error)


def test_one_kernel_raises_its_error_and_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_one(constexprs: dict[str, int]) -> TritonObject:
        return compile_triton(
            MODULE, "scale_rows", SCALE.signature, constexprs, SCALE.attrs, SCALE.options, record("gfx1201")
        )

    first = compile_one({"BLOCK": 512})
    with pytest.raises(CompileError, match="power of 2"):
        compile_one({"BLOCK": 500})
    monkeypatch.setattr("dsv4gen.toolchain.process.subprocess.Popen", None)
    assert compile_one({"BLOCK": 512}) == first
    with pytest.raises(TypeError):
        compile_one({"BLOCK": 1024})


def test_without_triton_the_remedy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise triton_compile.PackageNotFoundError(name)

    monkeypatch.setattr(triton_compile, "version", absent)
    with pytest.raises(ToolMissing, match="Triton") as raised:
        compile_all((SCALE, "gfx950"))
    assert "pip install" in raised.value.remedy


def test_no_bytecode_and_no_caches_beside_the_module(tmp_path: Path) -> None:
    module = tmp_path / "generated" / "kernels.py"
    module.parent.mkdir()
    module.write_text(MODULE.read_text())
    (finished,) = compile_all((replace(SCALE, module=module), "gfx950"))
    value_of(finished)
    assert [path.name for path in module.parent.iterdir()] == ["kernels.py"]
