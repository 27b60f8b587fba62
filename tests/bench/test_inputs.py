"""Builders of timed inputs: their judges take right results and refuse wrong ones. Everything on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch

from dsv4gen.base.errors import ArgumentError, VerifyError
from dsv4gen.bench.peers import plain_torch
from dsv4gen.bench.prepare import Prepared, cloned_outputs, judge, prepare
from dsv4gen.reference import compress_state, indexer_logits
from dsv4gen.reference.compress import Geometry, rms_norm, rotate
from dsv4gen.reference.compress_bench import EPS
from dsv4gen.reference.compress_store import quantizer, store_rows
from dsv4gen.reference.paged_bench import few_tokens
from dsv4gen.reference.qk_norm_rope import RotaryTable, keys, query_heads
from dsv4gen.reference.qk_norm_rope import rms_norm as norm_heads
from dsv4gen.reference.sparse_decode import Scope, attend
from dsv4gen.reference.workload import Request
from dsv4gen.runtime.dispatch import complete_options
from dsv4gen.runtime.load import any_entry
from dsv4gen.runtime.read_table import make_table

POOLS = {"page_size": 4, "pages": 9, "extra_page_size": 2, "extra_pages": 30}
Written = dict[str, Any]


def prepared(family: str, op: str, shape: Mapping[str, int], **options: str) -> Prepared:
    """Inputs on the CPU."""
    entry = any_entry(family)
    request = Request(family, op, shape, complete_options(entry, options), entry["constants"], "cpu")
    return prepare(request, entry["reference"], 0)


def by_torch(made: Prepared) -> Written:
    """What torch's version of the op leaves."""
    calls = plain_torch.prepare(made.request, made.sets)
    assert calls is not None
    return dict(calls.written())


def by_attention(made: Prepared) -> Written:
    """The reference on the whole caches."""
    values: Any = made.arguments
    scopes = [Scope(values["cache"], values["page_size"], values["indices"])]
    if "extra_cache" in values:
        scopes.append(Scope(values["extra_cache"], values["extra_page_size"], values["extra_indices"]))
    out, lse = attend(values["q"], scopes, scale=values["scale"], sink=values["sink"])
    return {"out": out.bfloat16(), "lse": lse.float()}


def by_state_machine(made: Prepared) -> Written:
    """The compressor's reference on the whole state."""
    values: Any = {name: v.clone() if isinstance(v, torch.Tensor) else v for name, v in made.arguments.items()}
    decoding, ratio = made.request.op == "decode", values["ratio"]
    step = compress_state.Step(Geometry(ratio, 512), values["bias"])
    pool = compress_state.pooled_decode if decoding else compress_state.pooled_prefill
    kept, pooled = pool(step, values["state"], values["source"], values["plan"])
    table = values["cosines"][values["plan"][kept, 0].long() - ratio]
    rows = rotate(rms_norm(pooled, values["weight"], EPS), table[:, 0::2], table[:, 1::2])
    slots = values["out_loc"][kept] if decoding else torch.arange(len(kept))
    store_rows(values["cache"], values["page_size"], slots, rows.float(), "v4_584", quantizer("e4m3fn"))
    if decoding:
        compress_state.write_decode(step, values["state"], values["source"], values["plan"])
    return {name: values[name] for name in ("cache", "state")}


def by_heads(made: Prepared) -> Written:
    """The reference of norm, rotation and store on all tokens."""
    values: Any = {name: v.clone() if isinstance(v, torch.Tensor) else v for name, v in made.arguments.items()}
    if made.request.op == "qk_norm":
        q, k = norm_heads(values["q"], None, EPS), norm_heads(values["k"], values["k_weight"], EPS)
        return {"q_out": q.bfloat16(), "k_out": k.bfloat16()}
    table, written = RotaryTable("interleaved", values["cosines"]), {}
    if "q" in values:
        written["q_out"] = query_heads(values["q"], values["positions"], table, eps=EPS).bfloat16()
    if "kv" in values:
        rows = keys(values["kv"], values["positions"], table, eps=EPS, weight=values["kv_weight"]).float()
        quant = quantizer("e4m3fn", source="f32")
        store_rows(values["cache"], values["page_size"], values["slots"], rows, "v4_584", quant)
        written["cache"] = values["cache"]
    return written


def by_logits(made: Prepared) -> Written:
    """The reference of the indexer on all rows."""
    values: Any = dict(made.arguments)
    out = torch.zeros(values["out"].shape)
    named = {name: value for name, value in values.items() if name not in ("cache", "out")}
    run = indexer_logits.decode if made.request.op == "decode" else indexer_logits.prefill
    run(**named, pool=values["cache"], out=out)
    return {"out": out}


def last_row_lost(written: Written) -> None:
    """The last row of the first output holds what the one before does."""
    first = next(iter(written.values()))
    first[-1] = first[-2] if len(first) > 1 else 0


def other_code(written: Written) -> None:
    """The first stored row has one code two binades off."""
    written["cache"][0, 5] ^= 0x40


