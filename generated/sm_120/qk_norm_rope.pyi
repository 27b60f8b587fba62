"""Normalise query heads and keys, rotate them, and store the keys in a paged FP8 cache."""

from collections.abc import Mapping
from typing import Any, Literal

TARGET: str
FAMILY: str
OPTIONS: Mapping[str, tuple[str, ...]]
Dialect = Literal["e4m3fn", "e4m3fnuz"]
Dtype = Literal["bf16", "f16"]
Floor = Literal["amax_1e4", "amax_1e8", "amax_1e12", "scale_1e4"]
Fp8Max = Literal["writer", "limit"]
PartialDtype = Literal["f32", "bf16"]
PositionDtype = Literal["i64", "i32"]
QNorm = Literal["on", "off"]
QuantSource = Literal["f32", "bf16"]
Record = Literal["v4_584", "bf16"]
SlotDtype = Literal["i32", "i64"]
SlotZero = Literal["ordinary", "reserved"]
Table = Literal["interleaved", "split", "two"]
TableDtype = Literal["f32", "bf16"]
WeightDtype = Literal["f32", "bf16"]
def k_norm_rope_store(
    *,
    kv: Any,  # dtype [tokens, 512], in
    kv_weight: Any,  # weight_dtype [512], in
    cosines: Any,  # table_dtype [table_rows, angles], in
    sines: Any = None,  # table_dtype [table_rows, angles], in
    positions: Any,  # position_dtype [tokens], in
    slots: Any,  # slot_dtype [locations], in
    cache: Any,  # u8 [pages, page_bytes], inout
    kv_out: Any = None,  # dtype [tokens, 512], inout
    page_size: Any,
    eps: Any = 1e-06,
    table: Table = "interleaved",
    record: Record = "v4_584",
    dialect: Dialect = "e4m3fn",
    fp8_max: Fp8Max = "writer",
    floor: Floor = "amax_1e4",
    quant_source: QuantSource = "f32",
    slot_zero: SlotZero = "ordinary",
) -> None:
    """RMSNorm, rotation, quantisation and paged store of one key per token; with kv_out the key in full precision too."""

def q_norm_rope(
    *,
    q: Any,  # dtype [tokens, heads, head_dim], in
    q_weight: Any = None,  # weight_dtype [head_dim], in
    cosines: Any,  # table_dtype [table_rows, angles], in
    sines: Any = None,  # table_dtype [table_rows, angles], in
    positions: Any,  # position_dtype [tokens], in
    q_out: Any,  # dtype [tokens, heads, head_dim], out
    eps: Any = 1e-06,
    q_norm: QNorm = "on",
    table: Table = "interleaved",
) -> None:
    """RMSNorm of each query head, unless it is off, and rotation; q_out may be q."""

def qk_norm(
    *,
    q: Any,  # dtype [tokens, heads, head_dim], in
    k: Any,  # dtype [tokens, key_heads, head_dim], in
    q_weight: Any = None,  # weight_dtype [head_dim], in
    k_weight: Any,  # weight_dtype [head_dim], in
    q_out: Any,  # dtype [tokens, heads, head_dim], out
    k_out: Any,  # dtype [tokens, key_heads, head_dim], out
    eps: Any = 1e-06,
) -> None:
    """RMSNorm of each query and key head; outputs may be the inputs."""

def qk_norm_rope_store(
    *,
    q: Any = None,  # dtype [tokens, heads, 512], in
    partials: Any = None,  # partial_dtype [splits, tokens, heads, 512], in
    q_weight: Any = None,  # weight_dtype [512], in
    q_out: Any = None,  # dtype [tokens, heads, 512], inout
    kv: Any,  # dtype [tokens, 512], in
    kv_weight: Any,  # weight_dtype [512], in
    kv_out: Any = None,  # dtype [tokens, 512], inout
    cosines: Any,  # table_dtype [table_rows, angles], in
    sines: Any = None,  # table_dtype [table_rows, angles], in
    positions: Any,  # position_dtype [tokens], in
    slots: Any,  # slot_dtype [locations], in
    cache: Any,  # u8 [pages, page_bytes], inout
    page_size: Any,
    q_eps: Any = 1e-06,
    kv_eps: Any = 1e-06,
    q_norm: QNorm = "on",
    table: Table = "interleaved",
    record: Record = "v4_584",
    dialect: Dialect = "e4m3fn",
    fp8_max: Fp8Max = "writer",
    floor: Floor = "amax_1e4",
    quant_source: QuantSource = "f32",
    slot_zero: SlotZero = "ordinary",
) -> None:
    """As q_norm_rope and k_norm_rope_store, in one launch; queries may be absent, or come as partial projections."""
