"""`load(..., target="reference")` takes the calls of the families' own cases, and leaves what these expect."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
import torch

import dsv4gen
from dsv4gen.base.errors import ArgumentError, ExpressionError, LoadError
from dsv4gen.base.expression_json import evaluate_json
from dsv4gen.runtime import reference_backend
from dsv4gen.runtime.call_table import CallTable
from dsv4gen.runtime.load import any_entry

#: a launcher's own choices, which change no result
OWN = ("splits",)


@pytest.mark.parametrize("family", ["indexer_logits", "sparse_decode"])
def test_it_passes_every_case(family: str) -> None:
    cases = importlib.import_module(f"dsv4gen.reference.{family}_cases")
    ops = set()
    for case in cases.verification_cases(full=True):
        ops.add(case.op)
        loaded = dsv4gen.load(family, target="reference", **case.options)
        loaded.op(case.op)(**arguments(case))
        case.check()
    assert ops == set(dsv4gen.load(family, target="reference").ops)


def test_outputs_are_made_and_a_page_size_is_asked_for() -> None:
    case = next(iter(importlib.import_module("dsv4gen.reference.sparse_decode_cases").verification_cases(full=False)))
    attend = dsv4gen.load("sparse_decode", target="reference", **case.options).op("attend")
    given = {name: value for name, value in arguments(case).items() if name not in ("out", "lse", "queries")}
    out, lse = attend(**given, value_width=512)
    case.out.tensor.copy_(out)
    case.lse.tensor.copy_(lse)
    case.check()
    with pytest.raises(ArgumentError, match="page_size missing"):
        attend(**{name: value for name, value in given.items() if name != "page_size"}, value_width=512)


def test_a_family_without_a_reference_behind_a_call_says_so_when_it_is_loaded() -> None:
    says = (
        r"compress has no reference behind a call; .* families: gather_dequant, .*topk\n.*verify -t sm_90 -f compress"
    )
    with pytest.raises(LoadError, match=says):
        dsv4gen.load("compress", target="reference")


def test_an_op_without_a_reference_says_so_when_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(reference_backend._ADAPTERS, ("sparse_decode", "attend_rows"))
    loaded = dsv4gen.load("sparse_decode", target="reference")
    says = r"sparse_decode\.attend_rows has no reference behind a call; .* ops: attend, merge_lse"
    with pytest.raises(LoadError, match=says):
        loaded.op("attend_rows")()


def arguments(case: Any) -> dict[str, Any]:
    """A case's arguments without options, which `load` takes, and launchers' own choices."""
    return {name: value for name, value in case.arguments.items() if name not in (*case.options, *OWN)}


QK = {
    "heads of 32 dimensions": ({"q": torch.zeros(3, 2, 32, dtype=torch.bfloat16)}, {}),
    "heads of 96 dimensions": ({"q": torch.zeros(3, 2, 96, dtype=torch.bfloat16)}, {}),
    "cosines: shape (8, 32) with table='interleaved'": ({"cosines": torch.zeros(8, 32)}, {}),
    "sines are given with table='split'": ({"sines": torch.zeros(8, 64)}, {"table": "split"}),
    "sines are missing with table='two'": ({"cosines": torch.zeros(8, 32)}, {"table": "two"}),
    "q_weight is given with q_norm='off'": ({"q_weight": torch.zeros(64)}, {"q_norm": "off"}),
}


@pytest.mark.parametrize("says", QK)
def test_heads_and_tables_that_cannot_be_rotated(says: str) -> None:
    changes, options = QK[says]
    heads = torch.zeros(3, 2, 64, dtype=torch.bfloat16)
    call = {"q": heads, "cosines": torch.zeros(8, 64), "positions": torch.arange(3), "eps": 1e-6, **changes}
    with pytest.raises(ArgumentError, match=re.escape(says)):
        dsv4gen.load("qk_norm_rope", target="reference", **options).op("q_norm_rope")(**call)


def test_queries_go_together() -> None:
    store = dsv4gen.load("qk_norm_rope", target="reference").op()
    call = {
        "kv": torch.zeros(2, 512, dtype=torch.bfloat16), "kv_weight": torch.zeros(512), "cosines": torch.zeros(8, 64),
        "positions": torch.arange(2), "slots": torch.arange(2, dtype=torch.int32),
        "cache": torch.zeros(1, 1168, dtype=torch.uint8), "page_size": 2, "q_eps": 0.1, "kv_eps": 0.1,
    }  # fmt: skip
    store(**call)
    heads, parts = torch.zeros(2, 4, 512, dtype=torch.bfloat16), torch.zeros(1, 2, 4, 512)
    for more, says in (
        ({"q": heads}, "q_out is missing"),
        ({"q_out": heads}, "q_out is given"),
        ({"q": heads, "partials": parts, "q_out": heads}, "both given"),
        ({"partials": parts[:0], "q_out": heads}, "no splits"),
        ({"page_size": 3}, "pages of 1168 bytes are too small for 3 records of 584"),
    ):
        with pytest.raises(ArgumentError, match=says):
            store(**{**call, **more})


def test_an_empty_table_rotates_nothing() -> None:
    heads = torch.randn(3, 2, 64).bfloat16()
    rotate = dsv4gen.load("qk_norm_rope", target="reference", q_norm="off").op("q_norm_rope")
    assert torch.equal(rotate(q=heads, cosines=torch.zeros(0, 64), positions=torch.arange(3), eps=0.0), heads)


def test_pages_too_small_for_their_tokens_are_refused() -> None:
    gather = dsv4gen.load("gather_dequant", target="reference").op("gather")
    call = {"cache": torch.zeros(2, 600, dtype=torch.uint8), "indices": torch.zeros(1, 3, dtype=torch.int32)}
    gather(**call, page_size=1, k_offset=0, columns=3)
    with pytest.raises(ArgumentError, match="pages of 600 bytes are too small for 2 records of 584"):
        gather(**call, page_size=2, k_offset=0, columns=3)


def test_a_family_called_by_itself_calls_its_main_op() -> None:
    mains = {family: dsv4gen.load(family, target="gfx950").op().__name__ for family in dsv4gen.families()}
    assert mains == {
        "compress": "decode",
        "gather_dequant": "gather",
        "indexer_logits": "decode",
        "qk_norm_rope": "qk_norm_rope_store",
        "sparse_decode": "attend",
        "topk": "select",
    }


@pytest.mark.parametrize("family", ["topk", "gather_dequant", "indexer_logits", "sparse_decode", "qk_norm_rope"])
def test_a_call_works_or_says_why_not(family: str) -> None:
    """Whatever sizes and options the op's table admits, nothing but an ArgumentError comes out of a call."""
    random, worked = Random(7), 0
    entry = any_entry(family)
    for _ in range(80):
        options = {name: random.choice(o["choices"]) for name, o in entry["options"].items() if random.random() < 0.3}
        for op in dsv4gen.load(family, target="reference", **options).ops.values():
            call = drawn(op.table, entry, random)
            if call is not None:
                try:
                    op(**call)
                    worked += 1
                except ArgumentError:
                    pass
    assert worked


