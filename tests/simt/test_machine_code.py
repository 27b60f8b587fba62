"""The HIP layer as machine code of AMD GPUs, emulated: moves inside rows of lanes, swizzles, shuffles."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest

from dsv4gen.emulate.amdgcn import Kernel
from tests.simt.layers import LAYOUT, PARAMS, render_layer
from tests.simt.primitives import (
    BITS,
    NANS,
    PRIMITIVES,
    VOTES,
    Words,
    ballotted,
    counted,
    half_boundaries,
    halved,
    loaded,
    reduced,
    reduction_words,
    voted,
)
from tests.simt.test_gpu_compile import AMD, compile_hip

EMULATED = {arch: wave for arch, wave in AMD.items() if arch != "gfx1250"}
WAVE64 = [arch for arch, wave in EMULATED.items() if wave == 64]

targets = pytest.mark.parametrize("arch", EMULATED)


@functools.cache
def assembly(arch: str, *mutations: str) -> str:
    return compiled(render_layer("hip", AMD[arch], frozenset(mutations)), arch)


def compiled(layer: str, arch: str) -> str:
    """The kernels of `PRIMITIVES` behind a layer."""
    text = layer + PARAMS + PRIMITIVES
    with tempfile.TemporaryDirectory() as folder:
        done = compile_hip(Path(folder), text, arch)
        assert done.returncode == 0, done.stderr
        return Path(folder, "kernel.s").read_text()


def run(kernel: str, text: str, words: Words, each: int, n: int = 0) -> Words:
    """What a kernel of `PRIMITIVES` writes, `each` words a thread."""
    out = np.full((words.size, each), 0xEEEEEEEE, np.uint32)
    launch(kernel, text, words, out, n, words.size)
    return out


def launch(kernel: str, text: str, words: Words, out: Words, n: int, block: int, *, grid: int = 1) -> None:
    """Run a kernel of `PRIMITIVES`, which misbehaves in no way."""
    packed = LAYOUT.pack({"input": words.ctypes.data, "out": out.ctypes.data, "n": n})
    result = Kernel.from_assembly(text, kernel).run(grid, block, packed, buffers=[words, out])
    assert result.problems == ()


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
def test_ballots(arch: str) -> None:
    out = run("ballots", assembly(arch), VOTES.view(np.uint32), 4)
    np.testing.assert_array_equal(out, ballotted(VOTES, AMD[arch]))


@targets
def test_bit_counts(arch: str) -> None:
    """Zero has 32 leading zeros, which the instruction for it does not say."""
    np.testing.assert_array_equal(run("bits", assembly(arch), BITS, 5, BITS.size), counted(BITS))
    layer, guard = render_layer("hip", AMD[arch]), "value == 0 ? 32 : "
    assert layer.count(guard) == 1
    without = run("bits", compiled(layer.replace(guard, ""), arch), BITS, 5, BITS.size)
    wrong = without != counted(BITS)
    assert wrong[BITS == 0, 3].all() and wrong.sum() == 1


@targets
def test_half_bits_at_every_boundary(arch: str) -> None:
    floats = half_boundaries()
    out = np.full(floats.size, 0xEEEEEEEE, np.uint32)
    launch("halves", assembly(arch), floats.view(np.uint32), out, floats.size, 256, grid=4)
    np.testing.assert_array_equal(out, halved(floats))


@targets
def test_half_bits_keep_nan(arch: str) -> None:
    out = np.full(NANS.size, 0xEEEEEEEE, np.uint32)
    launch("halves", assembly(arch), NANS, out, NANS.size, 256)
    assert np.isnan(out.astype(np.uint16).view(np.float16)).all()


@targets
def test_loads(arch: str) -> None:
    floats = np.random.default_rng(0).standard_normal(1024).astype(np.float32)
    out = np.full((256, 4), 0xEEEEEEEE, np.uint32)
    launch("loads", assembly(arch), floats.view(np.uint32), out, 0, 256)
    np.testing.assert_array_equal(out, loaded(floats))


@targets
def test_atomics_and_barriers(arch: str) -> None:
    out = np.zeros(1 + 512, np.uint32)
    launch("counters", assembly(arch), np.zeros(1, np.uint32), out, 0, 256, grid=2)
    assert out[0] == 512
    assert sorted(out[1:].tolist()) == sorted(2 * [slot * 2 + 512 for slot in range(256)])


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
