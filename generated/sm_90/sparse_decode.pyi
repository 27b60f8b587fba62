"""Attention over selected tokens of one or two paged FP8 KV caches."""

from collections.abc import Mapping
from typing import Any, Literal

TARGET: str
FAMILY: str
OPTIONS: Mapping[str, tuple[str, ...]]
Dialect = Literal["e4m3fn", "e4m3fnuz"]
ExtraDialect = Literal["e4m3fn", "e4m3fnuz"]
Layout = Literal["v4"]
Reduce = Literal["kernel", "last_arriver"]
Scopes = Literal["one", "two"]
def attend(
    *,
    q: Any,  # bf16 [tokens, heads, 512], in
    cache: Any,  # u8 [pages, page_bytes], in
    indices: Any,  # i32 [tokens, width], in
    lengths: Any = None,  # i32 [ceil_div(tokens, queries)], in
    extra_cache: Any = None,  # u8 [extra_pages, extra_page_bytes], in
    extra_indices: Any = None,  # i32 [tokens, extra_width], in
    extra_lengths: Any = None,  # i32 [ceil_div(tokens, queries)], in
    sink: Any = None,  # f32 [heads], in
    part_results: Any = None,  # f32 [part_values], inout
    part_lses: Any = None,  # f32 [part_states], inout
    counters: Any = None,  # i32 [programs], inout
    out: Any,  # bf16 [tokens, heads, value_width], out
    lse: Any,  # f32 [tokens, heads], out
    page_size: Any,
    scale: Any,
    extra_page_size: Any = 1,
    queries: Any = 1,
    dialect: Dialect = "e4m3fn",
    extra_dialect: ExtraDialect = "e4m3fn",
    reduce: Reduce = "kernel",
    splits: Any = None,
    tile: Any = None,
) -> None:
    """Attention of every head of every token over the valid entries of its index lists; zeros and +inf where there is none."""

def attend_rows(
    *,
    q: Any,  # bf16 [tokens, heads, 512], in
    rows: Any,  # bf16 [tokens, width, 512], in
    mask: Any,  # bool [tokens, width], in
    sink: Any = None,  # f32 [heads], in
    out: Any,  # bf16 [tokens, heads, value_width], out
    lse: Any,  # f32 [tokens, heads], out
    scale: Any,
    tile: Any = None,
) -> None:
    """Attention over bf16 rows that were gathered before, as gather_dequant leaves them."""

def merge_lse(
    *,
    parts: Any,  # f32 [splits, tokens, heads, value_width], in
    lses: Any,  # f32 [splits, tokens, heads], in
    sink: Any = None,  # f32 [heads], in
    out: Any,  # bf16 [tokens, heads, value_width], out
    lse: Any,  # f32 [tokens, heads], out
) -> None:
    """One attention result from results over disjoint parts of the keys; the sink is applied here, once."""