def state_kept(written: Written) -> None:
    """A new row went nowhere."""
    written["state"][-1] = 0
    written["state"][0] = 0


def unwritten(written: Written) -> None:
    """An element in the middle is as it was poisoned."""
    written["out"][1, 2, 3] = torch.nan


def far_pages(written: Written) -> None:
    """A slot of a page that is not the row's."""
    written["out"][0, 0] = 1 << 20


CASES: list[tuple[str, str, dict[str, int], dict[str, str], Callable[[Prepared], Written], Any]] = [
    ("topk", "select", {"batch": 3, "width": 5000, "k": 512}, {}, by_torch, last_row_lost),
    ("topk", "select", {"batch": 3, "width": 5000, "k": 512}, {"mode": "indices"}, by_torch, last_row_lost),
    ("topk", "select", {"batch": 3, "width": 700, "k": 512, "page_bits": 4}, {"mode": "dual"}, by_torch, far_pages),
    ("gather_dequant", "gather", {"tokens": 3, "width": 7, "page_size": 4, "pages": 9}, {}, by_torch, last_row_lost),
    ("gather_dequant", "gather_dual", {"tokens": 3, "width": 7, "extra_width": 5, **POOLS}, {}, by_torch, unwritten),
    ("sparse_decode", "attend", {"tokens": 3, "heads": 8, "width": 7, "extra_width": 5, **POOLS}, {}, by_attention,
     last_row_lost),
    ("sparse_decode", "attend", {"tokens": 2, "heads": 8, "width": 7, "page_size": 4, "pages": 9}, {"scopes": "one"},
     by_attention, unwritten),
    ("indexer_logits", "decode", {"batch": 3, "width": 70, "heads": 4, "queries": 2, "page_size": 8}, {}, by_logits,
     last_row_lost),
    ("indexer_logits", "prefill", {"batch": 2, "rows": 6, "width": 70, "heads": 4, "page_size": 8}, {}, by_logits,
     last_row_lost),
    ("compress", "decode", {"ratio": 4, "batch": 70, "completing": 9}, {}, by_state_machine, other_code),
    ("compress", "decode", {"ratio": 128, "batch": 3, "completing": 3}, {}, by_state_machine, other_code),
    ("compress", "decode", {"ratio": 4, "batch": 2, "completing": 0}, {}, by_state_machine, state_kept),
    ("compress", "prefill", {"ratio": 4, "tokens": 30}, {}, by_state_machine, other_code),
    ("compress", "prefill", {"ratio": 128, "tokens": 300}, {"state_dtype": "bf16"}, by_state_machine, other_code),
    ("qk_norm_rope", "qk_norm_rope_store", {"tokens": 3, "heads": 5}, {}, by_heads, last_row_lost),
    ("qk_norm_rope", "qk_norm_rope_store", {"tokens": 3, "heads": 5}, {}, by_heads, other_code),
    ("qk_norm_rope", "q_norm_rope", {"tokens": 9, "heads": 1}, {}, by_heads, last_row_lost),
    ("qk_norm_rope", "k_norm_rope_store", {"tokens": 300}, {}, by_heads, other_code),
    ("qk_norm_rope", "qk_norm", {"tokens": 3, "heads": 2}, {}, by_heads, last_row_lost),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[-1].__name__}")
def test_judges(case: tuple[Any, ...]) -> None:
    family, op, shape, options, right, damage = case
    made = prepared(family, op, shape, **options)
    written = right(made)
    judge(made, written)
    damage(written)
    with pytest.raises(VerifyError):
        judge(made, written)


def test_poisoned_outputs_alone_are_refused() -> None:
    for family, op, shape, options, *_ in CASES:
        made = prepared(family, op, shape, **options)
        table = make_table(family, any_entry(family), op, made.request.options)
        if op != "decode" or shape.get("completing"):
            with pytest.raises(VerifyError):
                judge(made, cloned_outputs(table, made.arguments))


def test_sets_differ_and_share_what_does_not_rotate() -> None:
    made = prepared("topk", "select", {"batch": 1, "width": 600, "k": 16})
    first, second = (calls[0].arguments for calls in made.sets[:2])
    assert not torch.equal(first["scores"], second["scores"])
    assert first["page_table"] is second["page_table"]


@pytest.mark.parametrize(
    ("family", "op", "shape", "message"),
    [
        ("topk", "selct", {}, "no inputs to time 'selct'"),
        ("topk", "select", {"batch": 1, "width": 9}, "no value for k"),
        ("topk", "select", {"batch": 1, "width": 9, "k": 1, "pages": 3}, "no size 'pages'"),
        ("compress", "decode", {"ratio": 4, "batch": 1, "completing": 2}, "completing=2 of batch=1"),
    ],
)
def test_shapes_that_fit_no_call(family: str, op: str, shape: dict[str, int], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        prepared(family, op, shape)


def test_the_few_tokens_include_the_ends() -> None:
    assert few_tokens(1) == [0] and few_tokens(2) == [0, 1] and few_tokens(100) == [0, 33, 66, 99]
    assert few_tokens(0) == []
