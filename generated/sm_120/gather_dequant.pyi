"""Gather rows of one or two paged FP8 KV caches and dequantise them to bf16."""

from collections.abc import Mapping
from typing import Any, Literal

TARGET: str
FAMILY: str
OPTIONS: Mapping[str, tuple[str, ...]]
Dialect = Literal["e4m3fn", "e4m3fnuz"]
ExtraDialect = Literal["e4m3fn", "e4m3fnuz"]
Layout = Literal["v4"]
def gather(
    *,
    cache: Any,  # u8 [pages, page_bytes], in
    indices: Any,  # i32 [tokens, width], in
    lengths: Any = None,  # i32 [ceil_div(tokens, queries)], in
    out: Any,  # bf16 [tokens, columns, 512], out
    mask: Any,  # bool [tokens, columns], out
    page_size: Any,
    queries: Any = 1,
    k_offset: Any = 0,
    dialect: Dialect = "e4m3fn",
) -> None:
    """Columns [k_offset, k_offset + width) of out and mask from one cache; zeros and True where an index is invalid."""

def gather_dual(
    *,
    cache: Any,  # u8 [pages, page_bytes], in
    indices: Any,  # i32 [tokens, width], in
    lengths: Any = None,  # i32 [ceil_div(tokens, queries)], in
    extra_cache: Any,  # u8 [extra_pages, extra_page_bytes], in
    extra_indices: Any,  # i32 [tokens, extra_width], in
    extra_lengths: Any = None,  # i32 [ceil_div(tokens, queries)], in
    out: Any,  # bf16 [tokens, columns, 512], out
    mask: Any,  # bool [tokens, columns], out
    page_size: Any,
    extra_page_size: Any,
    queries: Any = 1,
    k_offset: Any = 0,
    dialect: Dialect = "e4m3fn",
    extra_dialect: ExtraDialect = "e4m3fn",
) -> None:
    """As gather, with width columns from one cache followed by extra_width columns from a second one."""
