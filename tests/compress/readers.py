"""The writer's cache read back by the family that reads such caches (BL-25)."""

from __future__ import annotations

from pathlib import Path

import torch

from dsv4gen.base.errors import VerifyError
from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference.compress_store import page_bytes
from dsv4gen.reference.hazards import POISON_BYTE
from tests.triton.modules import module as gather_module


def round_trip(worker: InterpreterWorker, module: Path) -> None:
    """BL-25: what this writer stores, the gather kernel reads back, whatever the page size."""
    rows = torch.randn(9, 512, generator=torch.Generator().manual_seed(6))
    for page_size in (1, 2, 64, 256):
        pages = -(-9 // page_size) + 1
        cache = torch.full((pages, page_bytes("v4_584", 512, page_size)), POISON_BYTE, dtype=torch.uint8)
        slots = torch.randperm(pages * page_size, generator=torch.Generator().manual_seed(page_size))[:9]
        plan = torch.full((9, 4), 4, dtype=torch.int32)
        arguments = {"pooled": rows, "plan": plan, "weight": torch.ones(512), "cosines": torch.ones(1, 64), "ratio": 4}
        worker.call(
            module, "finish_pooled", **arguments, out_loc=slots, cache=cache, page_size=page_size, decode=True,
            transform=False,
        )  # fmt: skip
        out, mask = torch.zeros(1, 9, 512, dtype=torch.bfloat16), torch.ones(1, 9, dtype=torch.bool)
        reader = {"cache": cache, "indices": slots.to(torch.int32)[None], "page_size": page_size}
        worker.call(gather_module("gfx950"), "gather", **reader, out=out, mask=mask)
        if not torch.allclose(out[0].float(), rows, rtol=1 / 15, atol=1e-2):
            raise VerifyError(f"pages of {page_size}: rows do not come back")
        if not torch.equal(out[0, :, 448:], rows[:, 448:].bfloat16()):
            raise VerifyError(f"pages of {page_size}: the bf16 part does not come back exactly")
