"""The sources of every target, read as text: ballots, shuffles, masks and wave sizes (BL-07, BL-08)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from dsv4gen.base import extensions
from dsv4gen.emit.build import make_plans
from dsv4gen.emit.select import known_targets
from dsv4gen.lint.tokens import code_only
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.render import render_source
from dsv4gen.spec import Specs, load_specs
from dsv4gen.target import resolve_target
from tests.tools import need_module, need_tool

SPECS: Specs = load_specs(*extensions.spec_folders())
SOURCES = sorted(name for name, family in SPECS.families.items() if family.model.language == "hip_cuda")
TARGETS = known_targets()
WAVES = {name: resolve_target(SPECS, name).wave.launch for name in TARGETS}

_BALLOT = r"(?:__ballot|__builtin_amdgcn_ballot_w64|wave_ballot)\b"
_ARGUMENT = r"(?:[^(),]|\([^()]*\))+"
#: what a file for AMD GPUs must not hold, by the trouble it makes
HIP_TROUBLE = {
    "a wave size that is no constant": r"\bwarpSize\b|__AMDGCN_WAVEFRONT_SIZE|WAVEFRONT",
    "a mask of 32 bits": r"__\w+_sync\s*\(\s*(?:0x[0-9a-fA-F]{1,8}u?l?\b|\(?\s*(?:unsigned|u32)\b|-1\b|~0u?\b)",
    "a ballot kept in 32 bits": rf"\b(?:u32|unsigned|int|uint32_t)\s+\w+\s*=\s*{_BALLOT}",
    "a ballot counted in 32 bits": rf"(?:__popc|__builtin_popcount)\s*\(\s*{_BALLOT}",
    "a shuffle without a width": rf"__shfl(?:_up|_down|_xor)?\s*\({_ARGUMENT},{_ARGUMENT}\)",
}
#: the stub of BL-08: calls with a mask fail to compile unless the mask has 8 bytes
STUB = """
template <class Mask> unsigned long long mask_is_64_bits(Mask) {
  static_assert(sizeof(Mask) == 8, "narrow mask");
  return 0;
}
#define __ballot_sync(mask, predicate) mask_is_64_bits(mask)
#define __shfl_sync(mask, value, ...) (mask_is_64_bits(mask), value)
#define __shfl_up_sync(mask, value, ...) (mask_is_64_bits(mask), value)
#define __shfl_xor_sync(mask, value, ...) (mask_is_64_bits(mask), value)
"""


def plan(target: str, family: str) -> FamilyPlan:
    (made,) = make_plans(SPECS, target, [family])
    return made


def code(target: str, family: str) -> str:
    return code_only(render_source(plan(target, family)).text)


def trouble(text: str) -> list[str]:
    return [name for name, pattern in HIP_TROUBLE.items() if re.search(pattern, text)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("family", SOURCES)
def test_the_wave_size_is_the_records_literal(target: str, family: str) -> None:
    text = code(target, family)
    assert re.findall(r"constexpr u32 kWave = (\d+);", text) == [str(WAVES[target])]
    assert re.findall(r"constexpr u32 kWarp = (\d+);", text) == ["32"]


def test_the_five_waves_of_bl08() -> None:
    assert [WAVES[name] for name in ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")] == [64, 64, 64, 32, 32]


@pytest.mark.parametrize("target", [name for name in TARGETS if name.startswith("gfx")])
@pytest.mark.parametrize("family", SOURCES)
def test_no_amd_file_narrows_a_ballot_or_a_mask(target: str, family: str) -> None:
    text = code(target, family)
    assert trouble(text) == []
    assert "_sync(" not in text


@pytest.mark.parametrize("target", [name for name in TARGETS if name.startswith("gfx")])
def test_a_ballot_is_cut_to_the_callers_half_on_wave_64_only(target: str) -> None:
    """The logical warp's votes: 64 bits shifted by the half's first lane, or the 32 there are."""
    found = re.findall(r"u32 warp_ballot\(bool \w+\) \{(.*?)\n?\}", code(target, "topk"), re.DOTALL)
    assert len(found) == 1
    assert ("lane_id() & kWarp" in found[0]) is (WAVES[target] == 64)


@pytest.mark.parametrize("target", [name for name in TARGETS if name.startswith("sm_")])
def test_nvidia_shuffles_name_their_warp(target: str) -> None:
    text = code(target, "topk")
    calls = re.findall(r"__(?:shfl\w*|ballot)_sync\(([^,]+),", text)
    assert calls and set(calls) == {"kAllLanes"}
    assert re.findall(r"constexpr u32 kAllLanes = (\w+);", text) == ["0xffffffffu"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("for (int i = 0; i < warpSize; ++i)", "a wave size that is no constant"),
        ("__shfl_sync(0xffffffff, v, 0, 32)", "a mask of 32 bits"),
        ("__ballot_sync((unsigned)~0, p)", "a mask of 32 bits"),
        ("u32 votes = __builtin_amdgcn_ballot_w64(p);", "a ballot kept in 32 bits"),
        ("unsigned votes = __ballot(p);", "a ballot kept in 32 bits"),
        ("__popc(__ballot(p))", "a ballot counted in 32 bits"),
        ("__shfl_up(value, 1)", "a shuffle without a width"),
        ("__shfl_xor(f(value), (step))", "a shuffle without a width"),
    ],
)
def test_the_scan_finds_what_it_is_for(text: str, name: str) -> None:
    assert name in trouble(text)


def test_the_scan_lets_right_code_pass() -> None:
    assert trouble("u64 votes = __builtin_amdgcn_ballot_w64(p); __shfl_up(value, 1, 32); f(a, b);") == []


@pytest.mark.parametrize("planted", ["", "u32 bad(u32 v) { return __shfl_sync(0xffffffffu, v, 0, 32); }"])
def test_masks_have_64_bits_by_the_compilers_own_opinion(tmp_path: Path, planted: str) -> None:
    clang = need_tool("clang++-22")
    (tmp_path / "topk.hip").write_text(STUB + render_source(plan("gfx950", "topk")).text + planted, encoding="utf-8")
    command = [clang, "-x", "hip", "--offload-device-only", "--offload-arch=gfx950", "-nogpuinc", "-nogpulib"]
    done = subprocess.run(
        [*command, "-fsyntax-only", "-std=c++17", "topk.hip"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode != 0) is bool(planted), done.stderr
    assert ("narrow mask" in done.stderr) is bool(planted)


def test_the_extension_builders_translation_changes_nothing(tmp_path: Path) -> None:
    """BL-35: a builder that turns CUDA text into HIP text may meet ours, under the name it looks for."""
    need_module("torch")
    from torch.utils.hipify import hipify_python

    texts = {target: render_source(plan(target, "topk")).text for target in TARGETS if target.startswith("gfx")}
    for target, text in texts.items():
        (tmp_path / f"{target}.cu").write_text(text, encoding="utf-8")
    (tmp_path / "control.cu").write_text("void f() { cudaMalloc(0, 1); kernel<<<1, 2>>>(); }\n", encoding="utf-8")
    folder = str(tmp_path)
    hipify_python.hipify(folder, output_directory=folder, includes=[f"{folder}/*"], is_pytorch_extension=True)
    assert {path.name for path in tmp_path.iterdir()} == {f"{name}.cu" for name in (*texts, "control")} | {
        "control.hip"
    }
    for target, text in texts.items():
        assert (tmp_path / f"{target}.cu").read_text(encoding="utf-8") == text
