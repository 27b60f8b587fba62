"""The plans and rings of the reference against the closed form: exact, in float64."""

from __future__ import annotations

import pytest
import torch

from dsv4gen.base.errors import ArgumentError
from dsv4gen.reference import compress, compress_state
from dsv4gen.reference.compress import Geometry
from dsv4gen.reference.compress_plan import (
    Extend,
    RequestRing,
    check_ring,
    prefill_plan,
    rollback_rows,
    unpack,
)
from dsv4gen.reference.compress_world import (
    Options,
    World,
    accept,
    decode_arguments,
    largest_drafts,
    make_world,
    prefill_arguments,
    schedule,
    source_rows,
)

EXACT = Options(record="bf16", source_dtype=torch.float64, state_dtype=torch.float64)


def drive(world: World, *, steps: int, seed: int, drafts: int = 0, decode: bool = True) -> tuple[float, int]:
    """Largest difference from the closed form over a schedule, and how many groups were compared."""
    step_of = compress_state.Step(world.geometry, world.bias, world.options.bias_at)
    worst, groups = 0.0, 0
    for step in schedule(world, steps=steps, seed=seed, drafts=drafts):
        rows = source_rows(world, step)
        if step.decode and decode:
            plan = decode_arguments(world, step)["plan"]
            rows = torch.stack([world.sequences[e.request][max(e.seq_len - 1, 0)] for e in step.extends])
            _, pooled = compress_state.pooled_decode(step_of, world.state, rows, plan)
            compress_state.write_decode(step_of, world.state, rows, plan)
        else:
            plans = prefill_arguments(world, step)[1]
            _, pooled = compress_state.pooled_prefill(step_of, world.state, rows, plans.compress)
            compress_state.write_rows(step_of, world.state, rows, plans.write)
        expected = [
            compress.compressed_rows(
                world.sequences[e.request],
                compress.group_ends(e.prefix, e.seq_len, world.geometry.ratio),
                world.bias,
                world.geometry,
            )
            for e in step.extends
        ]
        wanted = torch.cat(expected)
        assert wanted.shape == pooled.shape
        if len(wanted):
            worst = max(worst, float((wanted - pooled).abs().nan_to_num(nan=torch.inf).max()))
        groups += len(wanted)
        accept(world, step)
    return worst, groups


def exact_world(ratio: int, **keywords: int | None) -> World:
    world = make_world(Geometry(ratio, 128), options=EXACT, **keywords)  # type: ignore[arg-type]
    world.sequences = [sequence.double() for sequence in world.sequences]
    return world


@pytest.mark.parametrize(
    ("ratio", "ring", "window_page", "tokens"),
    [
        (4, 8, None, 80),
        (4, 16, None, 80),
        (4, 8, 32, 64),
        (4, 16, 32, 64),
        (128, 128, None, 400),
        (128, 256, None, 400),
    ],
)
def test_state_machine_equals_the_closed_form(ratio: int, ring: int, window_page: int | None, tokens: int) -> None:
    for seed in range(2):
        world = exact_world(ratio, ring_size=ring, window_page=window_page, tokens=tokens, seed=seed)
        worst, groups = drive(world, steps=12, seed=seed, drafts=largest_drafts(world))
        assert worst == 0
        assert groups > 3


def test_bias_in_the_state_gives_the_same_up_to_rounding() -> None:
    world = exact_world(4, tokens=120)
    world.options = Options(record="bf16", source_dtype=torch.float64, state_dtype=torch.float64, bias_at="save")
    worst, groups = drive(world, steps=14, seed=4)
    assert worst < 1e-12 and groups > 5


def test_b5_one_draft_more_than_the_ring_takes_goes_wrong() -> None:
    world = exact_world(4, ring_size=16, tokens=200, seed=1)
    assert largest_drafts(world) == 10
    worst, _ = drive(world, steps=25, seed=1, drafts=14)
    assert worst > 1e-2


@pytest.mark.parametrize(("ratio", "ring", "most"), [(4, 8, 0), (4, 16, 10), (128, 128, 0), (128, 256, 130)])
def test_ring_bounds_are_checked_at_configuration_time(ratio: int, ring: int, most: int) -> None:
    geometry = Geometry(ratio, 512)
    assert rollback_rows(ring, geometry) == most
    check_ring(ring, geometry, drafts=most, page=256)
    with pytest.raises(ArgumentError, match="overwrite rows that a rollback needs"):
        check_ring(ring, geometry, drafts=most + 1)
    with pytest.raises(ArgumentError, match="cannot hold a window"):
        check_ring(ratio, geometry) if ratio == 4 else check_ring(64, geometry)
    with pytest.raises(ArgumentError, match="not a multiple of the ring"):
        check_ring(ring, geometry, page=ring + 4)


def test_pool_rules() -> None:
    inf, nan = torch.inf, torch.nan
    values = torch.tensor([[1.0, 1, 1, 1], [3, 3, 3, 3]])
    scores = torch.tensor([[-inf, 0, -inf, nan], [0, 0, -inf, 0]])
    pooled = compress.pool(values, scores)
    assert pooled[:3].tolist() == [3.0, 2.0, 0.0] and bool(torch.isnan(pooled[3]))
    poison = torch.tensor([[nan, inf, nan, nan], [3, 3, 3, 3]])
    masked = compress.pool(poison, torch.full((2, 4), 50.0), torch.tensor([False, True]))
    assert masked.tolist() == [3.0] * 4


def test_bl18_published_weights() -> None:
    scores = torch.cat([torch.full((16, 1), 0.0), torch.arange(16.0)[:, None]])
    valid = torch.arange(32) >= 16
    pooled = compress.pool(torch.cat([torch.zeros(16), torch.arange(16.0)])[:, None], scores, valid)
    assert abs(float(pooled) - 14.418025) < 1e-6


def test_checkpoint_bias_layout() -> None:
    geometry = Geometry(4, 128)
    checkpoint = torch.arange(4 * 256.0).view(4, 256)
    bias = compress.kernel_bias(checkpoint, geometry)
    for j in range(4):
        assert torch.equal(bias[j], checkpoint[j, :128]) and torch.equal(bias[4 + j], checkpoint[j, 128:])
    single = torch.arange(128 * 128.0).view(128, 128)
    assert torch.equal(compress.kernel_bias(single, Geometry(128, 128)), single)


def test_hadamard_is_its_own_inverse_and_has_sylvester_signs() -> None:
    rows = torch.randn(3, 128, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(compress.hadamard(compress.hadamard(rows)), rows)
    third = compress.hadamard(torch.eye(128)[3:4])[0] * 128**0.5
    signs = [(-1.0) ** bin(3 & index).count("1") for index in range(128)]
    assert torch.allclose(third, torch.tensor(signs, dtype=torch.float64))


def test_plans_are_dense_ordered_and_padded_with_invalid() -> None:
    geometry = Geometry(4, 128)
    extends = [Extend(0, 3, 9), Extend(1, 0, 0), Extend(2, 0, 5)]
    plans = prefill_plan(extends, RequestRing(8), geometry, padded=20)
    ragged, buffered = unpack(plans.compress)
    assert plans.compress[:3, 0].tolist() == [4, 8, 4] and ragged[:3].tolist() == [0, 4, 9]
    assert buffered[:3].tolist() == [7, 3, 4]
    assert bool((plans.compress[3:] == -1).all()) and bool((plans.write[11:] == -1).all())
    with pytest.raises(ArgumentError, match="at most 65536 tokens"):
        prefill_plan([Extend(0, 0, 65537)], RequestRing(8), geometry)
