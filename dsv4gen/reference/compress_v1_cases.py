"""Calls of the v1 adapters with known results: random plans, -1 and garbage in every field of some entries."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Generator, Tensor

from dsv4gen.reference.compress import Geometry
from dsv4gen.reference.compress_case import Arguments, Case
from dsv4gen.reference.compress_stage_cases import exact_case
from dsv4gen.reference.compress_v1 import V1Plan, decode_from_v1, from_v1

#: what an unused or broken field may hold: no index, its neighbours, bits of a NaN, the ends of int32
_GARBAGE = (-1, -2, 2143289344, 65535, 65536, 1 << 29, (1 << 29) - 1, 2**31 - 1, -(2**31))
_PAGES = 4096


def adapter_cases(ratio: int, *, extra: bool, seed: int = 0, batch: int = 9) -> Iterator[Case]:
    """A decode and a prefill step of v1; `extra`: whether there is upstream's `extra_data`.

    Plans are longer than a block of the kernels, and rows of `extra` lie apart.
    """
    generator = torch.Generator().manual_seed(seed)
    geometry, name = Geometry(ratio, 128), f"ratio {ratio} {'with' if extra else 'without'} extra, seed {seed}"
    seq_lens = _spoiled(_draw(20 * ratio, (batch,), generator) + 1, generator)
    seq_lens[0] = 0
    pages, before = (_spoiled(_draw(_PAGES, (batch,), generator), generator) for _ in range(2))
    apart = _apart(before[:, None]) if extra else None
    decode: Arguments = {"seq_lens": seq_lens, "state_pages": pages, "extra": apart, "ratio": ratio}
    yield exact_case(name, "adapt_decode_v1", decode, {"plan": decode_from_v1(seq_lens, pages, apart, geometry)})
    plan = random_v1(geometry, batch, generator, extra=extra)
    adapted = from_v1(plan, geometry)
    prefill: Arguments = {
        "v1_compress": plan.compress,
        "v1_write": plan.write,
        "state_pages": plan.pages,
        "ratio": ratio,
    }
    expected = {"compress": adapted.compress, "write": adapted.write}
    yield exact_case(name, "adapt_prefill_v1", {**prefill, "extra": plan.extra}, expected)


def random_v1(geometry: Geometry, batch: int, generator: Generator, *, extra: bool) -> V1Plan:
    """150 groups and 133 writes of random requests, one entry in four with a broken field."""
    ratio = geometry.ratio
    groups, writes = 150, 133
    position = (_draw(50, (groups,), generator) + 1) * ratio - 1
    window = torch.randint(geometry.window + 1, (groups,), generator=generator)
    request = torch.randint(batch, (groups,), generator=generator)
    compress = torch.stack([torch.arange(groups), request, position, window], 1)
    kept = torch.randint(50 * ratio, (writes,), generator=generator)
    write = torch.stack([torch.arange(writes), request[:writes], kept, torch.zeros_like(kept)], 1)
    for entries in (compress, write):
        broken = torch.arange(0, len(entries), 4)
        field = torch.randint(4, broken.shape, generator=generator)
        entries[broken, field] = _choice(broken.shape, generator)
        entries[5] = -1
    pages = _draw(_PAGES, (batch,), generator)
    columns = 4 if ratio == 4 else 1
    found = _draw(_PAGES, (batch, columns), generator)
    if ratio == 4:
        found[:, 3] = _draw(50 * ratio, (batch,), generator) // 4 * 4
    pages, found = _spoiled(pages, generator), _spoiled(found, generator)
    return V1Plan(compress.to(torch.int32), write.to(torch.int32), pages, _apart(found) if extra else None)


def _draw(below: int, shape: tuple[int, ...], generator: Generator) -> Tensor:
    return torch.randint(below, shape, generator=generator).to(torch.int32)


def _choice(shape: torch.Size, generator: Generator) -> Tensor:
    return torch.tensor(_GARBAGE)[torch.randint(len(_GARBAGE), shape, generator=generator)]


def _spoiled(values: Tensor, generator: Generator) -> Tensor:
    """One in four replaced by garbage."""
    broken = torch.rand(values.shape, generator=generator) < 0.25
    return torch.where(broken, _choice(values.shape, generator), values).to(torch.int32)


def _apart(rows: Tensor) -> Tensor:
    """The same rows of a wider tensor."""
    wide = torch.full((len(rows), rows.shape[1] + 3), -7, dtype=torch.int32)
    wide[:, : rows.shape[1]] = rows
    return wide[:, : rows.shape[1]]
