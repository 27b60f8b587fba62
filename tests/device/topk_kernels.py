"""One small call of every kernel of top-k v2, for `run_topk.py`; short enough to run below compute-sanitizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

import dsv4gen
from dsv4gen.reference.topk import Rules
from dsv4gen.reference.topk_rows import MODES
from dsv4gen.reference.topk_scores import make_scores
from tests.device.topk_checks import make_call, scratch
from tests.device.topk_matrix import check_on_host, taken

#: (batch, width, k): every launch path and tile on a card of 132 units with clusters, the shortest rows that take it
SHAPES = (
    *((1, 131_080, 512), (2, 262_152, 512), (8, 16_400, 2048), (34, 16_400, 512), (2, 3000, 512), (70, 4100, 2048)),
    *((530, 700, 64), (12, 16_400, 1024), (5, 131_080, 2048)),
)
#: modes and options: those that change most of the kernel's text first
CHOICES: tuple[tuple[str, dict[str, str]], ...] = (
    ("page_table", {}),
    ("indices", {"tie_break": "low", "sorted": "index", "nan_policy": "drop"}),
    *((mode, {}) for mode in MODES if mode != "page_table"),
    ("packed", {"tie_break": "high", "score_dtype": "bf16"}),
)
KINDS = ("normal", "zeros_95", "all_equal", "nan_3_and_infinities", "plateau_in_a_bin", "one_bin")


def every_kernel() -> str:
    """Rows of every length that matters, with plateaus among them, judged on the host."""
    met = []
    for name in _calls():
        met.append(name)
        print(f"  {name}", flush=True)
    return f"{len(met)} calls right"


def _calls() -> Iterator[str]:
    for (mode, options), (number, (batch, width, k)) in ((c, s) for c in CHOICES for s in enumerate(SHAPES)):
        kinds = ["normal" if row % 2 else KINDS[(row // 2 + number) % len(KINDS)] for row in range(batch)]
        rows = torch.stack([make_scores(kind, width, k, row) for row, kind in enumerate(kinds)])
        lengths = torch.tensor([_length(row, width, k) for row in range(batch)], dtype=torch.int32)
        call = make_call(mode, rows, lengths, k, odd=bool(number % 2))
        if options.get("score_dtype") == "bf16":
            call = replace(call, rows=replace(call.rows, scores=call.rows.scores.to(torch.bfloat16)))
        loaded = dsv4gen.load("topk", mode=mode, **options)
        loaded(**call.arguments(), **scratch(loaded, call))
        check_on_host(call, Rules(**{name: word for name, word in options.items() if name != "score_dtype"}))
        yield f"{taken(loaded, batch, call.rows.scores.shape[1], k)} {mode} {' '.join(options.values())}".rstrip()


def _length(row: int, width: int, k: int) -> int:
    """Whole rows, and in turn those of each row path."""
    return width if row % 2 == 0 else min(width, (k, k + 1, 2047, 4096, 8190, 16_385, width - 1)[row // 2 % 7])


CHECKS: dict[str, Callable[[], str]] = {"every kernel": every_kernel}
