"""Plan builders on the host, as a shipped module has them: equal to the reference's, and to what online needs."""

from __future__ import annotations

from itertools import product
from types import ModuleType

import pytest
import torch

from dsv4gen.base.errors import ArgumentError
from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference.compress import Geometry
from dsv4gen.reference.compress_plan import Extend, PagedRing, RequestRing, Ring, decode_plan, prefill_plan
from dsv4gen.reference.compress_store import check_stored
from tests.compress.host import loaded
from tests.compress.modules import module
from tests.compress.stages import online_world


def shipped() -> ModuleType:
    """The module as it ships."""
    return loaded(module("gfx950"))


def rings(ratio: int, size: int) -> list[tuple[Ring, dict[str, object]]]:
    """A ring per request, and for ratio 4 one per sliding-window page."""
    found: list[tuple[Ring, dict[str, object]]] = [(RequestRing(size), {})]
    if ratio == 4:
        generator = torch.Generator().manual_seed(size)
        table = torch.randperm(4 * 1024, generator=generator).view(4, 1024).to(torch.int32)
        slots = torch.randperm(4 * 1024, generator=generator)
        keywords: dict[str, object] = {"window_page": 256, "request_to_token": table, "full_to_window": slots}
        found.append((PagedRing(size, 256, table, slots), keywords))
    return found


@pytest.mark.parametrize(("ratio", "factor"), list(product((4, 128), (1, 2))))
def test_plans_equal_the_reference(ratio: int, factor: int) -> None:
    geometry = Geometry(ratio, 128)
    size = factor * geometry.window
    for (ring, keywords), extends in product(rings(ratio, size), ([3, 0, 300], [1, 1, 1], [129, 5, 128])):
        prefixes, requests = [0, 127, 250], [2, 0, 3]
        steps = [Extend(r, p, p + n) for r, p, n in zip(requests, prefixes, extends, strict=True)]
        seq_lens = torch.tensor([step.seq_len for step in steps])
        common = {"ratio": ratio, "ring": size, **keywords}
        for rows in (None, sum(extends) + 9):
            expected = prefill_plan(steps, ring, geometry, padded=rows)
            compress, write = shipped().host_plan_prefill(
                seq_lens, torch.tensor(extends), torch.tensor(requests), rows=rows, **common
            )
            assert torch.equal(compress, expected.compress) and torch.equal(write, expected.write)
        lengths = torch.tensor([5, 0, 128])
        plan = shipped().host_plan_decode(lengths, torch.tensor(requests), **common)
        assert torch.equal(plan, decode_plan(requests, lengths.tolist(), ring, geometry))


def test_bounds_are_refused_with_a_remedy() -> None:
    lengths = torch.tensor([65537])
    with pytest.raises(ArgumentError, match="65537 tokens"):
        shipped().host_plan_prefill(lengths, lengths, torch.tensor([0]), ratio=4, ring=8)
    with pytest.raises(ArgumentError, match="11 draft tokens"):
        shipped().check_ring(4, 16, None, 11)
    shipped().check_ring(4, 16, 256, 10)
    with pytest.raises(ArgumentError, match="9 draft tokens"):
        shipped().host_plan_online_verify(lengths, 9, torch.tensor([0]), 1)


@pytest.mark.parametrize("accepted", [(1, 4), (3, 2)])
def test_online_verify_with_rollback(worker: InterpreterWorker, accepted: tuple[int, int]) -> None:
    """Verify four tokens over a chunk's end, commit some, go on: the closed form of what was kept."""
    host, world, banks = shipped(), online_world(300), 5
    world.state = world.state.repeat(banks, 1)
    common = {**world.epilogue(), "state": world.state, "bias": world.bias}
    rows, lengths = torch.tensor([0, 1]), torch.tensor([125, 60])

    def run(extends: torch.Tensor, plans: list[torch.Tensor]) -> None:
        parts = [world.sequences[r][n - e : n] for r, (n, e) in enumerate(zip(lengths, extends, strict=True))]
        out_loc = [world.slot_of(r, p) for r in range(2) for p in range(lengths[r] - extends[r], lengths[r])]
        for plan in plans:
            source, places = torch.cat(parts), torch.tensor(out_loc)
            worker.call(module("gfx950"), "online_prefill", **common, source=source, plan=plan, out_loc=places)

    run(lengths, list(host.host_plan_online(lengths, lengths, rows)))
    lengths = lengths + 4
    run(torch.tensor([4, 4]), [host.host_plan_online_verify(lengths, 4, rows, 2)])
    lengths = lengths - 4 + torch.tensor(accepted)
    host.commit_online(world.state, lengths, torch.tensor(accepted), rows, 2)
    before = world.cache.clone()
    extends = 256 - lengths
    lengths = lengths + extends
    run(extends, list(host.host_plan_online(lengths, extends, rows)))
    ends = [(0, 127), (0, 255), (1, 127), (1, 255)]
    if accepted[0] == 3:
        ends = ends[1:]
    expected = torch.cat([world.closed_form(request, [end]) for request, end in ends])
    slots = torch.tensor([world.slot_of(request, end) for request, end in ends])
    quantizer = world.options.quantizer()
    check_stored(world.cache, before, world.page_size, slots, expected, "v4_584", quantizer, "online")
