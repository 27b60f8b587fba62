"""v1 plans do the same work as ours: over random schedules, on every ring, down to the last bit of the state."""

from __future__ import annotations

import pytest
import torch

from dsv4gen.reference import compress, compress_state
from dsv4gen.reference.compress import Geometry
from dsv4gen.reference.compress_plan import Extend, decode_plan
from dsv4gen.reference.compress_v1 import decode_from_v1, from_v1
from dsv4gen.reference.compress_world import Options, Step, World, accept, make_world, schedule, source_rows
from tests.compress.v1 import v1_decode, v1_plan

EXACT = Options(record="bf16", source_dtype=torch.float64, state_dtype=torch.float64)
#: ratio, sliding-window page, with extra_data
RINGS = [(4, None, True), (4, 32, True), (4, None, False), (128, None, True), (128, None, False)]


@pytest.mark.parametrize(("ratio", "window_page", "extra"), RINGS)
def test_schedules_give_the_closed_form(ratio: int, window_page: int | None, extra: bool) -> None:
    """Chunks and decode steps through adapted plans alone, state full of garbage at the start."""
    stored = 0
    for seed in range(3):
        world = _world(ratio, window_page, seed)
        for step in schedule(world, steps=16, seed=seed):
            pooled, places = _run(world, step, extra=extra)
            expected = [_closed_form(world, entry) for entry in step.extends]
            assert torch.equal(pooled, torch.cat(expected)), (seed, step)
            assert places == len(pooled)
            stored += places
            accept(world, step)
    assert stored > (60 if ratio == 4 else 8)


def _world(ratio: int, window_page: int | None, seed: int) -> World:
    world = make_world(
        Geometry(ratio, 128), options=EXACT, window_page=window_page, tokens=120 if ratio == 4 else 700, seed=seed
    )
    world.sequences = [sequence.double() for sequence in world.sequences]
    return world


def _run(world: World, step: Step, *, extra: bool) -> tuple[torch.Tensor, int]:
    """Pooled rows of one step by adapted plans, and how many groups these name; the state advances."""
    machine, geometry = compress_state.Step(world.geometry, world.bias), world.geometry
    if not step.decode:
        plan = from_v1(v1_plan(step.extends, world.ring, geometry, extra=extra, unused=3), geometry)
        rows = source_rows(world, step)
        _, pooled = compress_state.pooled_prefill(machine, world.state, rows, plan.compress)
        compress_state.write_rows(machine, world.state, rows, plan.write)
        return pooled, int((plan.compress[:, 0] > 0).sum())
    requests = [entry.request for entry in step.extends]
    lengths = [entry.seq_len if entry.seq_len > entry.prefix else 0 for entry in step.extends]
    pages, before = v1_decode(requests, lengths, world.ring, geometry.ratio)
    pages = pages if extra else torch.tensor(requests, dtype=torch.int32)
    structs = decode_from_v1(torch.tensor(lengths), pages, before[:, None] if extra else None, geometry)
    rows = torch.stack([world.sequences[e.request][max(e.seq_len - 1, 0)] for e in step.extends])
    kept, pooled = compress_state.pooled_decode(machine, world.state, rows, structs)
    compress_state.write_decode(machine, world.state, rows, structs)
    return pooled, len(kept)


def _closed_form(world: World, entry: Extend) -> torch.Tensor:
    ends = compress.group_ends(entry.prefix, entry.seq_len, world.geometry.ratio)
    return compress.compressed_rows(world.sequences[entry.request], ends, world.bias, world.geometry)


def test_decode_structs_are_ours() -> None:
    """But for the previous page of a first group, which is masked."""
    for window_page in (None, 32):
        world = _world(4, window_page, 0)
        lengths, geometry = [8, 13, 4], world.geometry
        pages, before = v1_decode(range(3), lengths, world.ring, 4)
        adapted = decode_from_v1(torch.tensor(lengths), pages, before[:, None], geometry)
        ours = decode_plan(range(3), lengths, world.ring, geometry)
        assert torch.equal(adapted[:2], ours[:2]) and torch.equal(adapted[2, [0, 1, 3]], ours[2, [0, 1, 3]])


def test_no_tokens_or_no_page_is_padding() -> None:
    lengths, pages = torch.tensor([8, 0, -5, 8]), torch.tensor([-1, 3, 3, 3])
    before = torch.tensor([2, 2, 2, -1])
    adapted = decode_from_v1(lengths, pages, before[:, None], Geometry(4, 128))
    assert adapted.tolist() == [[0, -1, -1, -1]] * 3 + [[8, 15, -1, 3]]
