"""The assembly that decodes FP8 codes on NVIDIA targets, instruction by instruction on the CPU.

The interpreter takes the integers beside it, so nothing else runs these lines without a card.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from dsv4gen.reference import fp8
from tests.sparse_decode.modules import module

#: bytes of a scale whose products with codes bf16 holds exactly, subnormal ones and both ends among them
SCALES = (0, 1, 100, 127, 135, 160, 246)
FACTORS = {"e4m3fn": 120, "e4m3fnuz": 119}


def lines() -> list[list[str]]:
    """The instructions of the block: name and operands."""
    text = module("sm_90").read_text(encoding="utf-8")
    body = re.search(r'inline_asm_elementwise\(\s*"""\s*\{(.*?)\}\s*"""', text, re.DOTALL)
    assert body is not None
    found = [line.strip().rstrip(";") for line in body[1].splitlines()]
    return [re.split(r",?\s+", line) for line in found if line and not line.startswith(".reg")]


def permuted(word: int, other: int, selector: int) -> int:
    """`prmt.b32`: four bytes of two words; bit 3 of a selector repeats the byte's sign instead."""
    chosen = [(word | other << 32) >> 8 * (selector >> 4 * place & 7) & 0xFF for place in range(4)]
    signs = [selector >> 4 * place & 8 for place in range(4)]
    values = [(0xFF if byte & 0x80 else 0) if sign else byte for byte, sign in zip(chosen, signs, strict=True)]
    return sum(value << 8 * place for place, value in enumerate(values))


def halves(word: int) -> Tensor:
    """The two bf16 of a word, as float64."""
    bits = torch.tensor([word & 0xFFFF, word >> 16], dtype=torch.int32)
    return (bits << 16).view(torch.float32).double()


def fused(first: int, second: int, third: int) -> int:
    """`fma.rn.bf16x2` of words whose exact results float32 can hold."""
    value = (halves(first) * halves(second) + halves(third)).to(torch.float32).to(torch.bfloat16)
    low, high = (int(half) & 0xFFFF for half in value.view(torch.int16))
    return low | high << 16


INSTRUCTIONS: dict[str, Callable[..., int]] = {
    "mov.b32": lambda value: value,
    "prmt.b32": permuted,
    "shl.b32": lambda value, bits: value << bits & 0xFFFFFFFF,
    "and.b32": lambda first, second: first & second,
    "fma.rn.bf16x2": fused,
}


def run(codes: int, factor: int, scale: int) -> Tensor:
    """bf16 [4] of a word of codes; `factor` and `scale` are bits of bf16."""
    pair = {name: bits << 16 | bits for name, bits in (("factor", factor), ("scale", scale))}
    registers = {"$2": codes, "$3": pair["factor"], "$4": pair["factor"], "$5": pair["scale"], "$6": pair["scale"]}
    for name, target, *operands in lines():
        values = [registers[x] if x in registers else int(x, 0) for x in operands]
        registers[target] = INSTRUCTIONS[name](*values)
    return torch.cat([halves(registers["$0"]), halves(registers["$1"])])


@pytest.mark.parametrize("dialect", FACTORS)
def test_every_code_of_every_place_with_every_scale(dialect: str) -> None:
    """A word holds four neighbouring codes, so each code comes at each place."""
    chosen = fp8.dialect_of(dialect)
    codes = torch.arange(256, dtype=torch.uint8)
    values = fp8.decode(codes, chosen).double()
    number = values.isfinite()
    for byte in SCALES:
        scale = byte << 7 | (0x40 if byte in (0, 255) else 0)
        for first in range(0, 256, 4):
            order = [(first + 67 * place) % 256 for place in range(4)]
            word = sum(code << 8 * place for place, code in enumerate(order))
            got = run(word, 127 + FACTORS[dialect] << 7, scale)
            wanted = (values[order] * 2.0 ** (byte - 127)).to(torch.float32).to(torch.bfloat16).double()
            kept = number[order]
            assert torch.equal(got[kept], wanted[kept]), (byte, order)
            assert torch.equal(got[kept].signbit(), wanted[kept].signbit()), (byte, order)
