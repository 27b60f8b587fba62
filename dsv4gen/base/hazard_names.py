"""Names of inputs that break kernels, which specs list and `dsv4gen.reference.hazards` makes; known without torch."""

from __future__ import annotations

HAZARD_NAMES = (
    *("nan", "inf", "equal_values", "signed_zero", "subnormal"),
    *("length_zero", "length_negative", "length_below_k", "length_above_width"),
    *("index_minus_one", "index_negative", "index_past_end", "index_garbage", "index_all_invalid", "duplicate_index"),
    *("nan_code", "scale_extremes"),
    *("misaligned_base", "strided", "poisoned_tail", "poisoned_slot_zero", "empty"),
)
