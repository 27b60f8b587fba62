"""Triton argument types come from the tensor table."""

from __future__ import annotations

from pathlib import Path

from dsv4gen.spec import load_specs
from dsv4gen.spec.signature import divisible_pointers, triton_signature
from tests.spec.samples import FAMILY, damage, write_specs

TRITON = (
    FAMILY.replace("language: hip_cuda", "language: triton")
    .replace("topk.cu.jinja", "sparse_decode.py.jinja")
    .replace("sample.cu.jinja", "sample.py.jinja")
    .replace("threads: [64, 128], loads: [1, 2]", "threads: [64, 128], num_warps: [4], num_stages: [2]")
    .replace("threads: 64, loads: 1}", "threads: 64, num_warps: 4, num_stages: 2}")
    .replace("threads: 128, loads: 2}", "threads: 128, num_warps: 4, num_stages: 2}")
    .replace("tiles: {threads: [64]}", "tiles: {threads: [64], num_warps: [1], num_stages: [1]}")
    .replace("tile: {threads: 64}", "tile: {threads: 64, num_warps: 1, num_stages: 1}")
    .replace("    pdl: true\n", "    constexprs: {BLOCK: threads, WIDE: wide}\n")
)


def test_triton_family(tmp_path: Path) -> None:
    kind = "kind: {choices: [bf16, f8e4m3fn], default: bf16, doc: x}"
    text = damage(TRITON, "options:\n", f"options:\n  {kind}\n")
    text = damage(text, "x: {dtype: f32", "x: {dtype: kind")
    family = load_specs(write_specs(tmp_path, family=text)).families["sample"].model
    op = family.ops["run"]
    assert triton_signature(family, op, {"kind": "f8e4m3fn"}) == {
        "x": "*u8",
        "map": "*i32",
        "out": "*i32",
        "work": "*u8",
        "x_stride": "i64",
        "width": "i32",
        "eps": "fp32",
    }
    assert triton_signature(family, op, {"kind": "bf16"})["x"] == "*bf16"
    assert divisible_pointers(op) == ("out",)
    assert dict(family.kernels["part"].constexprs) == {"BLOCK": "threads", "WIDE": "wide"}
