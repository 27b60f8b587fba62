"""Logits of an indexer's query heads over paged FP8 keys: the definition of right, in plain torch.

    logits[r, j] = scale[j] * sum over h of weight[r, h] * relu(<q[r, h], k[j]>)

All arithmetic is float64 on the values of the codes. A row sees the first keys of its request, in the order of its
page table. A key that is seen but whose page is not one of the pool's has the logit -inf; columns behind the seen keys
keep what they hold, or become -inf.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dsv4gen.reference import fp8

HEAD_DIM = 128
#: bytes of a token: its codes, and its float32 scale
TOKEN = HEAD_DIM + 4


def load_keys(pool: Tensor, page_size: int, table: Tensor, count: int, dialect: str) -> tuple[Tensor, Tensor, Tensor]:
    """The first `count` keys of one request, by its row of the page table.

    Args:
        pool: uint8 [pages, page_bytes]; the codes of all tokens of a page lie before their scales.
        table: int32 [table_pages]; keys behind its end have no page.

    Returns:
        float64 values [count, 128] and scales [count], anything where not valid, and validity, bool [count].
    """
    key = torch.arange(count)
    column = key // page_size
    known = column < len(table)
    page = torch.full((count,), -1)
    page[known] = table.to(torch.int64)[column[known]]
    valid = (page >= 0) & (page < len(pool))
    values, scales = torch.zeros(count, HEAD_DIM, dtype=torch.float64), torch.zeros(count, dtype=torch.float64)
    page, slot = page[valid][:, None], (key % page_size)[valid][:, None]
    codes = pool[page, slot * HEAD_DIM + torch.arange(HEAD_DIM)]
    scale_bytes = pool[page, page_size * HEAD_DIM + slot * 4 + torch.arange(4)]
    values[valid] = fp8.decode(codes, fp8.dialect_of(dialect)).double()
    scales[valid] = scale_bytes.view(torch.float32).double()[:, 0]
    return values, scales, valid


def logits_of(q: Tensor, weights: Tensor, values: Tensor, scales: Tensor, valid: Tensor) -> Tensor:
    """float64 [keys] of one row: q float64 [heads, 128], weights float32 [heads], and what `load_keys` returns."""
    sums = torch.relu(values @ q.T) @ weights.double()
    return torch.where(valid, scales * sums, -torch.inf)


def prefill(
    q: Tensor,
    weights: Tensor,
    pool: Tensor,
    page_table: Tensor,
    requests: Tensor,
    seq_lens: Tensor,
    out: Tensor,
    *,
    page_size: int,
    dialect: str = "e4m3fn",
    query_dialect: str = "e4m3fn",
    tail: str = "untouched",
) -> None:
    """Logits of rows that name their requests, written to `out`.

    Args:
        q: uint8 codes [rows, heads, 128].
        weights: float32 [rows, heads].
        page_table: int32 [batch, table_pages].
        requests: int32 [rows]; one outside the batch sees no key.
        seq_lens: int32 [rows], keys that each row sees; cut at 0 and at the width.
        out: float [rows, width].
        tail: `untouched` or `minus_inf`, what becomes of columns behind the seen keys.
    """
    batch, width = len(page_table), out.shape[1]
    queries = fp8.decode(q, fp8.dialect_of(query_dialect)).double()
    for row, (request, length) in enumerate(zip(requests.tolist(), seq_lens.tolist(), strict=True)):
        seen = min(max(length, 0), width) if 0 <= request < batch else 0
        if seen:
            keys = load_keys(pool, page_size, page_table[request], seen, dialect)
            out[row, :seen] = logits_of(queries[row], weights[row], *keys).to(out.dtype)
        if tail == "minus_inf":
            out[row, seen:] = -torch.inf


def decode(
    q: Tensor,
    weights: Tensor,
    pool: Tensor,
    page_table: Tensor,
    out: Tensor,
    *,
    page_size: int,
    seq_lens: Tensor | None = None,
    row_lens: Tensor | None = None,
    dialect: str = "e4m3fn",
    query_dialect: str = "e4m3fn",
    tail: str = "untouched",
) -> None:
    """Logits of a decode step: `q` uint8 [batch, queries, heads, 128], row batch * queries + query of the others.

    Args:
        seq_lens: int32 [batch], keys that the last query sees; each query before it sees one less.
        row_lens: int32 [batch, queries], keys that each query sees, instead.
    """
    batch, queries = q.shape[:2]
    if row_lens is None:
        assert seq_lens is not None
        row_lens = seq_lens[:, None].to(torch.int64) - queries + 1 + torch.arange(queries)
    prefill(
        q.flatten(0, 1),
        weights,
        pool,
        page_table,
        torch.arange(batch).repeat_interleave(queries),
        row_lens.flatten(),
        out,
        page_size=page_size,
        dialect=dialect,
        query_dialect=query_dialect,
        tail=tail,
    )
