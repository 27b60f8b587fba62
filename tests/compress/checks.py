"""Checks of a compress module; each raises on the first difference. The tests pass a shipped module, the mutation
tests one with a planted defect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from dsv4gen.base.errors import VerifyError
from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference import compress, compress_state
from dsv4gen.reference.compress import Geometry
from dsv4gen.reference.compress_plan import Extend
from dsv4gen.reference.compress_store import check_stored
from dsv4gen.reference.compress_world import (
    Options,
    Step,
    World,
    accept,
    check_step,
    decode_arguments,
    finished,
    largest_drafts,
    make_world,
    prefill_arguments,
    schedule,
    write_arguments,
)
from tests.compress.stages import CHECKS as STAGES

Check = Callable[[InterpreterWorker, Path], None]
Arguments = dict[str, Any]
FOUR, INDEXER, MANY = Geometry(4, 512), Geometry(4, 128), Geometry(128, 512)


def drive(
    worker: InterpreterWorker, module: Path, world: World, *, steps: int, seed: int, drafts: int = 0, padding: int = 0
) -> int:
    """Run a schedule; the cache is compared after every launch. Returns how many groups were stored."""
    groups = 0
    for number, step in enumerate(schedule(world, steps=steps, seed=seed, drafts=drafts)):
        before = world.cache.clone()
        run_step(worker, module, world, step, padding)
        check_step(world, step, before, f"seed {seed} step {number}")
        groups += sum(len(compress.group_ends(e.prefix, e.seq_len, world.geometry.ratio)) for e in step.extends)
        accept(world, step)
    return groups


def run_step(worker: InterpreterWorker, module: Path, world: World, step: Step, padding: int = 0) -> None:
    """One launch for a decode step, two for a prefill; `padding` invalid entries end the plans."""
    if step.decode:
        worker.call(module, "decode", **decode_arguments(world, step))
        return
    tokens = sum(entry.seq_len - entry.prefix for entry in step.extends)
    arguments, plans = prefill_arguments(world, step, padded=tokens + padding if padding else None)
    worker.call(module, "prefill", **arguments)
    worker.call(module, "write", **write_arguments(world, arguments["source"], plans.write))  # type: ignore[arg-type]


def schedules_four(worker: InterpreterWorker, module: Path) -> None:
    """Ratio 4 over random schedules, verify with rollback at the ring's capacity included (B5)."""
    assert drive(worker, module, make_world(FOUR, tokens=48), steps=6, seed=1, padding=3) > 4
    world = make_world(FOUR, ring_size=16, tokens=64, seed=2)
    assert drive(worker, module, world, steps=5, seed=5, drafts=largest_drafts(world)) > 4


def schedules_paged(worker: InterpreterWorker, module: Path) -> None:
    """Ratio 4, heads of 128 with the Hadamard transform, on a ring per sliding-window page."""
    options = Options(record="idx_fp8_132", hadamard=True)
    world = make_world(INDEXER, options=options, ring_size=16, window_page=32, tokens=64, seed=3)
    assert drive(worker, module, world, steps=6, seed=4, drafts=largest_drafts(world)) > 4


def schedules_many(worker: InterpreterWorker, module: Path) -> None:
    """Ratio 128 over chunks that end anywhere, then decode steps over a boundary."""
    for ring, drafts in ((128, 0), (256, 60)):
        world = make_world(MANY, ring_size=ring, tokens=300, requests=2, seed=ring)
        for lengths in ((5, 130), (254, 252)):
            step = Step(tuple(Extend(b, world.lengths[b], n) for b, n in enumerate(lengths)), (), False)
            step = replace(step, kept=tuple(e.seq_len - e.prefix for e in step.extends))
            before = world.cache.clone()
            run_step(worker, module, world, step, padding=2)
            check_step(world, step, before, "prefill")
            accept(world, step)
        for _ in range(4):
            step = Step(tuple(Extend(b, n, n + 1) for b, n in enumerate(world.lengths)), (1, 1), True)
            before = world.cache.clone()
            run_step(worker, module, world, step)
            check_step(world, step, before, "decode")
            accept(world, step)
        if drafts:
            drive(worker, module, world, steps=2, seed=3, drafts=drafts)


