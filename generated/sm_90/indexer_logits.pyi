"""Indexer logits over paged FP8 keys, the score matrix of top-k."""

from collections.abc import Mapping
from typing import Any, Literal

TARGET: str
FAMILY: str
OPTIONS: Mapping[str, tuple[str, ...]]
Dialect = Literal["e4m3fn", "e4m3fnuz"]
QueryDialect = Literal["e4m3fn", "e4m3fnuz"]
Sums = Literal["f32", "fast"]
Tail = Literal["untouched", "minus_inf"]
def decode(
    *,
    q: Any,  # u8 [batch, queries, heads, 128], in
    weights: Any,  # f32 [batch * queries, heads], in
    cache: Any,  # u8 [pages, page_bytes], in
    page_table: Any,  # i32 [batch, table_pages], in
    seq_lens: Any = None,  # i32 [batch], in
    row_lens: Any = None,  # i32 [batch, queries], in
    out: Any,  # f32 [batch * queries, width], out
    page_size: Any,
    dialect: Dialect = "e4m3fn",
    query_dialect: QueryDialect = "e4m3fn",
    sums: Sums = "f32",
    tail: Tail = "untouched",
    tile: Any = None,
) -> None:
    """Logits of a decode step, row batch * queries + query; each query sees one key more than the one before."""

def prefill(
    *,
    q: Any,  # u8 [rows, heads, 128], in
    weights: Any,  # f32 [rows, heads], in
    cache: Any,  # u8 [pages, page_bytes], in
    page_table: Any,  # i32 [batch, table_pages], in
    requests: Any,  # i32 [rows], in
    seq_lens: Any,  # i32 [rows], in
    out: Any,  # f32 [rows, width], out
    page_size: Any,
    dialect: Dialect = "e4m3fn",
    query_dialect: QueryDialect = "e4m3fn",
    sums: Sums = "f32",
    tail: Tail = "untouched",
    tile: Any = None,
) -> None:
    """Logits of a ragged prefill step; each row names its request and how many of its keys it sees."""
