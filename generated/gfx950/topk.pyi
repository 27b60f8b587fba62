"""Select the k largest scores of each row and map their positions through a page table."""

from collections.abc import Mapping
from typing import Any, Literal

from dsv4gen.runtime import Decision, GeneratedFamily

TARGET: str
FAMILY: str
OPTIONS: Mapping[str, tuple[str, ...]]
family: GeneratedFamily
Mode = Literal["indices", "page_table", "dual", "ragged", "packed"]
NanPolicy = Literal["lowest", "drop"]
ScoreDtype = Literal["f32", "bf16"]
Sorted = Literal["none", "index"]
TieBreak = Literal["none", "low", "high"]

def explain(op: str | None = None, *, options: Mapping[str, str] | None = None, **shape: int) -> Decision: ...
def select(
    *,
    scores: Any,  # score_dtype [batch, width], in
    seq_lens: Any,  # i32 [batch], in
    page_table: Any = None,  # i32 [tables if mode == 'packed' else batch, pages], in
    out: Any = None,  # i32 [batch, k], out
    raw_out: Any = None,  # i32 [batch, k], out
    row_starts: Any = None,  # i32 [batch], in
    out_offsets: Any = None,  # i32 [batch], in
    row_to_batch: Any = None,  # i32 [batch], in
    workspace: Any = None,  # u8, workspace of the caller, zero before the first call
    **numbers: Any,
) -> Any:
    """The k largest scores of each row, in no particular order; -1 past min(k, seq_len)."""