def decode_steps(
    worker: InterpreterWorker, module: Path, world: World, lengths: list[int], *, edit: Callable[[Arguments], None]
) -> None:
    """One decode step at these lengths on a random state; `edit` spoils the arguments of both sides."""
    geometry = world.geometry
    world.state.copy_(torch.randn(world.state.shape, generator=world.generator))
    step = Step(tuple(Extend(b, n - 1, n) for b, n in enumerate(lengths)), (1,) * len(lengths), True)
    arguments = decode_arguments(world, step)
    edit(arguments)
    state, before = world.state.clone(), world.cache.clone()
    machine = compress_state.Step(geometry, world.bias, world.options.bias_at)
    rows, pooled = compress_state.pooled_decode(machine, state, arguments["source"], arguments["plan"])
    compress_state.write_decode(machine, state, arguments["source"], arguments["plan"])
    worker.call(module, "decode", **arguments)
    ends = (arguments["plan"][rows, 0] - 1).tolist()
    slots = arguments["out_loc"][rows]
    if world.options.slot_zero == "reserved":
        slots = torch.where(slots == 0, -1, slots)
    check_stored(
        world.cache, before, world.page_size, slots, finished(world, pooled, ends), world.options.record,
        world.options.quantizer(), "cache",
    )  # fmt: skip
    if not torch.equal(world.state, state):
        raise VerifyError("state: rows differ from what the plan says")


def invalid_decode(worker: InterpreterWorker, module: Path) -> None:
    """-1 and garbage in every index, padding rows of length 0, slots before and behind the cache (BL-22, B2, B4)."""

    def edit(arguments: Arguments) -> None:
        plan = arguments["plan"]
        plan[0] = torch.tensor([0, 3, 0, 0])
        plan[1, 1] = -1
        plan[2, 2] = -1
        plan[3, 2:] = torch.tensor([2143289344, 1 << 20])
        plan[4, 1] = 2147483647
        arguments["out_loc"] = torch.tensor([0, 5, 0, 7, -1, 1 << 40, -(1 << 63)])

    for geometry in (FOUR, MANY):
        r = geometry.ratio
        world = make_world(geometry, requests=7, tokens=3 * r + 1, page_size=5)
        decode_steps(worker, module, world, [r, r, 2 * r, 2 * r, r, 3 * r, r - 1], edit=edit)


def first_group(worker: InterpreterWorker, module: Path) -> None:
    """The first group has no previous one; rows before position 0 are masked whatever the page holds (BL-18)."""
    world = make_world(FOUR, requests=3, tokens=12)
    decode_steps(worker, module, world, [4, 8, 5], edit=lambda _: None)


