"""The same small kernels, in front of the GPU layers, through the GPU compilers; no GPU is needed."""

from __future__ import annotations

import ctypes
import re
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from tests.simt.layers import PARAMS, WAVE_BUGS, render_layer
from tests.simt.primitives import CLUSTERS, PRIMITIVES
from tests.tools import need_module, need_tool

AMD = {"gfx90a": 64, "gfx942": 64, "gfx950": 64, "gfx1100": 32, "gfx1201": 32, "gfx1250": 32}
NVIDIA = {"sm_80": False, "sm_89": False, "sm_90a": True, "sm_100a": True, "sm_120a": True}
KERNELS = re.findall(r"void (\w+)\(DSV4_PARAMS", PRIMITIVES)


def compile_hip(folder: Path, text: str, arch: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """Compile to assembly beside the source, warnings as errors, without any vendor header or library."""
    (folder / "kernel.hip").write_text(text)
    command = [need_tool("clang++-22"), "-x", "hip", "--offload-device-only", "--no-gpu-bundle-output"]
    command += ["-nogpuinc", "-nogpulib", "-std=c++17", "-O3", "-Wall", "-Wextra", "-Werror", "-S"]
    command += [f"--offload-arch={arch}", *flags, "kernel.hip", "-o", "kernel.s"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arch", AMD)
def test_hip_layer_compiles_without_headers(arch: str, tmp_path: Path) -> None:
    done = compile_hip(tmp_path, render_layer("hip", AMD[arch]) + PARAMS + PRIMITIVES, arch)
    assert done.returncode == 0, done.stderr
    assembly = (tmp_path / "kernel.s").read_text()
    assert re.findall(r"\.amdhsa_kernel (\w+)", assembly) == KERNELS
    assert not re.search(r"^\s+flat_(?:load|store|atomic)", assembly, re.MULTILINE)
    assert set(re.findall(r"\.wavefront_size: (\d+)", assembly)) == {str(AMD[arch])}
    assert set(re.findall(r"\.max_flat_workgroup_size: (\d+)", assembly)) == {"256"}
    assert re.search(r"global_load_(?:dwordx4|b128)", assembly)


def test_planted_defects_compile_too(tmp_path: Path) -> None:
    """A mutation that does not compile would prove nothing."""
    text = render_layer("hip", 64, frozenset(WAVE_BUGS)) + PARAMS + PRIMITIVES
    done = compile_hip(tmp_path, text, "gfx942")
    assert done.returncode == 0, done.stderr
    changed = (tmp_path / "kernel.s").read_text()
    compile_hip(tmp_path, render_layer("hip", 64) + PARAMS + PRIMITIVES, "gfx942")
    assert changed != (tmp_path / "kernel.s").read_text()


@pytest.mark.parametrize(
    ("arch", "threads", "min_blocks", "waves"),
    [
        ("gfx942", 512, 2, 4),
        ("gfx942", 1024, 1, 4),
        ("gfx942", 512, 4, 8),
        ("gfx1100", 1024, 1, 8),
        ("gfx942", 96, 1, 1),
    ],
)
def test_blocks_become_waves_per_simd(arch: str, threads: int, min_blocks: int, waves: int, tmp_path: Path) -> None:
    body = f"DSV4_KERNEL({threads}, {min_blocks}) void bound(DSV4_PARAMS(Params, params)) {{ params.out[0] = 1; }}\n"
    done = compile_hip(tmp_path, render_layer("hip", AMD[arch]) + PARAMS + body, arch, "-emit-llvm")
    assert done.returncode == 0, done.stderr
    code = (tmp_path / "kernel.s").read_text()
    assert f'"amdgpu-waves-per-eu"="{waves}"' in code
    assert f'"amdgpu-flat-work-group-size"="{threads},{threads}"' in code


def test_more_waves_than_a_simd_holds_do_not_compile(tmp_path: Path) -> None:
    body = "DSV4_KERNEL(1024, 3) void crowded(DSV4_PARAMS(Params, params)) { params.out[0] = 1; }\n"
    done = compile_hip(tmp_path, render_layer("hip", 64) + PARAMS + body, "gfx942")
    assert done.returncode != 0 and "more waves than a SIMD holds" in done.stderr


def nvrtc() -> ctypes.CDLL:
    """The NVRTC library that pip installed."""
    need_module("nvidia.cu13")
    files = metadata.files("nvidia-cuda-nvrtc") or []
    library = next(file for file in files if re.match(r"libnvrtc\.so", file.name))
    return ctypes.CDLL(str(library.locate()))


def compile_cuda(text: str, arch: str) -> str:
    """The PTX of a text; a failure shows the compiler's log."""
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17"]
    status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    assert status == 0 and "warning" not in log.value.decode(), log.value.decode()
    library.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    library.nvrtcGetPTX(program, ptx)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx.value.decode()


def cuda_text(modern: bool) -> str:
    layer = render_layer("cuda", 32, dependent_launch=modern, remote_shared=modern)
    return layer + PARAMS + PRIMITIVES + (CLUSTERS if modern else "")


@pytest.mark.parametrize("arch", NVIDIA)
def test_cuda_layer_compiles_with_nvrtc(arch: str) -> None:
    modern = NVIDIA[arch]
    ptx = compile_cuda(cuda_text(modern), arch)
    assert re.findall(r"\.entry (\w+)\(", ptx) == [*KERNELS, *(["ring"] if modern else [])]
    assert re.search(r"ld\.global\.nc\.v4\.\w32", ptx) is None if modern else "ld.global.nc.v4.f32" in ptx
    assert re.search(r"ld\.global(?:\.nc)?\.v4\.\w32", ptx)
    for words in ("griddepcontrol.wait", "griddepcontrol.launch_dependents", "mapa.shared::cluster"):
        assert (words in ptx) == modern
    assert ".maxntid 256" in ptx and ".minnctapersm 1" in ptx


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_cuda_layer_compiles_with_nvcc(arch: str, tmp_path: Path) -> None:
    (tmp_path / "kernel.cu").write_text(cuda_text(NVIDIA[arch]))
    command = [need_tool("nvcc"), "-cubin", "-std=c++17", f"-arch={arch}", "--Werror", "all-warnings"]
    done = subprocess.run(
        [*command, "kernel.cu", "-o", "kernel.cubin"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kernel.cubin").read_bytes()[:4] == b"\x7fELF"
