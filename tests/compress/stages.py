"""Checks of single stages: quantiser, stand-alone pooling, pooled input, plans, online partials, split pooling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path

import torch
from torch import Tensor

from dsv4gen.base.errors import VerifyError
from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference import compress, compress_state
from dsv4gen.reference.compress import Geometry
from dsv4gen.reference.compress_case import FOUR, MANY, check_pool
from dsv4gen.reference.compress_cases import few_case
from dsv4gen.reference.compress_edges import edge_cases, fp4_ties, stored_case
from dsv4gen.reference.compress_plan import Extend, PagedRing, RequestRing, Ring, decode_plan, prefill_plan, unpack
from dsv4gen.reference.compress_stage_cases import finish_case
from dsv4gen.reference.compress_store import check_stored
from dsv4gen.reference.compress_v41 import LAYOUTS
from dsv4gen.reference.compress_world import Options, World, finished, make_world

Check = Callable[[InterpreterWorker, Path], None]


def quantizer_bytes(worker: InterpreterWorker, module: Path) -> None:
    """Every bf16 value and hard float32 ones, stored without transformation: bytes equal the reference's."""
    every = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(torch.bfloat16).float()
    hard = torch.randn(16, 512, generator=torch.Generator().manual_seed(1)) * torch.logspace(-9, 6, 16)[:, None]
    hard[3, :64], hard[4, 64:128], hard[5, 128:130] = 0.0, -0.0, torch.tensor([448.0, -1e-9])
    hard[6, 0], hard[7, 70], hard[8, ::3] = torch.inf, torch.nan, -1e-30
    choices = product(("e4m3fnuz", "e4m3fn"), ("writer", "limit"), ("amax_1e4", "scale_1e4"), ("bf16", "f32"))
    for number, (dialect, fp8_max, floor, source) in enumerate(choices):
        # Eight combinations a dialect: together they see every value.
        rows = torch.cat([every.view(-1, 512)[number % 8 :: 8], hard])
        # Stored as bf16, not quantised: which payload a NaN keeps when it is rounded differs by target.
        rows[:, 448:] = rows[:, 448:].nan_to_num(nan=1.5, posinf=torch.inf, neginf=-torch.inf)
        options = Options("pool", "interleaved", "v4_584", dialect, fp8_max, floor, source)
        _store_exactly(worker, module, rows, options)
    rows_of_v41 = torch.cat([every.view(-1, 512)[::16], hard])
    narrow = rows.view(-1, 128)[::3].contiguous()
    _store_exactly(worker, module, narrow, Options(record="idx_fp8_132", floor="amax_1e12"))
    _store_exactly(worker, module, rows[:4], Options(record="bf16"))
    for dialect in ("e4m3fnuz", "e4m3fn"):
        _store_exactly(worker, module, rows, Options(record="uniform_fp8", dialect=dialect))
    for choice in ("even", "zero"):
        options = Options(record="idx_fp4_68", fp4_ties=choice, quant_source="f32")
        _store_exactly(worker, module, torch.cat([fp4_ties(), narrow]), options)
    for record in LAYOUTS:
        _store_exactly(worker, module, rows_of_v41, Options(record=record))
    for case in edge_cases():
        worker.call(module, case.op, **dict(case.arguments))  # type: ignore[arg-type]
        case.check()


def _store_exactly(worker: InterpreterWorker, module: Path, rows: Tensor, options: Options) -> None:
    case = stored_case("rows", rows, options)
    worker.call(module, case.op, **dict(case.arguments))  # type: ignore[arg-type]
    case.check()


def records_of_v41(worker: InterpreterWorker, module: Path) -> None:
    """Whole rows quantised, rounded before the rotation and behind it: every record, by decode and prefill plans."""
    for geometry, decode in ((FOUR, True), (MANY, False)):
        for record in LAYOUTS:
            case = finish_case(geometry, decode=decode, options=Options(record=record))
            worker.call(module, case.op, **dict(case.arguments))  # type: ignore[arg-type]
            case.check()


