"""compress -> indexer logits -> top-k -> sparse decode attention, small, on the CPU, against composed references.

The Triton stages run on the interpreter; top-k is its reference, which the SIMT host build is held to. Each stage is
judged on what the stages before it really wrote, and the last one once more on references alone.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

import dsv4gen
from dsv4gen.base import paths
from dsv4gen.base.errors import VerifyError
from dsv4gen.interpret import InterpreterWorker, shared_worker
from dsv4gen.plan.make import make_plan
from dsv4gen.reference import compress, compress_state, indexer_logits, sparse_decode
from dsv4gen.reference.compare import check_attention, check_lse
from dsv4gen.reference.compress_store import check_stored, quantizer, store_rows
from dsv4gen.reference.indexer_logits_cases import check_logits
from dsv4gen.render.render import render_triton
from dsv4gen.spec import load_specs
from dsv4gen.target import resolve_target
from tests.tools import need_module

TARGET = "gfx950"


def chain() -> ModuleType:
    """The script, which is no module of a package."""
    root = paths.checkout()
    assert root is not None
    spec = importlib.util.spec_from_file_location("chain_example", root / "docs" / "examples" / "chain.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def worker() -> InterpreterWorker:
    need_module("triton")
    return shared_worker()


@lru_cache
def rendered(family: str, folder: Path, *mutations: str) -> Path:
    """A family's module for the target."""
    specs = load_specs(paths.specs())
    plan = make_plan(specs.families[family], resolve_target(specs, TARGET))
    path = folder / f"{family}{'-'.join(mutations)}.py"
    path.write_text(render_triton(plan, frozenset(mutations)).text, encoding="utf-8")
    return path


def run(worker: InterpreterWorker, stage: Any, folder: Path, *mutations: str) -> None:
    """One stage: Triton families interpreted, top-k by its reference."""
    if stage.family == "topk":
        dsv4gen.load("topk", target="reference", **stage.options)(**stage.arguments)
        return
    own: dict[str, Any] = {name: value for name, value in stage.options.items() if name != "scopes"}
    if stage.family == "sparse_decode":
        # Without room passed in, parts would lie in memory that is none of the call's arguments.
        own["splits"] = 1
    changed = mutations if stage.family == "indexer_logits" else ()
    worker.call(rendered(stage.family, folder, *changed), stage.op, **stage.arguments, **own)


def compressed_rows(values: Mapping[str, Any], head: int, before: Tensor) -> Tensor:
    """Finished rows of the groups that the step completes, float64, by the state machine from the state `before`."""
    geometry = compress.Geometry(4, head)
    step = compress_state.Step(geometry, values["bias"])
    kept, pooled = compress_state.pooled_decode(step, before, values["source"], values["plan"])
    assert len(kept) == len(values["plan"])
    angles = values["cosines"][values["plan"][:, 0].long() - 4].view(-1, 32, 2)
    return compress.rotate(compress.rms_norm(pooled, values["weight"], values["eps"]), angles[..., 0], angles[..., 1])


def judge(stage: Any, before: Mapping[str, Tensor]) -> None:
    """What a stage wrote, given what it read.

    Raises:
        VerifyError: the first difference found.
    """
    values = stage.arguments
    if stage.family == "compress":
        head, record = len(values["weight"]), stage.options["record"]
        rows = compressed_rows(values, head, before["state"])
        quant = quantizer("e4m3fn")
        check_stored(
            values["cache"], before["cache"], values["page_size"], values["out_loc"], rows, record, quant, stage.name
        )
    elif stage.family == "indexer_logits":
        expected = torch.full(values["out"].shape, torch.nan, dtype=torch.float64)
        named = {name: value for name, value in values.items() if name not in ("cache", "out")}
        indexer_logits.decode(**named, pool=values["cache"], out=expected)
        seen = ~torch.isnan(expected)
        check_logits(
            values["out"][seen], expected[seen], torch.ones_like(expected[seen], dtype=torch.bool), name=stage.name
        )
    elif stage.family == "sparse_decode":
        out, lse = attention(values, values["extra_cache"], values["extra_indices"])
        check_attention(values["out"], out)
        check_lse(values["lse"], lse)


def attention(values: Mapping[str, Any], cache: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """The reference over the window and the chosen tokens."""
    scopes = [
        sparse_decode.Scope(values["cache"], values["page_size"], values["indices"]),
        sparse_decode.Scope(cache, values["extra_page_size"], chosen),
    ]
    return sparse_decode.attend(values["q"], scopes, scale=values["scale"], sink=values["sink"])


def by_references(stages: list[Any], before: Mapping[str, Mapping[str, Tensor]]) -> tuple[Tensor, Tensor, Tensor]:
    """Selected slots, attention and log-sum-exp of the whole step, by references alone."""
    values = {stage.name: stage.arguments for stage in stages}
    caches = []
    for name, record in (("compress", "v4_584"), ("compress keys", "idx_fp8_132")):
        own = values[name]
        cache = before[name]["cache"].clone()
        rows = compressed_rows(own, len(own["weight"]), before[name]["state"])
        store_rows(cache, own["page_size"], own["out_loc"], rows.float(), record, quantizer("e4m3fn"))
        caches.append(cache)
    logits = {name: value for name, value in values["logits"].items() if name not in ("cache", "out")}
    scores = torch.zeros(values["logits"]["out"].shape)
    indexer_logits.decode(**logits, pool=caches[1], out=scores)
    chosen = torch.empty_like(values["top-k"]["out"])
    select = {**values["top-k"], "scores": scores, "out": chosen}
    dsv4gen.load("topk", target="reference", mode="page_table")(**select)
    return chosen, *attention(values["attention"], caches[0], chosen)


@pytest.mark.parametrize(("tokens", "k"), [(288, 20), (64, 20)], ids=["selects", "takes all"])
def test_chain(worker: InterpreterWorker, tmp_path: Path, tokens: int, k: int) -> None:
    torch.manual_seed(tokens)
    module = chain()
    stages = module.make_stages(module.Sizes(2, tokens, heads=16, k=k, index_heads=16), "cpu")
    before = {stage.name: {name: stage.arguments[name].clone() for name in ("state", "cache")} for stage in stages[:2]}
    for stage in stages:
        if stage.family in ("indexer_logits", "sparse_decode"):
            stage.arguments["out"].fill_(torch.nan)
        run(worker, stage, tmp_path)
        judge(stage, before.get(stage.name, {}))
    module.check(stages)
    chosen, out, lse = by_references(stages, before)
    found = stages[-1].arguments
    assert torch.equal(found["extra_indices"].sort().values, chosen.sort().values)
    check_attention(found["out"], out)
    check_lse(found["lse"], lse)
    if tokens // 4 > k:
        new = stages[0].arguments["out_loc"]
        assert (found["extra_indices"] >= 0).all() and len(new) == 2


@pytest.mark.parametrize("defect", ["relu_dropped", "wrong_head", "scale_skipped"])
def test_a_wrong_indexer_changes_what_attention_sees(worker: InterpreterWorker, tmp_path: Path, defect: str) -> None:
    torch.manual_seed(288)
    module = chain()
    stages = module.make_stages(module.Sizes(2, 288, heads=16, k=20, index_heads=16), "cpu")
    before = {stage.name: {name: stage.arguments[name].clone() for name in ("state", "cache")} for stage in stages[:2]}
    for stage in stages:
        run(worker, stage, tmp_path, defect)
    _, out, _ = by_references(stages, before)
    with pytest.raises(VerifyError):
        check_attention(stages[-1].arguments["out"], out)
