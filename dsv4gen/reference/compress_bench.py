"""Inputs of compressor steps that are timed: decode steps of many requests, prefill of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from dsv4gen.base.errors import ArgumentError, VerifyError
from dsv4gen.reference import compress_state
from dsv4gen.reference.compress import Geometry, rms_norm, rotate
from dsv4gen.reference.compress_plan import Extend, RequestRing, decode_plan, prefill_plan
from dsv4gen.reference.compress_store import check_stored, page_bytes, quantizer
from dsv4gen.reference.paged_bench import few_tokens, page_of
from dsv4gen.reference.workload import Call, Request, Workload, agree_closely, unknown_op

EPS = 1e-6
HEAD_DIM = 512
#: every request is that long or a little longer, so that windows are full
_LENGTH = 4096
_POSITIONS = 65536
_DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def workload(request: Request) -> Workload:
    """Calls of `decode`, or of `prefill` with the `write` that follows it; source and state rotate, plans do not."""
    if request.options["record"] != "v4_584":
        raise ArgumentError("only rows of record v4_584 are timed", remedy="leave record out")
    if request.op == "decode":
        return _decode(request)
    if request.op == "prefill":
        return _prefill(request)
    raise unknown_op(request, ["decode", "prefill"])


def _decode(request: Request) -> Workload:
    ratio, batch, completing, _ = request.sizes("ratio", "batch", "completing", head_dim=HEAD_DIM)
    if completing > batch:
        raise ArgumentError(f"completing={completing} of batch={batch}", remedy="at most as many as there are requests")
    geometry, device = Geometry(ratio, HEAD_DIM), request.device
    lengths = [_LENGTH + ratio * (number % 64) + (0 if number < completing else 1) for number in range(batch)]
    plan = decode_plan(range(batch), lengths, RequestRing(geometry.window), geometry)
    rows = batch * geometry.window
    shared = {**_layer(request, geometry, batch, batch), "plan": plan.to(device)}
    shared["out_loc"] = torch.arange(batch, device=device)

    def make() -> Sequence[Call]:
        drawn = {"state": _rows(request, "state", rows, geometry), "source": _rows(request, "source", batch, geometry)}
        return [Call("decode", {**shared, **drawn, "plan_ready": True})]

    def judge(before: Any, after: Any) -> None:
        if not torch.equal(after["state"][shared["plan"][:, 1].long()], before["source"].to(after["state"].dtype)):
            raise VerifyError("state: the new rows are not where they belong")
        chosen = [number for number in few_tokens(batch, 8) if lengths[number] % ratio == 0]
        if chosen:
            few = decode_plan(range(len(chosen)), [lengths[n] for n in chosen], RequestRing(geometry.window), geometry)
            state = before["state"].view(batch, geometry.window, -1)[chosen].flatten(0, 1).cpu()
            machine = compress_state.Step(geometry, before["bias"].cpu(), request.options["bias_at"])
            _, pooled = compress_state.pooled_decode(machine, state, before["source"][chosen].cpu(), few)
            _check_rows(request, after, pooled, chosen, [lengths[number] - 1 for number in chosen])

    size = _DTYPES[request.options["state_dtype"]].itemsize
    return Workload(rows * geometry.width * size, make, judge, agree=_agree)


def _prefill(request: Request) -> Workload:
    ratio, tokens, _, _ = request.sizes("ratio", "tokens", completing=0, head_dim=HEAD_DIM)
    geometry, device = Geometry(ratio, HEAD_DIM), request.device
    plans = prefill_plan([Extend(0, 0, tokens)], RequestRing(geometry.window), geometry)
    groups = len(plans.compress)
    shared = {**_layer(request, geometry, tokens // ratio + 1, groups), "plan": plans.compress.to(device)}
    shared["out_loc"] = torch.arange(tokens, device=device) // ratio
    shared["state"] = _rows(request, "state", geometry.window, geometry)
    kept = {name: shared[name] for name in ("state", "bias", "ratio")} | {"plan": plans.write.to(device)}

    def make() -> Sequence[Call]:
        source = _rows(request, "source", tokens, geometry)
        calls = [Call("prefill", {**shared, "source": source, "plan_ready": True})]
        kept_rows = {**kept, "source": source, "after_prefill": True}
        return calls + ([Call("write", kept_rows)] if len(plans.write) else [])

    def judge(before: Any, after: Any) -> None:
        chosen = few_tokens(groups, 8)
        machine = compress_state.Step(geometry, before["bias"].cpu(), request.options["bias_at"])
        state, source = before["state"].cpu(), before["source"].cpu()
        _, pooled = compress_state.pooled_prefill(machine, state, source, plans.compress[chosen])
        _check_rows(request, after, pooled, chosen, (plans.compress[chosen, 0] - 1).tolist())

    size = _DTYPES[request.options["source_dtype"]].itemsize
    return Workload(tokens * geometry.width * size, make, judge, agree=_agree)


def _layer(request: Request, geometry: Geometry, slots: int, groups: int) -> dict[str, Any]:
    """Weights, tables and the cache; room for pooled rows where the spec wants two launches."""
    device, page_size = request.device, 256 // geometry.ratio
    pages = -(-slots // page_size) + 1
    found: dict[str, Any] = {
        "bias": torch.randn(geometry.window, HEAD_DIM, device=device),
        "weight": torch.rand(HEAD_DIM, device=device) + 0.5,
        "cosines": torch.rand(_POSITIONS, 64, device=device),
        "cache": torch.zeros(pages, page_bytes("v4_584", HEAD_DIM, page_size), dtype=torch.uint8, device=device),
        "page_size": page_size,
        "ratio": geometry.ratio,
        "eps": EPS,
    }
    if geometry.ratio == 128 and groups <= request.constants.get("split_rows", 0):
        found["pooled"] = torch.empty(groups, HEAD_DIM, device=device)
    return found


def _rows(request: Request, kind: str, count: int, geometry: Geometry) -> Tensor:
    dtype = _DTYPES[request.options[f"{kind}_dtype"]]
    return torch.randn(count, geometry.width, device=request.device).to(dtype)


def _agree(written: Any, expected: Any) -> None:
    """The state holds the same rows; the cache may differ at rounding ties.

    Raises:
        VerifyError: they differ by more.
    """
    if "state" in written and not torch.equal(written["state"], expected["state"]):
        raise VerifyError("state differs from what the untuned kernel wrote")
    agree_closely(written, expected)


def _check_rows(request: Request, after: Any, pooled: Tensor, slots: Sequence[int], ends: Sequence[int]) -> None:
    """Stored rows of some slots against the reference; their page is made of nothing else.

    Raises:
        VerifyError: a byte differs by more than a rounding tie.
    """
    ratio, options = after["ratio"], request.options
    table = after["cosines"].cpu()[torch.tensor(ends) + 1 - ratio]
    rows = rotate(rms_norm(pooled, after["weight"].cpu(), EPS), table[:, 0::2], table[:, 1::2])
    page = page_of(after["cache"], after["page_size"], slots)
    quant = quantizer(
        options["dialect"], maximum=options["fp8_max"], floor=options["floor"], source=options["quant_source"]
    )
    check_stored(page, page, len(slots), torch.arange(len(slots)), rows, "v4_584", quant, "cache")
