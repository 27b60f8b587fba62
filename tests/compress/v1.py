"""Plans as the first upstream ABI makes them, written from its rules, and the check that adapters agree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference.compress import Geometry
from dsv4gen.reference.compress_plan import Extend, Ring
from dsv4gen.reference.compress_v1 import V1Plan
from dsv4gen.reference.compress_v1_cases import adapter_cases


def adapted_plans(worker: InterpreterWorker, module: Path) -> None:
    """Device adapters equal the reference's, entry by entry: -1 and garbage in any field, both ratios, legacy rings."""
    for ratio in (4, 128):
        for extra in (True, False):
            for seed in range(3):
                for case in adapter_cases(ratio, extra=extra, seed=seed, batch=9 if seed else 1):
                    worker.call(module, case.op, **dict(case.arguments))  # type: ignore[arg-type]
                    case.check()


def v1_plan(
    extends: Sequence[Extend], ring: Ring, geometry: Geometry, *, extra: bool = True, unused: int = 0
) -> V1Plan:
    """A prefill step's plans; `unused` entries end both, -1 in front of garbage.

    Without `extra`, ratio 4 takes a page of eight rows per request, and ratio 128 one of 128.
    """
    compress, write, pages, kept, ragged = [], [], [], [], 0
    ratio, overlap = geometry.ratio, 4 if geometry.ratio == 4 else 0
    for number, entry in enumerate(extends):
        for position in range(entry.prefix, entry.seq_len):
            from_state = max(geometry.window - (position - entry.prefix + 1), 0)
            if position % ratio == ratio - 1:
                compress.append([ragged, number, position, from_state])
            if position >= entry.seq_len // ratio * ratio - overlap:
                write.append([ragged, number, position, from_state])
            ragged += 1
        first_load, first_write = (max(length - 1, 0) // ratio * ratio for length in (entry.prefix, entry.seq_len))
        page = [
            _page(entry, start, ring, ratio) for start in (first_load - 4, first_load, first_write - 4, first_write)
        ]
        pages.append(page[3] if extra else entry.request)
        kept.append([page[0], page[1], page[2], first_write] if ratio == 4 else [page[1]])
    for entries in (compress, write):
        entries += [[-1, 2143289344, -1, 7]] * unused
    return V1Plan(_plan(compress), _plan(write), _plan(pages), _plan(kept) if extra else None)


def v1_decode(requests: Sequence[int], seq_lens: Sequence[int], ring: Ring, ratio: int) -> tuple[Tensor, Tensor]:
    """`indices` and `extra_data` of a decode step; those of a request without tokens are its first page's."""
    last = [max(length - 1, 0) for length in seq_lens]
    pages = [ring.row(request, position) // ratio for request, position in zip(requests, last, strict=True)]
    before = [
        ring.row(r, max(position // ratio * ratio - ratio, 0)) // ratio
        for r, position in zip(requests, last, strict=True)
    ]
    return _plan(pages), _plan(before)


def _page(entry: Extend, position: int, ring: Ring, ratio: int) -> int:
    return ring.row(entry.request, max(position, 0)) // ratio


def _plan(rows: Sequence[object]) -> Tensor:
    return torch.tensor(rows, dtype=torch.int32)