def infinite_scores(worker: InterpreterWorker, module: Path) -> None:
    """Scores of -inf: the first rows, one aligned group of 8, all rows, all but the input's (B1, B3, B16)."""
    for geometry in (FOUR, MANY):
        world = make_world(geometry, requests=1, tokens=2 * geometry.ratio)
        length = 2 * geometry.ratio
        spans = [(0, 3), (0, geometry.window), (0, geometry.window - 1), (geometry.window // 2, geometry.window)]
        if geometry is MANY:
            spans += [(start, start + 8) for start in (0, 64, 120)]
        sequence = world.sequences[0]
        for dim, (low, high) in enumerate(spans):
            for k in range(low, high):
                half = compress.window_half(k, geometry)
                column = (geometry.halves + half) * 512 + 7 * dim
                sequence[length - geometry.window + k, column : column + 5] = -torch.inf
        everything = Step((Extend(0, 0, length),), (length,), False)
        before = world.cache.clone()
        run_step(worker, module, world, everything)
        check_step(world, everything, before, "scores of -inf in prefill")
        last = Step((Extend(0, length - 1, length),), (1,), True)
        fresh = make_world(geometry, requests=1, tokens=length)
        fresh.sequences, fresh.bias, fresh.weight = world.sequences, world.bias, world.weight
        fresh.angles = world.angles
        chunk = Step((Extend(0, 0, length - 1),), (length - 1,), False)
        run_step(worker, module, fresh, chunk)
        before = fresh.cache.clone()
        run_step(worker, module, fresh, last)
        check_step(fresh, last, before, "scores of -inf in decode")


def nan_scores(worker: InterpreterWorker, module: Path) -> None:
    """A NaN score spoils its row, visibly, and no other row; all-masked rows are zeros, not NaN."""
    world = make_world(FOUR, requests=2, tokens=8)
    world.sequences[0][5, 3 * 512 + 9] = torch.nan
    world.sequences[1][:, 2 * 512 :] = -torch.inf
    step = Step((Extend(0, 0, 8), Extend(1, 0, 8)), (8, 8), False)
    before = world.cache.clone()
    run_step(worker, module, world, step)
    check_step(world, step, before, "NaN score")


def option_choices(worker: InterpreterWorker, module: Path) -> None:
    """Every choice of every option once, in decode steps."""
    half = {"source_dtype": torch.bfloat16, "state_dtype": torch.bfloat16}
    for options in (
        Options(table="split", dialect="e4m3fnuz", quant_source="f32"),
        Options(table="two", bias_at="save", floor="amax_1e8"),
        Options(record="bf16", slot_zero="reserved", state_dtype=torch.bfloat16),
        Options(dialect="e4m3fnuz", fp8_max="limit", floor="scale_1e4", **half),  # type: ignore[arg-type]
    ):
        for geometry in (FOUR, MANY):
            r = geometry.ratio
            world = make_world(geometry, options=options, requests=3, tokens=3 * r)
            decode_steps(worker, module, world, [r, 2 * r, 2 * r - 1], edit=_slot_zero_first)


def _slot_zero_first(arguments: Arguments) -> None:
    arguments["out_loc"][0] = 0


def options_in_prefill(worker: InterpreterWorker, module: Path) -> None:
    """State rows with their bias, and bf16 input beside a float32 state, in prefill."""
    for options in (Options(bias_at="save"), Options(source_dtype=torch.bfloat16)):
        world = make_world(FOUR, options=options, tokens=32)
        assert drive(worker, module, world, steps=5, seed=7) > 3


def strided_input(worker: InterpreterWorker, module: Path) -> None:
    """Rows of input and state that lie apart (B20's kin): only the rows' own elements are touched."""
    world = make_world(FOUR, tokens=24)
    rows, width = world.state.shape
    padded = torch.full((rows, width + 48), 7.0)
    padded[:, :width] = world.state
    world.state = padded[:, :width]
    for step in schedule(world, steps=4, seed=2):
        before = world.cache.clone()
        if step.decode:
            arguments = decode_arguments(world, step)
        else:
            arguments, plans = prefill_arguments(world, step)
        source = arguments["source"]
        home = torch.full((source.shape[0], width + 16), torch.nan)  # type: ignore[attr-defined]
        home[:, :width] = source  # type: ignore[assignment]
        arguments["source"] = home[:, :width]
        worker.call(module, "decode" if step.decode else "prefill", **arguments)
        if not step.decode:
            worker.call(module, "write", **write_arguments(world, home[:, :width], plans.write))
        check_step(world, step, before, "strided")
        accept(world, step)
    if not bool((padded[:, width:] == 7.0).all()):
        raise VerifyError("state: gaps between rows were written")


def far_rows(worker: InterpreterWorker, module: Path) -> None:
    """BL-21, B-rule 6: state rows behind 2^31 elements and a cache page behind 2^31 bytes."""
    world = make_world(MANY, requests=2, tokens=256, page_size=2)
    far_page = 16384 + 3
    room = 1 << 31
    floats = worker.allocate(4 * (room * 2 + (far_page + 1) * 128 * 1024)).view(torch.float32)
    world.state = floats.as_strided(((far_page + 1) * 128, 1024), (1024, 1), 2 * room)
    stride = world.cache.shape[1]
    pages = (1 << 31) // stride + 3
    cache = worker.allocate((1 << 32) + pages * stride).as_strided((pages, stride), (stride, 1), 1 << 32)
    rows = torch.randn(127, 1024, generator=world.generator)
    world.state[far_page * 128 : far_page * 128 + 127] = rows
    fresh = torch.randn(1, 1024, generator=world.generator)
    slot = (pages - 1) * 2 + 1
    plan = torch.tensor([[128, far_page * 128 + 127, far_page, far_page]], dtype=torch.int32)
    arguments = {
        **world.epilogue(), "state": world.state, "source": fresh, "plan": plan, "bias": world.bias,
        "out_loc": torch.tensor([slot]), "ratio": 128, "cache": cache,
    }  # fmt: skip
    worker.call(module, "decode", **arguments)
    near = cache[pages - 1 :].clone()
    pooled = compress.compressed_rows(torch.cat([rows, fresh]), [127], world.bias, MANY)
    check_stored(
        near, torch.zeros_like(near), 2, torch.tensor([1]), finished(world, pooled, [127]), "v4_584",
        world.options.quantizer(), "far slot",
    )  # fmt: skip
    if not torch.equal(world.state[far_page * 128 + 127], fresh[0]):
        raise VerifyError("state: the far row was not written")


CHECKS: Mapping[str, Check] = {
    **{
        check.__name__: check
        for check in (
            schedules_four,
            schedules_paged,
            schedules_many,
            invalid_decode,
            first_group,
            infinite_scores,
            nan_scores,
            option_choices,
            options_in_prefill,
            strided_input,
            far_rows,
        )
    },
    **STAGES,
}
