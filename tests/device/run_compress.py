"""Check the generated compress module on a CUDA card; run by hand, not collected by pytest.

    python tests/device/run_compress.py

Needs `generated/sm_90` (dsv4gen build --target sm_90) and nothing but torch, triton and numpy. Runs the checks of
tests/compress on the card, each twice, and compares the bytes of both runs; `dsv4gen bench compress` times. Exit status
1 when a check fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from dsv4gen.base.errors import DsvError, VerifyError  # noqa: E402
from dsv4gen.reference.compress_store import page_bytes  # noqa: E402
from tests.compress.checks import CHECKS  # noqa: E402
from tests.device.card import require_card  # noqa: E402
from tests.device.run_sparse_decode import generated, on_card  # noqa: E402

#: needs memory that is free until touched
NOT_ON_CARD = ("far_rows",)


class Card:
    """Stands in for the interpreter worker: the same calls, on the card, each made twice from the same inputs."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def call(self, _: Path, function: str, **keywords: Any) -> None:
        """Run a launch function on copies of the tensors and bring back what it wrote.

        Raises:
            VerifyError: two runs from the same inputs gave different bytes.
        """
        results = []
        for _ in range(2):
            moved = {name: on_card(value) for name, value in keywords.items()}
            getattr(self.module, function)(**moved)
            torch.cuda.synchronize()
            results.append({name: value.cpu() for name, value in moved.items() if isinstance(value, torch.Tensor)})
        for name, value in results[0].items():
            if not torch.equal(_bytes(value), _bytes(results[1][name])):
                raise VerifyError(f"{function}: two runs differ in {name}")
            keywords[name].copy_(value)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint8)


def far_rows(module: ModuleType) -> None:
    """State rows behind 2^31 elements and a cache slot behind 2^31 bytes, decode at ratio 128.

    Raises:
        VerifyError: the row was not written where it belongs.
    """
    page = 16384 + 3
    state = torch.empty((page + 1) * 128, 1024, device="cuda")
    state[page * 128 :].normal_()
    pages = (1 << 31) // page_bytes("v4_584", 512, 2) + 3
    cache = torch.zeros(pages, page_bytes("v4_584", 512, 2), dtype=torch.uint8, device="cuda")
    near = torch.zeros(1, cache.shape[1], dtype=torch.uint8, device="cuda")
    source = torch.randn(1, 1024, device="cuda")
    common = {
        "source": source, "bias": torch.randn(128, 512, device="cuda"), "weight": torch.ones(512, device="cuda"),
        "cosines": torch.randn(4, 64, device="cuda"), "page_size": 2, "ratio": 128,
    }  # fmt: skip
    plan = torch.tensor([[128, page * 128 + 127, page, page]], dtype=torch.int32, device="cuda")
    small = torch.tensor([[128, 127, 0, 0]], dtype=torch.int32, device="cuda")
    last = torch.tensor([2 * pages - 1], device="cuda")
    module.decode(state=state[page * 128 :].clone(), plan=small, out_loc=torch.ones_like(last), cache=near, **common)
    module.decode(state=state, plan=plan, out_loc=last, cache=cache, **common)
    if not torch.equal(cache[-1], near[0]) or not torch.equal(state[-1], source[0]):
        raise VerifyError("far rows: not where they belong")


def check(module: ModuleType) -> bool:
    """All checks; prints the failures."""
    todo: dict[str, Callable[[], None]] = {"far_rows": lambda: far_rows(module)}
    for name, one in CHECKS.items():
        if name not in NOT_ON_CARD:
            todo[name] = lambda one=one: one(Card(module), Path())  # type: ignore[arg-type, misc]
    failed = 0
    for name, run in todo.items():
        try:
            run()
        except DsvError as error:
            failed += 1
            print(f"FAILED {name}: {error}", flush=True)
    print(f"check: {len(todo) - failed} of {len(todo)} passed", flush=True)
    return failed == 0


if __name__ == "__main__":
    require_card()
    sys.exit(0 if check(generated("compress")) else 1)
