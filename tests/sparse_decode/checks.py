"""Checks of a sparse_decode module; each raises on the first difference. The tests pass a shipped module, the
mutation tests one with a planted defect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dsv4gen.base.errors import VerifyError
from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference import sparse_decode as reference
from dsv4gen.reference.compare import check_attention, check_exact, check_lse
from dsv4gen.reference.gather_dequant import V4, store_tokens
from dsv4gen.reference.sparse_decode import Scope
from dsv4gen.reference.sparse_decode_cases import (
    NAN_BYTE,
    SCALE,
    Case,
    build_case,
    build_merge_case,
    build_rows_case,
    fill_pool,
    workspaces,
)

Check = Callable[[InterpreterWorker, Path], None]
SHAPE = {"tokens": 3, "heads": 5, "width": 19, "page_size": 5}
DUAL = {**SHAPE, "extra_width": 18, "extra_page_size": 2, "extra_pages": 12}
#: block_h, block_n, num_warps, num_stages: small blocks make few keys several blocks
SMALL = [16, 16, 4, 1]
#: BL-21: the first page of a pool with 256-token pages whose byte offset does not fit 31 bits
BIG_PAGE, FAR_PAGE = 256, 14340


def run(worker: InterpreterWorker, module: Path, case: Case) -> None:
    """Call the launch function and compare."""
    arguments: dict[str, Any] = dict(case.arguments)
    worker.call(module, case.op, **arguments)
    case.check()


def split_case(shape: Mapping[str, int], parts: int, reduce: str, **options: Any) -> Case:
    """A case in parts, with stale workspaces."""
    room: dict[str, Any] = workspaces(shape["tokens"], shape["heads"], parts)
    return build_case(shape, splits=parts, reduce=reduce, tile=SMALL, **room, **options)


def attend(
    worker: InterpreterWorker, module: Path, q: Tensor, scope: Scope, *, scale: float = SCALE, **options: Any
) -> tuple[Tensor, Tensor]:
    """Results of a call over one scope, outputs NaN before it."""
    out = torch.full(q.shape, torch.nan, dtype=torch.bfloat16)
    lse = torch.full(q.shape[:2], torch.nan)
    named: dict[str, Any] = {
        "cache": scope.pool,
        "indices": scope.indices,
        "page_size": scope.page_size,
        "lengths": scope.lengths,
    }
    chosen = {"splits": 1, "tile": SMALL, "dialect": scope.dialect, **options}
    worker.call(module, "attend", q=q, out=out, lse=lse, scale=scale, **named, **chosen)
    return out, lse


def ramp_rows(count: int) -> tuple[Tensor, Tensor]:
    """A query and rows whose scores at scale 1 are 0, 1, 2, ... and equal the last value of the row (BL-18)."""
    rows = torch.zeros(1, count, 512, dtype=torch.bfloat16)
    rows[0, :, -1] = torch.arange(count)
    q = torch.zeros(1, 1, 512, dtype=torch.bfloat16)
    q[..., -1] = 1.0
    return q, rows


def stored(rows: Tensor, page_size: int = 16) -> Tensor:
    """A pool whose first slots hold the bf16 parts of `rows` [n, 512] and zero codes; the rest is NaN."""
    pages = -(-len(rows) // page_size) + 1
    pool = torch.full((pages, V4.page_bytes(page_size)), NAN_BYTE, dtype=torch.uint8)
    codes, scales = torch.zeros(len(rows), 448, dtype=torch.uint8), torch.full((len(rows), 7), 127, dtype=torch.uint8)
    store_tokens(pool, page_size, torch.arange(len(rows)), codes, scales, rows[:, V4.codes :])
    return pool


def ordinary(worker: InterpreterWorker, module: Path) -> None:
    """Both dialects, lengths, random valid indices, three blocks."""
    for dialect in ("e4m3fn", "e4m3fnuz"):
        run(worker, module, build_case({**SHAPE, "width": 40}, dialect=dialect, splits=1, tile=SMALL))


def invalid_indices(worker: InterpreterWorker, module: Path) -> None:
    """BL-22: -1, other negatives, the first slot past the pool, garbage; every other slot is NaN."""
    names = ("index_minus_one", "index_negative", "index_past_end", "index_garbage")
    run(worker, module, build_case(SHAPE, names=names, lengths=False, splits=1, tile=SMALL))


def short_lengths(worker: InterpreterWorker, module: Path) -> None:
    """Lengths 0, negative and past the width, with indices of NaN slots beyond them."""
    shape = {**SHAPE, "tokens": 6, "queries": 2, "pages": 40}
    for names in (("length_zero", "length_negative"), ("length_above_width",)):
        run(worker, module, build_case(shape, names=names, splits=1, tile=SMALL))


def two_scopes(worker: InterpreterWorker, module: Path) -> None:
    """Different page sizes, dialects and lengths per scope (BL-14)."""
    for lengths, extra_lengths in ((True, True), (True, False), (False, True), (False, False)):
        case = build_case(
            DUAL, extra_dialect="e4m3fnuz", names=("index_minus_one",), lengths=lengths, extra_lengths=extra_lengths,
            splits=1, tile=SMALL,
        )  # fmt: skip
        run(worker, module, case)


def masked_blocks(worker: InterpreterWorker, module: Path) -> None:
    """BL-18: the first, the last, or a middle block of 16 without a valid key."""
    q, rows = ramp_rows(16)
    ramp, hole = torch.arange(16, dtype=torch.int32), torch.full((16,), -1, dtype=torch.int32)
    for order in ((hole, ramp), (ramp, hole), (ramp[:8], hole[:8], hole, ramp[8:])):
        scope = Scope(stored(rows[0]), 16, torch.cat(order)[None])
        out, lse = attend(worker, module, q, scope, scale=1.0)
        check_lse(lse, torch.tensor([[15.458675]]))
        check_attention(out[..., -1:], torch.full((1, 1, 1), 14.418025))


def empty_rows(worker: InterpreterWorker, module: Path) -> None:
    """BL-19a: rows without a valid key first in the batch, with and without sinks."""
    case_arguments = build_case({**SHAPE, "heads": 64}, lengths=False).arguments
    pool, indices = case_arguments["cache"], case_arguments["indices"]
    q = case_arguments["q"]
    assert isinstance(pool, Tensor) and isinstance(indices, Tensor) and isinstance(q, Tensor)
    indices = indices.clone()
    indices[:2] = -1
    scope = Scope(pool, 5, indices)
    for sink in (None, torch.linspace(-3, 3, 64)):
        out, lse = attend(worker, module, q, scope, sink=sink)
        expected = reference.attend(q, [scope], scale=SCALE, sink=sink)
        check_lse(lse, expected[1])
        check_attention(out, expected[0])
        check_exact(out[:2].float().abs(), torch.zeros(2, 64, 512), name="rows without a key")


def splits(worker: InterpreterWorker, module: Path) -> None:
    """BL-19b: parts without keys, all of them too; both reducers leave no trace of stale workspaces."""
    for reduce in ("kernel", "last_arriver"):
        for parts, names in ((3, ("index_minus_one",)), (8, ("length_zero",)), (2, ("index_all_invalid",))):
            run(worker, module, split_case(DUAL, parts, reduce, names=names))


def last_arriver(worker: InterpreterWorker, module: Path) -> None:
    """Counters are zero after the call, so a second call on them is right and equal bit by bit."""
    case = split_case(DUAL, 3, "last_arriver")
    results = []
    for _ in range(2):
        run(worker, module, case)
        results.append((case.out.tensor.clone(), case.lse.tensor.clone()))
    for first, second in zip(*results, strict=True):
        check_exact(second, first, name="repeated call")
    counters = case.arguments["counters"]
    assert isinstance(counters, Tensor)
    check_exact(counters, torch.zeros_like(counters), name="counters")


def far_scores(worker: InterpreterWorker, module: Path) -> None:
    """BL-19c: scores of -60000 and -60001 keep their weights; no finite number stands for minus infinity."""
    rows = torch.zeros(2, 512, dtype=torch.bfloat16)
    rows[:, -1], rows[1, -2] = -240, -1
    q = torch.zeros(1, 1, 512, dtype=torch.bfloat16)
    q[..., -1], q[..., -2] = 250, 1
    out, lse = attend(worker, module, q, Scope(stored(rows), 16, torch.tensor([[0, 1]], dtype=torch.int32)), scale=1.0)
    check_lse(lse, torch.tensor([[-59999.686738]]))
    expected = torch.zeros(1, 1, 512)
    expected[..., -1], expected[..., -2] = -240, -0.268941
    check_attention(out, expected)


def sinks(worker: InterpreterWorker, module: Path) -> None:
    """Sinks of every size: infinities, the largest finite number, none; the log-sum-exp never has them."""
    logits = torch.tensor([0.0, 3.0, torch.inf, -torch.inf, 3.4e38])
    case = build_case(SHAPE, lengths=False, sink="none", splits=1, tile=SMALL)
    run(worker, module, case)
    arguments = dict(case.arguments)
    q, pool, indices = arguments["q"], arguments["cache"], arguments["indices"]
    assert isinstance(q, Tensor) and isinstance(pool, Tensor) and isinstance(indices, Tensor)
    expected = reference.attend(q, [Scope(pool, 5, indices)], scale=SCALE, sink=logits)
    out, lse = attend(worker, module, q, Scope(pool, 5, indices), sink=logits)
    check_lse(lse, expected[1])
    check_attention(out, expected[0])


def scales(worker: InterpreterWorker, module: Path) -> None:
    """BL-16: UE8M0 bytes 0, 1, 105, 127, 254 as their powers of two, 255 as NaN, in the values of single keys."""
    wanted = torch.tensor([0, 1, 105, 127, 254, 255], dtype=torch.uint8)
    pool = torch.zeros(1, V4.page_bytes(8), dtype=torch.uint8)
    codes = torch.full((6, 448), 0x38, dtype=torch.uint8)
    store_tokens(pool, 8, torch.arange(6), codes, wanted[:, None].expand(6, 7), torch.ones(6, 64).bfloat16())
    q = torch.zeros(6, 1, 512, dtype=torch.bfloat16)
    out, _ = attend(worker, module, q, Scope(pool, 8, torch.arange(6, dtype=torch.int32)[:, None]))
    powers = torch.tensor([2.0**-127, 2.0**-126, 2.0**-22, 1.0, 2.0**127, torch.nan])
    # Products of one weight 1 are exact, but a float32 multiply by 1/total may flush the smallest.
    check_exact(out[1:, 0, 0], powers[1:].bfloat16(), name="scales")
    if not 0 < float(out[0, 0, 0]) < 2.0**-126:
        raise VerifyError(f"scale byte 0 reads as {float(out[0, 0, 0])}")


def far_pages(worker: InterpreterWorker, module: Path) -> None:
    """BL-21: slots behind 2^31 bytes of pool, in memory that is only touched there."""
    stride = V4.page_bytes(BIG_PAGE)
    pages = FAR_PAGE + 2
    # A wrapped offset lies 2^32 bytes too low: keep that much room in front, so that it is read and not trapped.
    room = -(-(1 << 32) // stride)
    memory = worker.allocate((room + pages) * stride)
    pool = memory.as_strided((pages, stride), (stride, 1), room * stride)
    slots = torch.tensor([0, FAR_PAGE * BIG_PAGE, FAR_PAGE * BIG_PAGE + 255, (FAR_PAGE + 2) * BIG_PAGE - 1])
    generator = torch.Generator().manual_seed(11)
    fill_pool(pool, BIG_PAGE, slots, "e4m3fn", generator)
    scope = Scope(pool, BIG_PAGE, slots.to(torch.int32)[None])
    q = torch.randn(1, 3, 512, generator=generator).bfloat16()
    out, lse = attend(worker, module, q, scope)
    expected = reference.attend(q, [scope], scale=SCALE)
    check_lse(lse, expected[1])
    check_attention(out, expected[0])


def merge(worker: InterpreterWorker, module: Path) -> None:
    """The public merge: parts of any state, either infinity for an empty one, NaN in what is empty."""
    for parts in (1, 5):
        run(worker, module, build_merge_case(parts, 2, 5))


def gathered(worker: InterpreterWorker, module: Path) -> None:
    """Rows that were gathered before: masked ones hold NaN, which no product may see."""
    case = build_rows_case(3, 5, 37)
    run(worker, module, replace(case, arguments={**case.arguments, "tile": SMALL}))


CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        ordinary, invalid_indices, short_lengths, two_scopes, masked_blocks, empty_rows, splits, last_arriver,
        far_scores, sinks, scales, far_pages, merge, gathered,
    )
}  # fmt: skip
