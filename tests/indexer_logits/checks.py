"""Checks of an indexer_logits module; each raises on the first difference. The tests pass a shipped module, the
mutation tests one with a planted defect."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference import indexer_logits as reference
from dsv4gen.reference.indexer_logits_cases import (
    GARBAGE,
    Case,
    build_case,
    check_logits,
    quantised_queries,
    store_keys,
)

Check = Callable[[InterpreterWorker, Path], None]
#: pages that blocks of 16 keys cross; WHOLE has blocks that lie on one page each
STEP = {"batch": 2, "queries": 3, "heads": 5, "width": 37, "page_size": 8, "pages": 14}
RAGGED = {"batch": 3, "rows": 7, "heads": 5, "width": 37, "page_size": 8, "pages": 14}
WHOLE = {**STEP, "page_size": 32, "pages": 7}
#: block_r, block_n, blocks, num_warps, num_stages: few keys are several blocks and several programs
SMALL = [2, 16, 2, 4, 1]
#: a page of 64 keys behind 2^31 bytes of pool, and an output row behind 2^31 elements
PAGE_BYTES, FAR_PAGE, FAR_ROW = 64 * 132, 254_300, 2_147_483_700


def run(worker: InterpreterWorker, module: Path, case: Case) -> None:
    """Call the launch function and compare."""
    arguments: dict[str, Any] = dict(case.arguments)
    worker.call(module, case.op, **arguments)
    case.check()


def ordinary(worker: InterpreterWorker, module: Path) -> None:
    """Both ops in both dialects of keys and queries; weights of either sign, one per head."""
    for shape in (STEP, RAGGED):
        for dialect, other in itertools.product(("e4m3fn", "e4m3fnuz"), repeat=2):
            run(worker, module, build_case(shape, dialect=dialect, query_dialect=other, tile=SMALL))


def invalid_pages(worker: InterpreterWorker, module: Path) -> None:
    """Pages of -1, below it, past the pool, garbage, behind the table; page 0 is NaN."""
    for shape in (STEP, RAGGED, WHOLE):
        run(worker, module, build_case(shape, names=GARBAGE, tail="minus_inf", tile=SMALL))
        run(worker, module, build_case({**shape, "table_pages": 1}, tile=SMALL))


def lengths(worker: InterpreterWorker, module: Path) -> None:
    """Lengths 0, negative and past the width; each query sees one key more than the one before."""
    names = ("length_zero", "length_negative", "length_above_width")
    for shape in (STEP, RAGGED):
        for seed in (1, 2):
            run(worker, module, build_case({**shape, "batch": 4}, names=names, seed=seed, tile=SMALL))
    run(worker, module, build_case(STEP, names=names, per_row=True, tile=SMALL))
    run(worker, module, build_case(STEP, seed=3, tile=[1, 16, 2, 4, 1]))


def tails(worker: InterpreterWorker, module: Path) -> None:
    """Columns behind the visible keys: -inf up to the width, or left alone; the row's padding always."""
    for shape in (STEP, RAGGED):
        for tail in ("untouched", "minus_inf"):
            run(worker, module, build_case(shape, names=("poisoned_tail",), tail=tail, seed=4, tile=SMALL))


def shared_programs(worker: InterpreterWorker, module: Path) -> None:
    """Rows of several requests in one program, in any order, with rows of none between them."""
    case = build_case({**RAGGED, "batch": 5, "rows": 6}, tile=[4, 16, 2, 4, 1], tail="minus_inf")
    run(worker, module, case)
    arguments: dict[str, Any] = dict(case.fresh().arguments)
    arguments["requests"] = torch.tensor([4, 0, -1, 2, 1, 5], dtype=torch.int32)
    expected = torch.zeros(6, 37, dtype=torch.float64)
    named = {name: value for name, value in arguments.items() if name not in ("cache", "out", "tile")}
    reference.prefill(**named, pool=arguments["cache"], out=expected)
    worker.call(module, "prefill", **arguments)
    check_logits(arguments["out"], expected, torch.ones(6, 37, dtype=torch.bool), name="rows in any order")


def many_heads(worker: InterpreterWorker, module: Path) -> None:
    """One head, and more than one product takes."""
    for heads in (1, 64, 65, 130):
        run(worker, module, build_case({**STEP, "queries": 1, "heads": heads}, seed=heads, tile=SMALL))


def layouts(worker: InterpreterWorker, module: Path) -> None:
    """Gaps between rows and elements, starts off the usual alignment, pages of an odd number of tokens."""
    for names in (("strided",), ("misaligned_base",)):
        for shape in (STEP, RAGGED):
            run(worker, module, build_case({**shape, "page_size": 5}, names=names, tile=SMALL))


def far_offsets(worker: InterpreterWorker, module: Path) -> None:
    """BL-21: keys behind 2^31 bytes of pool and rows behind 2^31 elements, in memory that is only touched there."""
    generator = torch.Generator().manual_seed(6)
    pages = FAR_PAGE + 2
    # A wrapped offset lies 2^32 bytes or elements too low: keep that much room in front, so that it is no trap.
    room = -(-(1 << 32) // PAGE_BYTES)
    memory = worker.allocate((room + pages) * PAGE_BYTES)
    pool = memory.as_strided((pages, PAGE_BYTES), (PAGE_BYTES, 1), room * PAGE_BYTES)
    slots = torch.cat([torch.arange(64), FAR_PAGE * 64 + torch.arange(128)])
    store_keys(pool, 64, slots, "e4m3fn", generator)
    table = torch.tensor([[0, FAR_PAGE], [FAR_PAGE + 1, 0]], dtype=torch.int32)
    codes, scales = quantised_queries((2, 3), "e4m3fn", generator)
    weights = scales * 0.01
    lens = torch.tensor([100, 128], dtype=torch.int32)
    shared: dict[str, Any] = {"page_table": table, "seq_lens": lens, "page_size": 64}
    expected = torch.zeros(2, 128, dtype=torch.float64)
    reference.decode(codes[:, None], weights, pool, out=expected, tail="minus_inf", **shared)
    behind = worker.allocate(4 * ((1 << 32) + FAR_ROW + 128)).view(torch.float32)
    out = behind.as_strided((2, 128), (FAR_ROW, 1), 1 << 32)
    written = torch.ones(2, 128, dtype=torch.bool)
    for op, named in (("decode", {"q": codes[:, None]}), ("prefill", {"q": codes, "requests": torch.arange(2).int()})):
        out.fill_(torch.nan)
        worker.call(
            module, op, weights=weights, cache=pool, out=out, tail="minus_inf", tile=[1, 64, 2, 4, 1], **named, **shared
        )
        check_logits(out, expected, written, name=f"far offsets of {op}")


CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        ordinary, invalid_pages, lengths, tails, shared_programs, many_heads, layouts, far_offsets,
    )
}  # fmt: skip
