"""Calls of single stages with known results: finished rows, pooling, gathered windows, online partials, plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Generator, Tensor

from dsv4gen.reference import compress, compress_state
from dsv4gen.reference.compare import check_exact
from dsv4gen.reference.compress import Geometry
from dsv4gen.reference.compress_case import (
    MANY,
    Arguments,
    Case,
    Tensors,
    check_pool,
    check_rows,
    filled,
    make_case,
    stored,
)
from dsv4gen.reference.compress_plan import Extend, PagedRing, RequestRing, Ring, decode_plan, prefill_plan
from dsv4gen.reference.compress_world import Options, World, finished, make_world


def finish_case(geometry: Geometry, *, decode: bool, options: Options | None = None) -> Case:
    """Pooled rows to the cache, by decode or prefill plan, entries without a group among them."""
    ratio = geometry.ratio
    world = filled(geometry, options, 4, 3 * ratio + 1)
    seq_lens = torch.tensor([ratio, 2 * ratio, 0 if decode else -1, 3 * ratio], dtype=torch.int32)
    plan = torch.zeros(4, 4, dtype=torch.int32)
    plan[:, 0], plan[:, 1] = seq_lens, torch.tensor([2, 0, -1, 3])
    pooled = torch.randn(4, geometry.head_dim, generator=world.generator) * 3
    # Too small for a code: a zero, whose sign no code of e4m3fnuz has.
    pooled[:, 3::64] = -1e-7
    out_loc = torch.tensor([3, 5, 1, 1 << 40])
    kept = torch.tensor([0, 1, 3])
    slots = out_loc[kept] if decode else out_loc[plan[kept, 1].to(torch.int64)]
    arguments = {**world.epilogue(), "pooled": pooled, "plan": plan, "out_loc": out_loc, "ratio": ratio}
    name = f"ratio {ratio} by {'decode' if decode else 'prefill'} plan"
    judge = stored(world, slots, pooled[kept].double(), (seq_lens[kept] - 1).tolist(), f"{name}: cache")
    return make_case(name, "finish_pooled", {**arguments, "decode": decode}, ("cache",), judge)


def pool_case(rows: int, *, masked: bool, head_dim: int = 128) -> Case:
    """The stand-alone op: garbage in masked rows, scores of -inf and far below zero, nothing valid, NaN."""
    generator = torch.Generator().manual_seed(rows)
    values, scores = (torch.randn(5, rows, head_dim, generator=generator) for _ in range(2))
    valid = torch.ones(5, rows, dtype=torch.bool)
    scores[1, :, :7] = -torch.inf
    scores[2, 1, 5] = torch.nan
    scores[0, :, 9:12] = -2.0e9
    if masked:
        valid = torch.rand(5, rows, generator=generator) < 0.6
        valid[2, 1], valid[3] = True, False
        scores[~valid], values[~valid] = 50.0, torch.nan
    bias = torch.randn(rows, head_dim, generator=generator)
    expected = compress.pool(values, scores + bias, valid)
    arguments = {"values": values, "scores": scores, "bias": bias, "out": torch.full((5, head_dim), torch.nan)}
    name = f"{rows} rows{' under a mask' if masked else ''}"

    def judge(outputs: Tensors) -> None:
        check_pool(outputs["out"], expected, values, name)

    return make_case(name, "pool", {**arguments, "mask": valid if masked else None}, ("out",), judge)


def gathered_case(geometry: Geometry, table: str) -> Case:
    """Gathered windows to rotated rows."""
    world = make_world(geometry, options=Options(table=table, record="bf16"), tokens=geometry.window, requests=1)
    windows = torch.randn(3, geometry.window, geometry.width, generator=world.generator)
    positions = torch.tensor([0, 1, 3])
    pooled = torch.stack([_pooled_window(rows, world.bias, geometry) for rows in windows])
    expected = finished(world, pooled, (positions - 1 + geometry.ratio).tolist())
    tables = {name: tensor[positions].contiguous() for name, tensor in world.tables().items()}
    arguments = {"source": windows, "bias": world.bias, "weight": world.weight, "ratio": geometry.ratio, **tables}
    name = f"ratio {geometry.ratio} table {table}"

    def judge(outputs: Tensors) -> None:
        check_rows(outputs["out"], expected, name)

    out = torch.full(expected.shape, torch.nan)
    return make_case(name, "pool_norm_rope", {**arguments, "out": out, "table": table}, ("out",), judge)


def _pooled_window(rows: Tensor, bias: Tensor, geometry: Geometry) -> Tensor:
    halves = [compress.split_row(row, compress.window_half(k, geometry), geometry) for k, row in enumerate(rows)]
    values, scores = (torch.stack(part) for part in zip(*halves, strict=True))
    return compress.pool(values, scores + bias)


def online_case(op: str, segments: Sequence[tuple[int, int]]) -> Case:
    """(seq_len, length) per request: each segment starts, continues or ends its chunk; an invalid entry is last.

    Every entry names its request's row to read, also where the chunk starts and the row is another chunk's.
    """
    world, name = _online_world(len(segments)), f"segments {list(segments)}"
    machine = compress_state.Step(MANY, world.bias)
    source = torch.randn(sum(length for _, length in segments) + 1, MANY.width, generator=world.generator)
    plan, ended, kept, last = [], [], {}, -1
    for request, (seq_len, length) in enumerate(segments):
        last += length
        places = [request, request, -1] if op == "online_decode" else [last | length << 16, request, request]
        plan.append([seq_len, *places])
        partial = compress_state.online_segment(machine, world.state, source, seq_len, last, length, request)
        if seq_len % 128:
            kept[request] = torch.stack([partial.largest, partial.total, partial.mean])
        else:
            ended.append((last, seq_len - 1, partial.mean))
    plan.append([0 if op == "online_decode" else -1] * 4)
    out_loc = torch.arange(len(source)) % world.slots
    rows, ends = torch.stack([row for *_, row in ended]), [end for _, end, _ in ended]
    slots = out_loc[[place for place, *_ in ended]]
    judge_cache = stored(world, slots, rows, ends, f"{name}: cache")
    before = world.state.clone()

    def judge(outputs: Tensors) -> None:
        judge_cache(outputs)
        for request, state in enumerate(outputs["state"]):
            if request in kept:
                check_rows(state.view(3, -1), kept[request], f"{name}: partial of request {request}")
            else:
                check_exact(state, before[request], name=f"{name}: partial of request {request}")

    arguments = {**world.epilogue(), "state": world.state, "source": source, "bias": world.bias, "out_loc": out_loc}
    arguments["plan"] = torch.tensor(plan, dtype=torch.int32)
    return make_case(name, op, arguments, ("cache", "state"), judge)


def _online_world(requests: int) -> World:
    """One partial per request: maximum and mean anything, the sum positive."""
    world = make_world(MANY, requests=requests, tokens=400, page_size=3)
    largest, total, mean = torch.randn(3, requests, MANY.head_dim, generator=world.generator)
    world.state = torch.cat([largest, 1 + total.abs(), mean], 1)
    return world


def plan_cases(ratio: int, extends: Sequence[int], *, paged: bool, windows: int = 1) -> Iterator[Case]:
    """Decode and prefill plans of a step that adds these tokens, padded, for a ring of this many windows."""
    generator = torch.Generator().manual_seed(0)
    geometry = Geometry(ratio, 128)
    size = windows * geometry.window
    ring, keywords = _ring(size, generator) if paged else (RequestRing(size), {})
    prefixes = torch.randint(0, 300, (len(extends),), generator=generator).tolist()
    requests = torch.randperm(8, generator=generator)[: len(extends)].to(torch.int32)
    steps = [Extend(int(r), p, p + n) for r, p, n in zip(requests, prefixes, extends, strict=True)]
    seq_lens = torch.tensor([step.seq_len for step in steps], dtype=torch.int32)
    common: Arguments = {"seq_lens": seq_lens, "requests": requests, "ratio": ratio, "ring": ring.size, **keywords}
    name = f"ratio {ratio}{' paged' if paged else ''} extends {list(extends)}"
    decode = {"plan": decode_plan(requests.tolist(), seq_lens.tolist(), ring, geometry)}
    yield exact_case(name, "plan_decode", common, decode)
    plans = prefill_plan(steps, ring, geometry, padded=sum(extends) + 13)
    common = {**common, "extend_lens": torch.tensor(extends, dtype=torch.int32)}
    yield exact_case(name, "plan_prefill", common, {"compress": plans.compress, "write": plans.write})


def exact_case(name: str, op: str, arguments: Arguments, expected: Tensors) -> Case:
    def judge(outputs: Tensors) -> None:
        for output, right in expected.items():
            check_exact(outputs[output], right, name=f"{op} {name}: {output}")

    outputs = {output: torch.full_like(right, 77) for output, right in expected.items()}
    return make_case(name, op, {**arguments, **outputs}, tuple(outputs), judge)


def _ring(size: int, generator: Generator) -> tuple[Ring, Arguments]:
    """A ring per sliding-window page of 256 tokens; rows of the table lie further apart than they are long."""
    table = torch.randperm(8 * 1024, generator=generator).view(8, 1024).to(torch.int32)[:, :1008]
    slots = torch.randperm(8 * 1024, generator=generator)
    keywords: Arguments = {"window_page": 256, "request_to_token": table, "full_to_window": slots}
    return PagedRing(size, 256, table, slots), keywords