def drawn(table: CallTable, entry: Mapping[str, Any], random: Random) -> dict[str, Any] | None:
    """Arguments with sizes from the table's ranges; None where they would be large or contradict each other."""
    sizes: dict[str, int] = {}
    for axis in table.axes:
        low, high = (_bound(tree, {**table.constants, **sizes}) for tree in (axis.minimum, axis.maximum))
        sizes[axis.name] = min(high, low + random.choice([0, 1, 3, 7, 32, 64, 96, 512]))
    scalars = {name: 0.5 if name in table.floats else 0 for name in table.scalars}
    numbers = (*table.required_numbers, *table.optional_numbers)
    call: dict[str, Any] = {name: {**scalars, **sizes}[name] for name in numbers}
    for page, cache in (("page_size", "cache"), ("extra_page_size", "extra_cache")):
        if page in entry["axes"] and any(rule.name == cache for rule in table.tensors):
            call.setdefault(page, random.choice([1, 2, 64]))
    for rule in (*table.inputs, *table.outputs):
        if not (rule.optional or rule.role == "out") or random.random() < 0.5:
            shape = [_bound(tree, {**table.constants, **sizes}) for tree in rule.shape]
            if min(shape) < 0 or torch.Size(shape).numel() > 1 << 20:
                return None
            dtype = getattr(torch, rule.dtypes[0])
            made = torch.randn(shape) if dtype.is_floating_point else torch.randint(-2, 70, shape)
            call[rule.name] = made.abs().to(dtype) if dtype == torch.uint8 else made.to(dtype)
    return call


def _bound(tree: Any, names: Mapping[str, Any]) -> int:
    try:
        return int(evaluate_json(tree, names))
    except ExpressionError:
        return 0
