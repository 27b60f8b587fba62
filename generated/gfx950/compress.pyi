"""Pool, normalise, rotate and store groups of 4 or 128 tokens in a paged cache."""

from collections.abc import Mapping
from typing import Any, Literal

TARGET: str
FAMILY: str
OPTIONS: Mapping[str, tuple[str, ...]]
BiasAt = Literal["pool", "save"]
Dialect = Literal["e4m3fn", "e4m3fnuz"]
Floor = Literal["record", "amax_1e4", "amax_1e8", "amax_1e12", "amax_fp4", "scale_1e4"]
Fp4Ties = Literal["even", "zero"]
Fp8Max = Literal["writer", "limit"]
Hadamard = Literal["off", "on"]
QuantSource = Literal["bf16", "f32"]
Record = Literal["v4_584", "uniform_fp8", "v41_528", "v41_528_inline", "v41_288", "v41_288_inline", "idx_fp8_132", "idx_fp4_68", "bf16"]
SlotZero = Literal["ordinary", "reserved"]
SourceDtype = Literal["f32", "bf16"]
StateDtype = Literal["f32", "bf16"]
Table = Literal["interleaved", "split", "two"]
def adapt_decode_v1(
    *,
    seq_lens: Any,  # i32 [batch], in
    state_pages: Any,  # i32 [batch], in
    extra: Any = None,  # i32 [batch, 1], in
    plan: Any,  # i32 [batch, 4], out
    ratio: Any,
) -> None:
    """Decode structs of v1's lengths and pages; a row of no tokens or of no page is padding."""

def adapt_prefill_v1(
    *,
    v1_compress: Any,  # i32 [groups, 4], in
    v1_write: Any,  # i32 [writes, 4], in
    state_pages: Any,  # i32 [batch], in
    extra: Any = None,  # i32 [batch, 4 if ratio == 4 else 1], in
    compress: Any,  # i32 [groups, 4], out
    write: Any,  # i32 [writes, 2], out
    ratio: Any,
) -> None:
    """Compress and write structs of v1's, entry by entry; an entry that names no token of a request is invalid."""

def decode(
    *,
    state: Any,  # state_dtype [state_rows, (4 if ratio == 4 else 2) * head_dim], inout
    source: Any,  # source_dtype [batch, (4 if ratio == 4 else 2) * head_dim], in
    plan: Any,  # i32 [batch, 4], in
    bias: Any,  # f32 [8 if ratio == 4 else 128, head_dim], in
    weight: Any,  # f32 [head_dim], in
    cosines: Any,  # f32 [positions, 32 if table == 'two' else 64], in
    sines: Any = None,  # f32 [positions, 32], in
    out_loc: Any,  # i64 [locations], in
    cache: Any,  # u8 [pages, page_bytes], inout
    pooled: Any = None,  # f32 [batch, head_dim], inout
    page_size: Any,
    ratio: Any,
    eps: Any = 1e-06,
    bias_at: BiasAt = "pool",
    table: Table = "interleaved",
    record: Record = None,
    dialect: Dialect = "e4m3fn",
    fp8_max: Fp8Max = "writer",
    floor: Floor = "record",
    quant_source: QuantSource = "bf16",
    hadamard: Hadamard = "off",
    slot_zero: SlotZero = "ordinary",
    fp4_ties: Fp4Ties = "even",
    plan_ready: Any = False,
) -> None:
    """One token per request; groups that it completes go to the cache, then its row to the state."""

def decode_pool(
    *,
    state: Any,  # state_dtype [state_rows, (4 if ratio == 4 else 2) * head_dim], inout
    source: Any,  # source_dtype [batch, (4 if ratio == 4 else 2) * head_dim], in
    plan: Any,  # i32 [batch, 4], in
    bias: Any,  # f32 [8 if ratio == 4 else 128, head_dim], in
    pooled: Any,  # f32 [batch, head_dim], out
    bias_at: BiasAt = "pool",
    plan_ready: Any = False,
) -> None:
    """The first half of a ratio-128 decode step; pooled rows by request, and the new rows to the state."""

