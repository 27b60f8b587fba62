"""Calls of every op of the qk_norm_rope family with known results: what `verify` runs.

Small enough for the interpreter and for emulated machine code: a few tokens, few and odd numbers of heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import torch

from dsv4gen.reference.qk_norm_rope_case import Case, Setting, build_case

_INF, _NAN = float("inf"), float("nan")
#: every kind of slot that is no slot, and the first and the last one; the cache has 12 when there are 3 tokens a page
_BAD_SLOTS = (0, -1, 14, 15, 2143289344, -(1 << 31), 5)
_PLACES = (3, -1, 39, 40, 2147483647, 0, 12)
_BF16_INPUTS = (("weight_dtype", torch.bfloat16), ("table_dtype", torch.bfloat16))
_NORM = Setting("qk_norm")
_QUERIES = Setting("q_norm_rope")
_KEYS = Setting("k_norm_rope_store")
_BOTH = Setting("qk_norm_rope_store", q_eps=1e-5, kv_eps=1e-7)


def _options(**chosen: str) -> tuple[tuple[str, str], ...]:
    return tuple(chosen.items())


def _norm_settings() -> Iterator[tuple[str, Setting]]:
    yield "plain", _NORM
    yield "weighted, apart and misaligned", replace(_NORM, weighted=True, padding=8, offset=1, heads=3)
    yield "in place", replace(_NORM, weighted=True, in_place=True, heads=1, key_heads=5, weight_dtype=torch.bfloat16)
    yield "NaN and infinities", replace(_NORM, special=(_INF, _NAN, -_INF, 3e38))
    yield "192 dimensions", replace(_NORM, head_dim=192, weighted=True, heads=9)
    yield "1536 dimensions, no heads", replace(_NORM, head_dim=1536, heads=0, tokens=2)
    yield "no tokens", replace(_NORM, tokens=0)


def _query_settings() -> Iterator[tuple[str, Setting]]:
    yield "interleaved", _QUERIES
    yield "split, positions of 32 bits", replace(_QUERIES, options=_options(table="split"), position_dtype=torch.int32)
    yield "two tables, in place", replace(_QUERIES, options=_options(table="two"), in_place=True, weighted=True)
    yield "rotation only, in place", replace(_QUERIES, options=_options(q_norm="off"), in_place=True, padding=16)
    yield (
        "rotation only, NaN and infinities",
        replace(_QUERIES, options=_options(q_norm="off"), special=(_INF, _NAN, -_INF, -0.0)),
    )
    yield "apart and misaligned", replace(_QUERIES, padding=3, offset=1, heads=1)
    yield "128 dimensions, bf16 table", replace(_QUERIES, head_dim=128, heads=7, table_dtype=torch.bfloat16)
    yield "positions outside the table", replace(_QUERIES, tokens=7, heads=1, positions=_PLACES)
    yield "float16", replace(_QUERIES, dtype=torch.float16, head_dim=64, heads=2)
    yield "no tokens", replace(_QUERIES, tokens=0)


def _key_settings() -> Iterator[tuple[str, Setting]]:
    yield "plain", _KEYS
    yield "slots that are none", replace(_KEYS, tokens=7, slots=_BAD_SLOTS, kv_out=True)
    yield "nothing valid", replace(_KEYS, slots=(-1, -1, -1))
    yield "fewer slots than tokens", replace(_KEYS, tokens=4, locations=2, slot_dtype=torch.int64, page_size=1)
    # Times a negative weight the special value is too small for a code: a zero, whose sign no code of e4m3fnuz has.
    yield (
        "e4m3fnuz, in place",
        replace(_KEYS, options=_options(dialect="e4m3fnuz"), kv_out=True, in_place=True, padding=64, special=(1e-6,)),
    )
    yield (
        "a slice of a wider projection, misaligned",
        replace(_KEYS, padding=1536, offset=1, weight_dtype=torch.bfloat16, page_size=64, slots=(130, 0, 64)),
    )
    yield "bf16 values quantised", replace(_KEYS, options=_options(quant_source="bf16", floor="amax_1e8"), tokens=4)
    yield "bf16 record", replace(_KEYS, options=_options(record="bf16", table="split"))
    yield "NaN and infinities", replace(_KEYS, special=(_INF, _NAN, -_INF, 3e38), tokens=5)
    yield "positions outside the table", replace(_KEYS, tokens=7, positions=_PLACES)
    yield "no tokens", replace(_KEYS, tokens=0)


def _fused_settings() -> Iterator[tuple[str, Setting]]:
    yield "plain", _BOTH
    yield "one head, keys in full precision", replace(_BOTH, kv_out=True, heads=1)
    yield (
        "in place, slots that are none",
        replace(
            _BOTH,
            tokens=7,
            heads=1,
            slots=_BAD_SLOTS,
            in_place=True,
            kv_out=True,
            padding=8,
            options=_options(table="two"),
        ),
    )
    yield "one split", replace(_BOTH, splits=1, weighted=True, tokens=2)
    yield "three bf16 splits, misaligned", replace(_BOTH, splits=3, partial_dtype=torch.bfloat16, offset=1, heads=3)
    yield "without queries", replace(_BOTH, heads=0, options=_options(slot_zero="reserved"), slots=(0, 1, 2))
    yield "queries rotated only", replace(_BOTH, options=_options(q_norm="off", table="split"), locations=1)
    yield "no tokens", replace(_BOTH, tokens=0)


def _every_option() -> Iterator[tuple[str, Setting]]:
    """Choices that the other calls leave out."""
    wide = replace(_BOTH, kv_out=True, weighted=True, **dict(_BF16_INPUTS))  # type: ignore[arg-type]
    yield (
        "limit and floor of the scale",
        replace(wide, options=_options(dialect="e4m3fnuz", fp8_max="limit", floor="scale_1e4", quant_source="bf16")),
    )
    yield "float16", replace(wide, dtype=torch.float16, options=_options(floor="amax_1e12", record="bf16"))
    for table in ("interleaved", "split", "two"):
        for dtype in (torch.int32, torch.int64):
            options = _options(table=table, slot_zero="reserved")
            yield (
                f"table {table}, {dtype}",
                replace(wide, options=options, position_dtype=dtype, slot_dtype=dtype, heads=16),
            )
    for head_dim in (64, 128, 256, 512):
        yield f"{head_dim} dimensions", replace(_QUERIES, head_dim=head_dim, heads=17, weighted=True)
        yield f"{head_dim} dimensions", replace(_NORM, head_dim=head_dim, heads=17)
    for heads in (1, 2, 3, 4, 5, 8, 15):
        yield f"{heads} heads", replace(_BOTH, heads=heads, tokens=2)
    yield "65 tokens", replace(_BOTH, tokens=65, heads=2, page_size=16)


def _large_settings() -> Iterator[tuple[str, Setting]]:
    """Work for the tiles of large steps, more than an interpreter should be given."""
    off = _options(q_norm="off")
    for name, tokens, heads in (("1026 heads", 6, 171), ("4104 heads", 9, 456)):
        yield name, replace(_NORM, tokens=tokens, heads=heads)
        yield f"{name}, weighted", replace(_NORM, tokens=tokens, heads=heads, weighted=True)
        yield name, replace(_QUERIES, tokens=tokens, heads=heads)
        yield f"{name}, rotation only", replace(_QUERIES, tokens=tokens, heads=heads, in_place=True, options=off)
    yield "1025 keys", replace(_KEYS, tokens=1025, page_size=64, positions=(0, 39) * 513)
    yield "4113 heads", replace(_BOTH, tokens=9, heads=457)
    yield "4110 heads in splits", replace(_BOTH, tokens=10, heads=411, splits=2)


#: name -> the settings of its calls
GROUPS: Mapping[str, Callable[[], Iterator[tuple[str, Setting]]]] = {
    "norm": _norm_settings,
    "queries": _query_settings,
    "keys": _key_settings,
    "fused": _fused_settings,
    "options": _every_option,
    "large": _large_settings,
}


def group_cases(group: str) -> Iterator[Case]:
    """The calls of one group."""
    for name, setting in GROUPS[group]():
        yield build_case(f"{setting.op} {name}", setting)


def verification_cases(*, full: bool) -> Iterator[Case]:
    """Cases that reach every op, table layout, record and invalid index; `full` adds every option and more shapes."""
    for group in ("norm", "queries", "keys", "fused", *(["options"] if full else [])):
        yield from group_cases(group)


def machine_code_cases(*, full: bool) -> Iterator[Case]:
    """Cases for compiled code: those, and steps so large that every kernel takes its last tile."""
    yield from verification_cases(full=full)
    yield from group_cases("large")