def pooling(worker: InterpreterWorker, module: Path) -> None:
    """The stand-alone op: masks, garbage in masked rows, -inf, nothing valid, strides (BL-18, BL-19 d)."""
    generator = torch.Generator().manual_seed(3)
    for rows, masked in ((128, True), (9, True), (40, False)):
        values = torch.randn(5, rows, 128, generator=generator)
        scores = torch.randn(5, rows, 128, generator=generator)
        scores[1, :, :7] = -torch.inf
        scores[2, : rows // 2, 3] = -torch.inf
        scores[2, 1, 5] = torch.nan
        valid = torch.ones(5, rows, dtype=torch.bool)
        if masked:
            valid = torch.rand(5, rows, generator=generator) < 0.6
            valid[3], valid[4, : rows // 2] = False, False
            valid[2, 1] = True
            scores[1] *= 1e5
        scores[0, :, 9:12] = -2.0e9
        scores[0][~valid[0]], values[0][~valid[0]] = 50.0, torch.nan
        bias = torch.randn(rows, 128, generator=generator)
        out = torch.full((5, 128), torch.nan)
        strided = torch.full((5, rows + 1, 160), torch.nan)
        strided[:, :rows, :128] = values
        arguments = {"values": strided[:, :rows, :128], "scores": scores, "bias": bias, "out": out}
        worker.call(module, "pool", **arguments, mask=valid if masked else None)
        expected = compress.pool(values, scores + bias, valid)
        check_pool(out, expected, values, f"{rows} rows")


def pooled_input(worker: InterpreterWorker, module: Path) -> None:
    """Gathered windows to rotated rows, three table layouts, both ratios, bf16 and float32 out."""
    for geometry, table in (
        (Geometry(4, 512), "interleaved"),
        (Geometry(128, 512), "split"),
        (Geometry(4, 128), "two"),
    ):
        world = make_world(geometry, options=Options(table=table, record="bf16"), tokens=geometry.window, requests=1)
        windows = torch.randn(3, geometry.window, geometry.width, generator=world.generator)
        positions = torch.tensor([0, 1, 3])
        pooled = []
        for rows in windows:
            halves = [
                compress.split_row(rows[k], compress.window_half(k, geometry), geometry) for k in range(len(rows))
            ]
            value, score = (torch.stack(part) for part in zip(*halves, strict=True))
            pooled.append(compress.pool(value, score + world.bias))
        expected = finished(world, torch.stack(pooled), (positions - 1 + geometry.ratio).tolist())
        tables = {name: tensor[positions].contiguous() for name, tensor in world.tables().items()}
        out = torch.full(expected.shape, torch.nan)
        arguments = {"source": windows, "bias": world.bias, "weight": world.weight, "ratio": geometry.ratio, **tables}
        worker.call(module, "pool_norm_rope", **arguments, out=out, table=table)
        if not bool(((out - expected).abs() <= 1e-5 * expected.abs().amax(-1, keepdim=True)).all()):
            raise VerifyError(f"{geometry}: rotated rows differ by {float((out - expected).abs().max()):.3g}")


def plan_builders(worker: InterpreterWorker, module: Path) -> None:
    """Device plans equal the reference's, row by row: all kinds of extends, padded buckets (B5-B12, B20)."""
    generator = torch.Generator().manual_seed(5)
    # Its rows lie further apart than they are long (B20).
    table = torch.randperm(8 * 1024, generator=generator).view(8, 1024).to(torch.int32)[:, :1008]
    slots = torch.randperm(8 * 1024, generator=generator)
    for ratio, ring in product((4, 128), (1, 2)):
        geometry = Geometry(ratio, 128)
        size = geometry.window * ring
        rings: list[tuple[Ring, dict[str, object]]] = [(RequestRing(size), {})]
        if ratio == 4:
            paged = PagedRing(size, 256, table, slots)
            keywords = {"window_page": 256, "request_to_token": table, "full_to_window": slots}
            rings.append((paged, keywords))
        for chosen, keywords in rings:
            for extends in ([3, 3, 3, 3], [0, 300, 1, 0, 17, 128], [5], [1, 1, 1, 700]):
                _plans_agree(worker, module, geometry, chosen, extends, keywords, generator)


def _plans_agree(
    worker: InterpreterWorker, module: Path, geometry: Geometry, ring: Ring, extends: list[int],
    keywords: dict[str, object], generator: torch.Generator,
) -> None:  # fmt: skip
    prefixes = torch.randint(0, 300, (len(extends),), generator=generator).tolist()
    requests = torch.randperm(8, generator=generator)[: len(extends)]
    steps = [Extend(int(r), p, p + n) for r, p, n in zip(requests, prefixes, extends, strict=True)]
    rows = sum(extends) + 13
    expected = prefill_plan(steps, ring, geometry, padded=rows)
    compress_out = torch.full((rows, 4), 77, dtype=torch.int32)
    write_out = torch.full((rows, 2), 77, dtype=torch.int32)
    seq_lens = torch.tensor([step.seq_len for step in steps], dtype=torch.int32)
    common = {"seq_lens": seq_lens, "requests": requests.to(torch.int32), "ratio": geometry.ratio, "ring": ring.size}
    extend_lens = torch.tensor(extends, dtype=torch.int32)
    worker.call(
        module, "plan_prefill", **common, extend_lens=extend_lens, compress=compress_out, write=write_out, **keywords
    )
    plan = torch.full((len(extends), 4), 77, dtype=torch.int32)
    worker.call(module, "plan_decode", **common, plan=plan, **keywords)
    wanted = decode_plan(requests.tolist(), seq_lens.tolist(), ring, geometry)
    for name, actual, right in (
        ("compress", compress_out, expected.compress), ("write", write_out, expected.write), ("decode", plan, wanted),
    ):  # fmt: skip
        if not torch.equal(actual, right):
            raise VerifyError(f"{name} plan of {extends} on {type(ring).__name__}: {actual.tolist()} {right.tolist()}")


def online_world(tokens: int) -> World:
    """A world whose state is one partial per request, full of garbage."""
    world = make_world(Geometry(128, 512), tokens=tokens, requests=2, seed=9)
    garbage = torch.tensor([3e38, torch.nan, torch.inf])
    world.state = garbage[torch.randint(3, (2, 3 * 512), generator=world.generator)]
    return world


def online_prefill_and_decode(worker: InterpreterWorker, module: Path) -> None:
    """Segments of extends, an empty request among them (B8), decode over a chunk's end, then to the next one's."""
    world = online_world(300)
    for lengths in ((100, 0), (126, 250)):
        before = world.cache.clone()
        ends = _online_step(worker, module, world, lengths)
        _check_online(world, before, ends)
        world.lengths = list(lengths)
    for _ in range(7):
        before = world.cache.clone()
        _check_online(world, before, _online_decode(worker, module, world))
        world.lengths = [length + 1 for length in world.lengths]
    before = world.cache.clone()
    _check_online(world, before, _online_step(worker, module, world, (256, 290)))


def _online_step(
    worker: InterpreterWorker, module: Path, world: World, lengths: tuple[int, ...]
) -> list[tuple[int, int]]:
    """Prefill to these lengths; returns (request, end) of the chunks that it completes."""
    plans: dict[bool, list[list[int]]] = {True: [], False: []}
    rows, out_loc, ends = [], [], []
    for request, (prefix, length) in enumerate(zip(world.lengths, lengths, strict=True)):
        start = prefix
        while start < length:
            stop = min(length, start // 128 * 128 + 128)
            ragged = len(out_loc) + stop - prefix - 1
            plans[stop % 128 == 0].append([stop, ragged | (stop - start) << 16, request, request])
            if stop % 128 == 0:
                ends.append((request, stop - 1))
            start = stop
        rows.append(world.sequences[request][prefix:length])
        out_loc += [world.slot_of(request, position) for position in range(prefix, length)]
    common = {**world.epilogue(), "state": world.state, "source": torch.cat(rows), "bias": world.bias}
    for complete in (True, False):
        plan = torch.tensor([*plans[complete], [-1, -1, -1, -1]], dtype=torch.int32)
        worker.call(module, "online_prefill", **common, plan=plan, out_loc=torch.tensor(out_loc))
    return ends


def _online_decode(worker: InterpreterWorker, module: Path, world: World) -> list[tuple[int, int]]:
    plan, ends, slots = [], [], []
    for request, length in enumerate(world.lengths):
        plan.append([length + 1, request, request, -1])
        slots.append(world.slot_of(request, length))
        if (length + 1) % 128 == 0:
            ends.append((request, length))
    rows = torch.stack([world.sequences[r][length] for r, length in enumerate(world.lengths)])
    common = {**world.epilogue(), "state": world.state, "source": rows, "bias": world.bias}
    plan_tensor = torch.tensor([*plan, [0, 1, 1, 1]], dtype=torch.int32)
    source = torch.cat([rows, torch.full((1, 1024), torch.nan)])
    worker.call(
        module, "online_decode", **{**common, "source": source}, plan=plan_tensor, out_loc=torch.tensor([*slots, 0])
    )
    return ends


def _check_online(world: World, before: Tensor, ends: list[tuple[int, int]]) -> None:
    rows = [world.closed_form(request, [end]) for request, end in ends]
    slots = torch.tensor([world.slot_of(request, end) for request, end in ends], dtype=torch.int64)
    stored = torch.cat(rows) if rows else torch.zeros(0, 512)
    check_stored(world.cache, before, world.page_size, slots, stored, "v4_584", world.options.quantizer(), "online")


def split_pooling(worker: InterpreterWorker, module: Path) -> None:
    """Ratio 128 in one launch and in two, with a buffer for pooled rows: pooled rows, cache and state."""
    geometry = Geometry(128, 512)
    plan = torch.tensor([[128, 127, 0, 0], [255, 254, 1, 1], [0, -1, -1, -1], [256, 511, 3, 3]], dtype=torch.int32)
    prefill = torch.tensor(
        [[128, 3 | 124 << 16, 0, 0], [-1, -1, -1, -1], [256, 2 | 125 << 16, 1, 1]], dtype=torch.int32
    )
    for function, chosen in (("decode", plan), ("prefill", prefill)):
        for split in (False, True):
            world = make_world(geometry, requests=4, tokens=256, seed=8)
            world.state.copy_(torch.randn(world.state.shape, generator=torch.Generator().manual_seed(4)))
            source = torch.randn(4, 1024, generator=torch.Generator().manual_seed(5))
            pooled = torch.full((len(chosen), 512), torch.nan) if split else None
            common = {**world.epilogue(), "state": world.state, "source": source, "bias": world.bias, "plan": chosen}
            before, state = world.cache.clone(), world.state.clone()
            out_loc = torch.tensor([3, 4, -1, 5])
            worker.call(module, function, **common, out_loc=out_loc, ratio=128, pooled=pooled)
            machine = compress_state.Step(geometry, world.bias)
            if function == "decode":
                kept, rows = compress_state.pooled_decode(machine, state, source, chosen)
                compress_state.write_decode(machine, state, source, chosen)
                places = kept
            else:
                kept, rows = compress_state.pooled_prefill(machine, state, source, chosen)
                places = unpack(chosen[kept])[0]
            if pooled is not None:
                check_pool(pooled[kept], rows, state, "pooled")
                if not bool(torch.isnan(pooled[1]).all()):
                    raise VerifyError("pooled: the row of an entry without a group was written")
            check_stored(
                world.cache, before, world.page_size, out_loc[places],
                finished(world, rows, (chosen[kept, 0] - 1).tolist()), "v4_584", world.options.quantizer(), function,
            )  # fmt: skip
            if not torch.equal(world.state, state):
                raise VerifyError(f"{function}: the state differs from what the plan says")


def shared_groups(worker: InterpreterWorker, module: Path) -> None:
    """Groups that all programs pool where few requests complete one: as many as they can take, and one more."""
    for batch, completing in ((51, 12), (51, 13), (52, 13), (49, 3)):
        case = few_case(batch, completing)
        worker.call(module, case.op, **dict(case.arguments))  # type: ignore[arg-type]
        case.check()


def ragged_bounds(worker: InterpreterWorker, module: Path) -> None:
    """Entries whose token lies behind the step's rows or behind out_loc are skipped (B15); so are their writes."""
    world = make_world(Geometry(4, 512), requests=1, tokens=8)
    plan = torch.tensor([[8, 7, 0, 1], [8, 8, 0, 1], [8, 4096, 0, 1], [4, 3, 0, 0]], dtype=torch.int32)
    write = torch.tensor([[8, 0], [65535, 1], [-1, 2], [3, -1], [3, 8], [3, 3]], dtype=torch.int32)
    source = world.sequences[0]
    for known in (8, 6, 12):
        before, state = world.cache.clone(), world.state.clone()
        out_loc = torch.full((known,), 9)
        out_loc[3] = 2
        common = {"state": world.state, "source": source, "bias": world.bias, "ratio": 4}
        worker.call(module, "prefill", **world.epilogue(), **common, plan=plan, out_loc=out_loc)
        ends, slots = ([7, 3], [9, 2]) if known >= 8 else ([3], [2])
        check_stored(
            world.cache, before, world.page_size, torch.tensor(slots), world.closed_form(0, ends), "v4_584",
            world.options.quantizer(), f"{known} locations",
        )  # fmt: skip
        worker.call(module, "write", **common, plan=write)
        state[3] = source[3]
        if not torch.equal(world.state.view(torch.int32), state.view(torch.int32)):
            raise VerifyError("state: rows were written that the plan does not name")


CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        quantizer_bytes,
        records_of_v41,
        pooling,
        pooled_input,
        plan_builders,
        online_prefill_and_decode,
        split_pooling,
        shared_groups,
        ragged_bounds,
    )
}