def finish_pooled(
    *,
    pooled: Any,  # f32 [groups, head_dim], in
    plan: Any,  # i32 [groups, 4], in
    weight: Any,  # f32 [head_dim], in
    cosines: Any,  # f32 [positions, 32 if table == 'two' else 64], in
    sines: Any = None,  # f32 [positions, 32], in
    out_loc: Any,  # i64 [locations], in
    cache: Any,  # u8 [pages, page_bytes], inout
    page_size: Any,
    ratio: Any,
    decode: Any,
    tokens: Any = None,
    eps: Any = 1e-06,
    transform: Any = True,
    table: Table = "interleaved",
    record: Record = None,
    dialect: Dialect = "e4m3fn",
    fp8_max: Fp8Max = "writer",
    floor: Floor = "record",
    quant_source: QuantSource = "bf16",
    hadamard: Hadamard = "off",
    slot_zero: SlotZero = "ordinary",
    fp4_ties: Fp4Ties = "even",
    after_pool: Any = False,
) -> None:
    """The second half; pooled rows, normalised and rotated, to the cache."""

def online_decode(
    *,
    state: Any,  # f32 [state_rows, 3 * head_dim], inout
    source: Any,  # source_dtype [batch, (4 if ratio == 4 else 2) * head_dim], in
    plan: Any,  # i32 [batch, 4], in
    bias: Any,  # f32 [8 if ratio == 4 else 128, head_dim], in
    weight: Any,  # f32 [head_dim], in
    cosines: Any,  # f32 [positions, 32 if table == 'two' else 64], in
    sines: Any = None,  # f32 [positions, 32], in
    out_loc: Any,  # i64 [locations], in
    cache: Any,  # u8 [pages, page_bytes], inout
    page_size: Any,
    eps: Any = 1e-06,
    table: Table = "interleaved",
    record: Record = None,
    dialect: Dialect = "e4m3fn",
    fp8_max: Fp8Max = "writer",
    floor: Floor = "record",
    quant_source: QuantSource = "bf16",
    hadamard: Hadamard = "off",
    slot_zero: SlotZero = "ordinary",
    fp4_ties: Fp4Ties = "even",
) -> None:
    """As decode for ratio 128 with a running partial per request in place of a ring."""

def online_prefill(
    *,
    state: Any,  # f32 [state_rows, 3 * head_dim], inout
    source: Any,  # source_dtype [tokens, (4 if ratio == 4 else 2) * head_dim], in
    plan: Any,  # i32 [groups, 4], in
    bias: Any,  # f32 [8 if ratio == 4 else 128, head_dim], in
    weight: Any,  # f32 [head_dim], in
    cosines: Any,  # f32 [positions, 32 if table == 'two' else 64], in
    sines: Any = None,  # f32 [positions, 32], in
    out_loc: Any,  # i64 [locations], in
    cache: Any,  # u8 [pages, page_bytes], inout
    page_size: Any,
    eps: Any = 1e-06,
    table: Table = "interleaved",
    record: Record = None,
    dialect: Dialect = "e4m3fn",
    fp8_max: Fp8Max = "writer",
    floor: Floor = "record",
    quant_source: QuantSource = "bf16",
    hadamard: Hadamard = "off",
    slot_zero: SlotZero = "ordinary",
    fp4_ties: Fp4Ties = "even",
) -> None:
    """Segments of chunks to the cache or into the partials; those that end a chunk go first, in a launch of their own."""

def plan_decode(
    *,
    seq_lens: Any,  # i32 [batch], in
    requests: Any,  # i32 [batch], in
    request_to_token: Any = None,  # i32 [sequences, reach], in
    full_to_window: Any = None,  # i64 [slots], in
    plan: Any,  # i32 [batch, 4], out
    ratio: Any,
    ring: Any,
    window_page: Any = None,
) -> None:
    """Decode structs of a step, for a ring per request or per sliding-window page."""

