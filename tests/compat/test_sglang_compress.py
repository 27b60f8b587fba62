"""v1 plans through the calls a user makes: the generated module on Triton's interpreter, captures, and wrong calls."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from dsv4gen.base.errors import ArgumentError, CaptureError
from dsv4gen.compat import sglang_compress
from dsv4gen.runtime.platform import HostPlatform, use
from tests.tools import need_module

ROOT = Path(__file__).parents[2]
INTERPRETED = """
import torch
from dsv4gen.compat.sglang_compress import adapt_decode_plan, adapt_prefill_plan
from dsv4gen.reference.compress import Geometry
from dsv4gen.reference.compress_v1 import decode_from_v1, from_v1
from dsv4gen.reference.compress_v1_cases import random_v1
from dsv4gen.runtime.platform import HostPlatform, use
with use(HostPlatform("sm_90")):
    generator = torch.Generator().manual_seed(1)
    for ratio in (4, 128):
        for extra in (True, False):
            geometry = Geometry(ratio, 128)
            plan = random_v1(geometry, 7, generator, extra=extra)
            found = plan.extra if ratio == 4 or not extra else plan.extra[:, 0]
            as_bytes = [words.view(torch.uint8) for words in (plan.compress, plan.write)]
            compress, write = adapt_prefill_plan(*as_bytes, plan.pages, found, ratio=ratio)
            expected = from_v1(plan, geometry)
            assert torch.equal(compress, expected.compress) and torch.equal(write, expected.write)
            assert (compress[:, 0] > 0).sum() > 50 and (write[:, 1] >= 0).sum() > 50
            lengths, before = torch.arange(7, dtype=torch.int32), plan.pages.flip(0) if extra else None
            out = torch.full((7, 4), 77, dtype=torch.int32)
            assert adapt_decode_plan(lengths, plan.pages, before, ratio=ratio, out=out) is out
            assert torch.equal(out, decode_from_v1(lengths, plan.pages, before, geometry))
"""


def test_interpreted_plans_are_the_references() -> None:
    need_module("triton")
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "TRITON_INTERPRET": "1", "DSV4GEN_REGENERATE": "0",
        "DSV4GEN_GENERATED_DIR": str(ROOT / "generated"),
    }  # fmt: skip
    command = [sys.executable, "-c", INTERPRETED]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[HostPlatform]:
    """The committed module with kernels that launch nothing."""
    need_module("triton")
    monkeypatch.setenv("DSV4GEN_GENERATED_DIR", str(ROOT / "generated"))
    monkeypatch.setenv("DSV4GEN_REGENERATE", "0")
    monkeypatch.delenv("DSV4GEN_TARGET", raising=False)
    monkeypatch.setattr(sglang_compress, "_loaded", {})
    here = HostPlatform("sm_90")
    with use(here):
        module: Any = sglang_compress._op("adapt_decode_v1")._backend.module
        for kernel in ("adapt_decode_rows", "adapt_prefill_rows"):
            monkeypatch.setattr(module, kernel, _NoLaunch())
        yield here


class _NoLaunch:
    def __getitem__(self, _: object) -> _NoLaunch:
        return self

    def __call__(self, *_: object, **__: object) -> None:
        return None


def _prefill(**changed: Any) -> dict[str, Any]:
    words = {"dtype": torch.int32}
    plans = {name: torch.zeros(5, 16, dtype=torch.uint8) for name in ("compress_plan", "write_plan")}
    given = {"indices": torch.zeros(3, **words), "extra_data": torch.zeros(3, 4, **words), "ratio": 4}
    return {**plans, **given, **changed}


def test_a_captured_step_needs_a_prewarmed_adapter(host: HostPlatform) -> None:
    lengths = torch.zeros(3, dtype=torch.int32)
    host.capturing = True
    with pytest.raises(CaptureError, match="would be compiled now"):
        sglang_compress.adapt_prefill_plan(**_prefill())
    host.capturing = False
    steps = [{"ratio": ratio, "batch": 3, **plans} for ratio in (4, 128) for plans in ({}, {"groups": 5, "writes": 5})]
    for extra in (True, False):
        sglang_compress.prewarm(shapes=steps, extra=extra)
    host.capturing = True
    for ratio, found in ((4, torch.zeros(3, 4, dtype=torch.int32)), (128, lengths), (4, None), (128, None)):
        sglang_compress.adapt_prefill_plan(**_prefill(extra_data=found, ratio=ratio))
        sglang_compress.adapt_decode_plan(lengths, lengths, None if found is None else lengths, ratio=ratio)
    with pytest.raises(CaptureError, match="would be compiled now"):
        sglang_compress.adapt_decode_plan(lengths[:2], lengths[:2], ratio=4)


@pytest.mark.usefixtures("host")
def test_wrong_calls_say_what_v1_looks_like() -> None:
    lengths = torch.zeros(3, dtype=torch.int32)
    with pytest.raises(ArgumentError, match="ratio is 8"):
        sglang_compress.adapt_decode_plan(lengths, lengths, ratio=8)
    with pytest.raises(ArgumentError, match="seq_lens is int64"):
        sglang_compress.adapt_decode_plan(lengths.long(), lengths, ratio=4, out=torch.zeros(3, 4, dtype=torch.int32))
    with pytest.raises(ArgumentError, match=r"compress_plan is uint8 \(5, 24\)"):
        sglang_compress.adapt_prefill_plan(**_prefill(compress_plan=torch.zeros(5, 24, dtype=torch.uint8)))
    with pytest.raises(ArgumentError, match="write_plan is int64"):
        sglang_compress.adapt_prefill_plan(**_prefill(write_plan=torch.zeros(5, 4, dtype=torch.int64)))
    with pytest.raises(ArgumentError, match="extra has size 1"):
        sglang_compress.adapt_prefill_plan(**_prefill(extra_data=lengths))
    with pytest.raises(ArgumentError, match="batch is 2"):
        sglang_compress.adapt_prefill_plan(**_prefill(indices=lengths[:2]))
    with pytest.raises(ArgumentError, match="a step of sizes ratio, rows"):
        sglang_compress.prewarm(shapes=[{"ratio": 4, "rows": 3}])
    with pytest.raises(ArgumentError, match="65537"):
        sglang_compress.adapt_prefill_plan(**_prefill(compress_plan=torch.zeros(65537, 16, dtype=torch.uint8)))


def test_the_state_is_a_view() -> None:
    buffer = torch.zeros(3, 4, 512)
    flat = sglang_compress.flat_state(buffer)
    flat[5, 7] = 1
    assert flat.shape == (12, 512) and buffer[1, 1, 7] == 1
    padded = torch.zeros(3, 4, 640)[:, :, :512]
    assert sglang_compress.flat_state(padded).stride() == (640, 1)
    with pytest.raises(ArgumentError, match="pages 4096 elements apart hold 4 rows of 512"):
        sglang_compress.flat_state(torch.zeros(3, 8, 512)[:, :4])
    with pytest.raises(ArgumentError, match="state buffer is"):
        sglang_compress.flat_state(torch.zeros(12, 512))
