"""Triton test kernels, compiled in a process of their own (the pytest process may run Triton's interpreter).

Called as `python triton_kernels.py FOLDER TARGET...`: writes FOLDER/<kernel>.<target>.s, .hsaco and .json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def rms_norm(x_ptr, weight_ptr, out_ptr, size, epsilon, SIZE: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, SIZE)
    x = tl.load(x_ptr + row * SIZE + columns).to(tl.float32)
    weight = tl.load(weight_ptr + columns).to(tl.float32)
    variance = tl.sum(x * x, 0) / size
    tl.store(out_ptr + row * SIZE + columns, x * tl.rsqrt(variance + epsilon) * weight)


@triton.jit
def dequantize(x_ptr, scale_ptr, out_ptr, tokens, BLOCK: tl.constexpr, SIZE: tl.constexpr, TILE: tl.constexpr):
    token = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    column = tl.arange(0, SIZE)
    inside = (token < tokens)[:, None]
    place = token[:, None] * SIZE + column[None, :]
    x = tl.load(x_ptr + place, mask=inside, other=0.0)
    scale_place = token[:, None] * (SIZE // TILE) + (column // TILE)[None, :]
    scale = tl.exp2(tl.load(scale_ptr + scale_place, mask=inside, other=0).to(tl.float32) - 127.0)
    tl.store(out_ptr + place, (x.to(tl.float32) * scale).to(tl.bfloat16), mask=inside)


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, scale, keys, HEADS: tl.constexpr, BLOCK: tl.constexpr, SIZE: tl.constexpr):
    head, column, offset = tl.arange(0, HEADS), tl.arange(0, SIZE), tl.arange(0, BLOCK)
    q = tl.load(q_ptr + head[:, None] * SIZE + column[None, :])
    highest = tl.full([HEADS], -1e30, tl.float32)
    total = tl.zeros([HEADS], tl.float32)
    result = tl.zeros([HEADS, SIZE], tl.float32)
    for start in range(0, keys, BLOCK):
        inside = start + offset < keys
        k = tl.load(k_ptr + (start + offset)[None, :] * SIZE + column[:, None], mask=inside[None, :], other=0.0)
        scores = tl.where(inside[None, :], tl.dot(q, k) * scale, -1e30)
        higher = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp2(scores - higher[:, None])
        fade = tl.exp2(highest - higher)
        v = tl.load(v_ptr + (start + offset)[:, None] * SIZE + column[None, :], mask=inside[:, None], other=0.0)
        total = total * fade + tl.sum(weights, 1)
        result = result * fade[:, None] + tl.dot(weights.to(v.dtype), v)
        highest = higher
    tl.store(out_ptr + head[:, None] * SIZE + column[None, :], result / total[:, None])


@triton.jit
def histogram(x_ptr, out_ptr, count, BLOCK: tl.constexpr, BINS: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    x = tl.load(x_ptr + place, mask=inside, other=0)
    counts = tl.histogram(x, BINS, mask=inside)
    tl.atomic_add(out_ptr + tl.arange(0, BINS), counts)


@triton.jit
def atomics(x_ptr, out_ptr, float_ptr, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + place)
    tl.atomic_add(out_ptr + x % 8, 1)
    tl.atomic_max(out_ptr + 8 + x % 8, x)
    tl.atomic_min(out_ptr + 16 + x % 8, x)
    tl.atomic_xor(out_ptr + 24 + x % 8, x)
    tl.atomic_add(float_ptr + x % 8, x.to(tl.float32))


@triton.jit
def sort_and_scan(x_ptr, sorted_ptr, sums_ptr, SIZE: tl.constexpr):
    place = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    x = tl.load(x_ptr + place)
    tl.store(sorted_ptr + place, tl.sort(x))
    tl.store(sums_ptr + place, tl.cumsum(x, 0))


FP8 = {"gfx942": "fp8e4b8"}
#: name -> (kernel, signature without constants, constants)
KERNELS = {
    "rms_norm": (
        rms_norm,
        {"x_ptr": "*bf16", "weight_ptr": "*bf16", "out_ptr": "*fp32", "size": "i32", "epsilon": "fp32"},
        {"SIZE": 512},
    ),
    "dequantize": (
        dequantize,
        {"x_ptr": "*FP8", "scale_ptr": "*u8", "out_ptr": "*bf16", "tokens": "i32"},
        {"BLOCK": 16, "SIZE": 128, "TILE": 64},
    ),
    "attention": (
        attention,
        {"q_ptr": "*bf16", "k_ptr": "*bf16", "v_ptr": "*bf16", "out_ptr": "*fp32", "scale": "fp32", "keys": "i32"},
        {"HEADS": 16, "BLOCK": 32, "SIZE": 64},
    ),
    "histogram": (histogram, {"x_ptr": "*i32", "out_ptr": "*i32", "count": "i32"}, {"BLOCK": 512, "BINS": 64}),
    "atomics": (atomics, {"x_ptr": "*i32", "out_ptr": "*i32", "float_ptr": "*fp32"}, {"BLOCK": 256}),
    "sort_and_scan": (sort_and_scan, {"x_ptr": "*i32", "sorted_ptr": "*i32", "sums_ptr": "*i32"}, {"SIZE": 256}),
}


def compile_kernel(name: str, target: str, folder: Path) -> None:
    kernel, signature, constants = KERNELS[name]
    types = {key: value.replace("FP8", FP8.get(target, "fp8e4nv")) for key, value in signature.items()}
    types |= dict.fromkeys(constants, "constexpr")
    pointers = [index for index, value in enumerate(signature.values()) if value.startswith("*")]
    source = ASTSource(
        fn=kernel,
        signature=types,
        constexprs=constants,
        attrs={(index,): [["tt.divisibility", 16]] for index in pointers},
    )
    wave = 64 if target.startswith("gfx9") else 32
    compiled = triton.compile(source, target=GPUTarget("hip", target, wave), options={"num_warps": 4})
    stem = folder / f"{name}.{target}"
    stem.with_suffix(f".{target}.s").write_text(compiled.asm["amdgcn"])
    stem.with_suffix(f".{target}.hsaco").write_bytes(compiled.asm["hsaco"])
    about = {"symbol": compiled.metadata.name, "lds": compiled.metadata.shared, "threads": 4 * wave}
    stem.with_suffix(f".{target}.json").write_text(json.dumps(about))


if __name__ == "__main__":
    for wanted in sys.argv[2:]:
        for each in KERNELS:
            compile_kernel(each, wanted, Path(sys.argv[1]))