def plan_prefill(
    *,
    seq_lens: Any,  # i32 [batch], in
    extend_lens: Any,  # i32 [batch], in
    requests: Any,  # i32 [batch], in
    request_to_token: Any = None,  # i32 [sequences, reach], in
    full_to_window: Any = None,  # i64 [slots], in
    compress: Any,  # i32 [groups, 4], out
    write: Any,  # i32 [groups, 2], out
    ratio: Any,
    ring: Any,
    window_page: Any = None,
) -> None:
    """Compress and write structs of a step in token order, padded with invalid ones."""

def pool(
    *,
    values: Any,  # f32 [groups, window, head_dim], in
    scores: Any,  # f32 [groups, window, head_dim], in
    bias: Any = None,  # f32 [window, head_dim], in
    mask: Any = None,  # bool [groups, window], in
    out: Any,  # f32 [groups, head_dim], out
) -> None:
    """Softmax-weighted mean of rows, by dimension; 0 where no weight is left."""

def pool_norm_rope(
    *,
    source: Any,  # f32 [batch, 8 if ratio == 4 else 128, (4 if ratio == 4 else 2) * head_dim], in
    bias: Any,  # f32 [8 if ratio == 4 else 128, head_dim], in
    weight: Any,  # f32 [head_dim], in
    cosines: Any,  # f32 [batch, 32 if table == 'two' else 64], in
    sines: Any = None,  # f32 [batch, 32], in
    out: Any,  # f32 [batch, head_dim], out
    ratio: Any,
    eps: Any = 1e-06,
    table: Table = "interleaved",
) -> None:
    """Gathered windows, pooled, normalised and rotated."""

def prefill(
    *,
    state: Any,  # state_dtype [state_rows, (4 if ratio == 4 else 2) * head_dim], in
    source: Any,  # source_dtype [tokens, (4 if ratio == 4 else 2) * head_dim], in
    plan: Any,  # i32 [groups, 4], in
    bias: Any,  # f32 [8 if ratio == 4 else 128, head_dim], in
    weight: Any,  # f32 [head_dim], in
    cosines: Any,  # f32 [positions, 32 if table == 'two' else 64], in
    sines: Any = None,  # f32 [positions, 32], in
    out_loc: Any,  # i64 [locations], in
    cache: Any,  # u8 [pages, page_bytes], inout
    pooled: Any = None,  # f32 [groups, head_dim], inout
    page_size: Any,
    ratio: Any,
    eps: Any = 1e-06,
    bias_at: BiasAt = "pool",
    table: Table = "interleaved",
    record: Record = None,
    dialect: Dialect = "e4m3fn",
    fp8_max: Fp8Max = "writer",
    floor: Floor = "record",
    quant_source: QuantSource = "bf16",
    hadamard: Hadamard = "off",
    slot_zero: SlotZero = "ordinary",
    fp4_ties: Fp4Ties = "even",
    plan_ready: Any = False,
) -> None:
    """Groups of a compress plan to the cache; reads the state and keeps nothing in it."""

def prefill_pool(
    *,
    state: Any,  # state_dtype [state_rows, (4 if ratio == 4 else 2) * head_dim], in
    source: Any,  # source_dtype [tokens, (4 if ratio == 4 else 2) * head_dim], in
    plan: Any,  # i32 [groups, 4], in
    bias: Any,  # f32 [8 if ratio == 4 else 128, head_dim], in
    pooled: Any,  # f32 [groups, head_dim], out
    bias_at: BiasAt = "pool",
    plan_ready: Any = False,
) -> None:
    """The first half of a ratio-128 prefill step; pooled rows by plan entry."""

def write(
    *,
    state: Any,  # state_dtype [state_rows, (4 if ratio == 4 else 2) * head_dim], inout
    source: Any,  # source_dtype [tokens, (4 if ratio == 4 else 2) * head_dim], in
    plan: Any,  # i32 [writes, 2], in
    bias: Any,  # f32 [8 if ratio == 4 else 128, head_dim], in
    ratio: Any,
    bias_at: BiasAt = "pool",
    after_prefill: Any = False,
) -> None:
    """Rows of a write plan to the state; after prefill, in a launch of its own."""
