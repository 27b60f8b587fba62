"""Check the generated qk_norm_rope module on a CUDA card; run by hand, not collected by pytest.

    python tests/device/run_qk_norm_rope.py

Needs `generated/sm_90` (dsv4gen build --target sm_90) and nothing but torch, triton and numpy. Runs the checks of
tests/qk_norm_rope on the card, each twice, and compares the bytes of both runs, then large in-place calls with calls
that are not; `dsv4gen bench qk_norm_rope` times. Exit status 1 when a check fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from dsv4gen.base.errors import DsvError, VerifyError  # noqa: E402
from dsv4gen.reference.compress_store import page_bytes  # noqa: E402
from tests.device.card import require_card  # noqa: E402
from tests.device.run_sparse_decode import generated  # noqa: E402
from tests.qk_norm_rope.checks import CHECKS  # noqa: E402

#: storages up to this size travel whole, so that strays show
WHOLE = 1 << 26
POSITIONS, PAGE_SIZE, D = 65536, 256, 512


class Card:
    """Stands in for the interpreter worker: the same calls, on the card, each made twice from the same inputs."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def allocate(self, size: int) -> Tensor:
        """Host memory that costs nothing until it is touched."""
        return torch.empty(size, dtype=torch.uint8)

    def call(self, _: Path, function: str, **keywords: Any) -> None:
        """Run a launch function on copies of the tensors and bring back what it wrote.

        Raises:
            VerifyError: two runs from the same inputs gave different bytes.
        """
        first, second = (self._run(function, keywords) for _ in range(2))
        for name, value in first.items():
            if not torch.equal(_bytes(value), _bytes(second[name])):
                raise VerifyError(f"{function}: two runs differ in {name}")
            _home(keywords[name]).copy_(value)

    def _run(self, function: str, keywords: Mapping[str, Any]) -> dict[str, Tensor]:
        homes: dict[int, Tensor] = {}
        moved = {name: _moved(value, homes) for name, value in keywords.items()}
        getattr(self.module, function)(**moved)
        torch.cuda.synchronize()
        return {name: _home(value).cpu() for name, value in moved.items() if isinstance(value, Tensor)}


def _home(tensor: Tensor) -> Tensor:
    """All bytes of a small tensor's storage, so that its surroundings are compared too; else the tensor."""
    storage = tensor.untyped_storage()
    if storage.nbytes() > WHOLE:
        return tensor
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)


def _moved(value: Any, homes: dict[int, Tensor]) -> Any:
    """A tensor on the card, as far off its storage's start as it was; tensors that share memory still do."""
    if not isinstance(value, Tensor):
        return value
    storage = value.untyped_storage()
    key = storage.data_ptr()
    if storage.nbytes() > WHOLE:
        if key not in homes:
            homes[key] = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda").copy_(value)
        return homes[key]
    if key not in homes:
        homes[key] = _home(value).cuda()
    whole = torch.empty(0, dtype=value.dtype, device="cuda").set_(homes[key].untyped_storage())
    return whole.as_strided(value.shape, value.stride(), value.storage_offset())


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.contiguous().view(torch.uint8)


class Inputs:
    """Inputs of one shape: random positions in a table of 65536, one page of 256 slots after the other."""

    def __init__(self, heads: int, tokens: int) -> None:
        self.q = torch.randn(tokens, heads, D, device="cuda", dtype=torch.bfloat16)
        self.kv = torch.randn(tokens, D, device="cuda", dtype=torch.bfloat16)
        angles = torch.rand(POSITIONS, 32, device="cuda") * 6.28
        cosines = torch.stack([angles.cos(), angles.sin()], -1).flatten(1)
        pages = tokens // PAGE_SIZE + 2
        self.cache = torch.zeros(pages, page_bytes("v4_584", D, PAGE_SIZE), dtype=torch.uint8, device="cuda")
        self.common: dict[str, Any] = {
            "kv_weight": torch.rand(D, device="cuda") + 0.5, "cosines": cosines,
            "positions": torch.randint(0, POSITIONS, (tokens,), device="cuda"),
            "slots": torch.arange(tokens, dtype=torch.int32, device="cuda"), "cache": self.cache,
            "page_size": PAGE_SIZE,
        }  # fmt: skip


def _tile(module: ModuleType, change: Mapping[str, int]) -> AbstractContextManager[object]:
    """The module with another tile for all shapes; with its own where nothing changes."""
    if not change:
        return nullcontext()
    return patch.object(module, "norm_rope_store_tile", lambda *_: {"num_stages": 1, **change})


def in_place(module: ModuleType) -> None:
    """In place and out of place give equal bytes, with any tile, where many programs run at once.

    Raises:
        VerifyError: bytes differ.
    """
    for heads, tokens in ((64, 2048), (5, 4097)):
        inputs = Inputs(heads, tokens)
        for q_norm in ("on", "off"):
            for change in ({}, {"rows": 4, "steps": 4, "num_warps": 4}):
                with _tile(module, change):
                    apart, aliased = (_bytes_of(module, inputs, q_norm, aliased=way) for way in (False, True))
                if not all(torch.equal(*pair) for pair in zip(apart, aliased, strict=True)):
                    raise VerifyError(f"{heads} heads, {tokens} tokens, tile {change}, q_norm {q_norm}")


def _bytes_of(module: ModuleType, inputs: Inputs, q_norm: str, *, aliased: bool) -> list[Tensor]:
    """What a call on fresh copies of the inputs leaves in its three outputs."""
    q, kv = inputs.q.clone(), inputs.kv.clone()
    q_out, kv_out = (q, kv) if aliased else (torch.empty_like(q), torch.empty_like(kv))
    inputs.cache.zero_()
    module.qk_norm_rope_store(q=q, kv=kv, q_out=q_out, kv_out=kv_out, q_norm=q_norm, **inputs.common)
    return [_bytes(q_out), _bytes(kv_out), inputs.cache.clone()]


def check(module: ModuleType) -> bool:
    """All checks; prints the failures."""
    todo: dict[str, Callable[[], None]] = {"in_place": lambda: in_place(module)}
    for name, one in CHECKS.items():
        todo[name] = lambda one=one: one(Card(module), Path())  # type: ignore[misc]
    failed = 0
    for name, run in todo.items():
        try:
            run()
        except (DsvError, RuntimeError) as error:
            failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
        torch.cuda.empty_cache()
    print(f"check: {len(todo) - failed} of {len(todo)} passed", flush=True)
    return failed == 0


if __name__ == "__main__":
    require_card()
    torch.manual_seed(0)
    sys.exit(0 if check(generated("qk_norm_rope")) else 1)
