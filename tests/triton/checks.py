"""Checks of a gather_dequant module; each raises on the first difference. The tests pass a shipped module, the
mutation tests one with a planted defect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import torch

from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference import fp8
from dsv4gen.reference.compare import check_exact
from dsv4gen.reference.gather_dequant import V4, gather_dequant, store_tokens
from dsv4gen.reference.gather_dequant_cases import Case, build_case, products_case

Check = Callable[[InterpreterWorker, Path], None]
SHAPE = {"tokens": 3, "width": 9, "page_size": 5}
DUAL = {**SHAPE, "extra_width": 7, "extra_page_size": 2, "extra_pages": 4}
BIG_PAGE = 256
#: BL-21: the first page of a pool with 256-token pages whose byte offset does not fit 31 bits
FAR_PAGE = 14340


def run(worker: InterpreterWorker, module: Path, case: Case) -> None:
    """Call the launch function and compare."""
    worker.call(module, case.op, **case.arguments)
    case.check()


def ordinary(worker: InterpreterWorker, module: Path) -> None:
    """Both dialects, lengths, random valid indices."""
    for dialect in fp8.DIALECTS:
        run(worker, module, build_case(SHAPE, dialect=dialect))


def invalid_indices(worker: InterpreterWorker, module: Path) -> None:
    """BL-22: -1, other negatives, the first slot past the pool, garbage; slot 0 holds NaN."""
    names = ("index_minus_one", "index_negative", "index_past_end", "index_garbage", "poisoned_slot_zero")
    run(worker, module, build_case(SHAPE, names=names, lengths=False))


def short_lengths(worker: InterpreterWorker, module: Path) -> None:
    """Lengths 0, negative and past the width, with valid indices beyond them."""
    shape = {**SHAPE, "tokens": 6, "queries": 2}
    run(worker, module, build_case(shape, names=("length_zero", "length_negative", "length_above_width")))


def every_code_and_scale(worker: InterpreterWorker, module: Path) -> None:
    """All 256 codes times all 256 scale bytes in both dialects, exact at both ends of bf16."""
    for dialect in fp8.DIALECTS:
        run(worker, module, products_case(dialect))


def two_scopes(worker: InterpreterWorker, module: Path) -> None:
    """Different page sizes, dialects and lengths per scope; one launch or two (BL-14, the 1-D defect upstream)."""
    for lengths, extra_lengths in ((True, True), (True, False), (False, True), (False, False)):
        flags = {"lengths": lengths, "extra_lengths": extra_lengths}
        case = build_case(DUAL, dialect="e4m3fn", extra_dialect="e4m3fnuz", names=("index_minus_one",), **flags)
        run(worker, module, case)


def column_offset(worker: InterpreterWorker, module: Path) -> None:
    """Only the columns from k_offset on are written."""
    for shape in (SHAPE, DUAL):
        run(worker, module, build_case({**shape, "k_offset": 4, "columns": 24}))


def layouts(worker: InterpreterWorker, module: Path) -> None:
    """Strided and misaligned index, length, mask and output tensors."""
    for name in ("strided", "misaligned_base"):
        run(worker, module, build_case(DUAL, names=(name,)))


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
    codes, scales, rope = random_tokens(len(slots), generator)
    store_tokens(pool, BIG_PAGE, slots, codes, scales, rope)
    indices = slots.to(torch.int32)[None]
    out = torch.zeros(1, len(slots), V4.width, dtype=torch.bfloat16)
    mask = torch.ones(1, len(slots), dtype=torch.bool)
    worker.call(module, "gather", cache=pool, indices=indices, out=out, mask=mask, page_size=BIG_PAGE)
    expected, expected_mask = torch.zeros_like(out), torch.ones_like(mask)
    gather_dequant(pool, indices, expected, expected_mask, page_size=BIG_PAGE, dialect="e4m3fn")
    check_exact(out, expected, name="out")
    check_exact(mask, expected_mask, name="mask")


def random_tokens(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Codes, ordinary scale bytes and bf16 parts of some tokens."""
    codes = torch.randint(0, 256, (count, V4.codes), generator=generator, dtype=torch.uint8)
    scales = torch.randint(105, 140, (count, V4.tiles), generator=generator, dtype=torch.uint8)
    return codes, scales, torch.randn(count, V4.rope, generator=generator).bfloat16()


CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        ordinary,
        invalid_indices,
        short_lengths,
        every_code_and_scale,
        two_scopes,
        column_offset,
        layouts,
        far_pages,
    )
}
