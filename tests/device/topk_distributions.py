"""What `run_topk.py` measures per distribution of scores and per option: time, and how many rows need more than the
first histogram."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

import dsv4gen
from dsv4gen.bench.stopwatch import CudaStopwatch
from dsv4gen.reference.topk import canonical_keys
from tests.device.topk_matrix import normal, spaces

Make = Callable[[torch.Tensor], torch.Tensor]
DISTRIBUTIONS: Mapping[str, Make] = {
    "normal": torch.clone,
    "narrow_1+1e-3n": lambda n: 1 + 1e-3 * n,
    "relu": torch.relu,
    "mostly_zero": lambda n: torch.where(n > 2.5, n, 0.0),
    "constant": torch.ones_like,
    "lognormal3": lambda n: (3 * n).exp(),
    "uniform01": lambda n: (n * 0.7071067811865476).erf() / 2 + 0.5,
    "bf16_rounded": lambda n: n.to(torch.bfloat16).float(),
}
SHAPES = ((1, 131072), (64, 131072), (64, 16384), (1024, 4096))
K, PAGE_BITS = 512, 6
#: bytes of scores that timed calls walk through, more than twice the L2
ROTATED = 160 * 2**20
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "tie_break=low": {"tie_break": "low"},
    "sorted=index": {"sorted": "index"},
    "nan_policy=drop": {"nan_policy": "drop"},
    "score_dtype=bf16": {"score_dtype": "bf16"},
    "mode=indices": {"mode": "indices"},
    "mode=ragged": {"mode": "ragged"},
    "mode=packed": {"mode": "packed"},
}


def fallbacks(scores: torch.Tensor, k: int, capacity: int) -> tuple[float, float]:
    """Shares of rows whose border bin holds more scores than are staged, and more than are ranked pair by pair.

    Bins are the kernels': the leading 12 bits of the fp16 rounding, exact zeros apart.
    """
    half = scores.to(torch.float16).view(torch.int16).int()
    ordered = torch.where(half < 0, ~half & 0xFFFF, half | 0x8000) >> 4
    bins = torch.where(scores == 0, 0, ordered + 1)
    border = scores.gather(1, torch.topk(canonical_keys(scores), k, dim=1).indices[:, -1:])
    mine = bins.gather(1, torch.topk(canonical_keys(scores), k, dim=1).indices[:, -1:])
    tied = (bins == mine).sum(1)
    above = ((scores > border) & (bins != mine)).sum(1)
    open_ = (border[:, 0] != 0) & (above + tied != k)
    return float((open_ & (tied > capacity)).float().mean()), float((open_ & (tied > 128)).float().mean())


def calls_of(batch: int, width: int, make: Make, options: Mapping[str, str]) -> list[Callable[[], object]]:
    """One call per input set, enough to leave the L2."""
    loaded = dsv4gen.load("topk", **options)
    dtype = torch.bfloat16 if options.get("score_dtype") == "bf16" else torch.float32
    sets = min(64, max(2, ROTATED // (batch * width * dtype.itemsize)))
    return [_call(loaded, make(normal(batch, width, seed)).to(dtype), options.get("mode", "")) for seed in range(sets)]


def _call(loaded: Any, scores: torch.Tensor, mode: str) -> Callable[[], object]:
    batch, width = scores.shape
    given: dict[str, Any] = {
        "scores": scores,
        "seq_lens": torch.full((batch,), width, dtype=torch.int32, device="cuda"),
        "out": torch.empty(batch, K, dtype=torch.int32, device="cuda"),
    }
    given |= spaces(loaded, batch, width, K)
    words = torch.arange(batch, dtype=torch.int32, device="cuda")
    if mode in ("", "packed"):
        pages = width >> PAGE_BITS
        table = torch.stack([torch.randperm(pages) for _ in range(batch)]).to(torch.int32).cuda()
        given |= {"page_table": table, "page_bits": PAGE_BITS}
    if mode in ("ragged", "packed"):
        given["row_starts"] = torch.zeros_like(words)
    if mode == "ragged":
        given["out_offsets"] = words
    if mode == "packed":
        given["row_to_batch"] = words
    return lambda: loaded(**given)


def distributions() -> dict[str, float]:
    """Microseconds per call, graphs of chained calls, and percent of rows that fall back to further passes."""
    watch, found = CudaStopwatch(), {}
    for batch, width in SHAPES:
        for name, make in DISTRIBUTIONS.items():
            found[f"{batch} x {width} {name}, us"] = watch.chained(calls_of(batch, width, make, {})).us
            capacity = 2048 if batch * 2 <= 132 and width > 4096 else 1024
            row, stage = fallbacks(make(normal(max(batch, 64), width, 1)), K, capacity)
            found[f"{batch} x {width} {name}, % of rows narrowed from the row"] = 100 * row
            found[f"{batch} x {width} {name}, % of rows narrowed in the stage or the row"] = 100 * stage
    return found


def options() -> dict[str, float]:
    """Microseconds per call with each option, on ordinary scores and on plateaus."""
    watch, found = CudaStopwatch(), {}
    for batch, width in SHAPES:
        for name, make in (("normal", DISTRIBUTIONS["normal"]), ("mostly_zero", DISTRIBUTIONS["mostly_zero"])):
            for words, chosen in OPTIONS.items():
                found[f"{batch} x {width} {name}, {words}, us"] = watch.chained(calls_of(batch, width, make, chosen)).us
    return found
