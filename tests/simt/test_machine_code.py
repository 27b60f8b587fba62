"""The HIP layer as machine code of AMD GPUs, emulated: moves inside rows of lanes, swizzles, shuffles."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest

from dsv4gen.emulate.amdgcn import Kernel
from tests.simt.layers import LAYOUT, PARAMS, render_layer
from tests.simt.primitives import PRIMITIVES, VOTES, Words, reduced, reduction_words, voted
from tests.simt.test_gpu_compile import AMD, compile_hip

EMULATED = {arch: wave for arch, wave in AMD.items() if arch != "gfx1250"}
WAVE64 = [arch for arch, wave in EMULATED.items() if wave == 64]

targets = pytest.mark.parametrize("arch", EMULATED)


@functools.cache
def assembly(arch: str, *mutations: str) -> str:
    text = render_layer("hip", AMD[arch], frozenset(mutations)) + PARAMS + PRIMITIVES
    with tempfile.TemporaryDirectory() as folder:
        done = compile_hip(Path(folder), text, arch)
        assert done.returncode == 0, done.stderr
        return Path(folder, "kernel.s").read_text()


def run(kernel: str, text: str, words: Words, each: int, n: int = 0) -> Words:
    """What a kernel of `PRIMITIVES` writes, `each` words a thread."""
    out = np.full((words.size, each), 0xEEEEEEEE, np.uint32)
    packed = LAYOUT.pack({"input": words.ctypes.data, "out": out.ctypes.data, "n": n})
    result = Kernel.from_assembly(text, kernel).run(1, words.size, packed, buffers=[words, out])
    assert result.problems == ()
    return out


@targets
def test_reductions_stay_inside_the_logical_warp(arch: str) -> None:
    text = assembly(arch)
    for words in reduction_words(256):
        np.testing.assert_array_equal(run("reductions", text, words, 7), reduced(words))


@targets
def test_votes_of_the_whole_wave(arch: str) -> None:
    out = run("wave_votes", assembly(arch), VOTES.view(np.uint32), 3)
    np.testing.assert_array_equal(out, voted(VOTES, AMD[arch]))


@targets
def test_sums_need_no_addresses_of_lanes(arch: str) -> None:
    """One instruction for the halves of a warp, and four additions whose operand comes from another lane."""
    text = assembly(arch)
    body = text[text.index("\nscan_ones:") : text.index(".amdhsa_kernel scan_ones")]
    assert "ds_bpermute" not in body and body.count("ds_swizzle") == 1
    assert body.count("row_shr") == 4


@targets
@pytest.mark.parametrize("n", [0, 1, 16, 31])
def test_shuffles(arch: str, n: int) -> None:
    thread = np.arange(256)
    lane, first = thread % 32, thread - thread % 32
    right = [first + n, np.where(lane < n, thread, thread - n), thread ^ n, first + (thread * 7 + n) % 32]
    out = run("shuffles", assembly(arch), np.zeros(256, np.uint32), 4, n)
    np.testing.assert_array_equal(out, np.stack(right, axis=1))


@pytest.mark.parametrize("arch", WAVE64)
def test_totals_without_width_are_those_of_the_first_half(arch: str) -> None:
    """What the oracle must see: a broadcast over the whole wave."""
    nothing = np.zeros(64, np.uint32)
    right = run("warp_totals", assembly(arch), nothing, 1)
    assert right[:, 0].tolist() == [32] * 32 + [64] * 32
    wrong = run("warp_totals", assembly(arch, "shuffle_without_width"), nothing, 1)
    assert wrong[:, 0].tolist() == [32] * 64
