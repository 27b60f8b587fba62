"""Compressors under schedules: pools full of garbage, several requests, chunked prefill, decode, verify, rollback.

A `World` holds what an engine holds: per request the projected rows so far, a state full of garbage, a cache full of
poison, and slots for compressed rows. Each step gives a launch's arguments and the rows that the closed form
expects in the cache; the kernels under test keep the state.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Generator, Tensor

from dsv4gen.reference import compress
from dsv4gen.reference.compress import Geometry
from dsv4gen.reference.compress_plan import (
    Extend,
    PagedRing,
    PrefillPlan,
    RequestRing,
    Ring,
    decode_plan,
    prefill_plan,
    rollback_rows,
)
from dsv4gen.reference.compress_store import (
    FP4_MAXIMUM,
    Quantizer,
    check_stored,
    page_bytes,
    quantizer,
    slack_of,
)
from dsv4gen.reference.compress_v41 import LAYOUTS, rounded_either_way
from dsv4gen.reference.hazards import POISON_BYTE

#: what an uninitialised state is made of: large numbers, infinities, NaN
GARBAGE = (3.0e38, float("inf"), float("-inf"), float("nan"), -7.0e4)
EPS = 1e-6
#: tokens that a prefill step may add, by ratio: none, part of a group, several groups
_CHUNKS = {4: (0, 1, 3, 5, 9, 21), 128: (0, 1, 31, 97, 127, 140, 260)}


@dataclass(frozen=True)
class Options:
    """The spec's options of one compressor, by their names there."""

    bias_at: str = "pool"
    table: str = "interleaved"
    record: str = "v4_584"
    dialect: str = "e4m3fn"
    fp8_max: str = "writer"
    floor: str = "record"
    quant_source: str = "bf16"
    hadamard: bool = False
    slot_zero: str = "ordinary"
    fp4_ties: str = "even"
    source_dtype: torch.dtype = torch.float32
    state_dtype: torch.dtype = torch.float32

    def keywords(self) -> dict[str, object]:
        """Those that launch functions of the epilogue take."""
        names = ("table", "record", "dialect", "fp8_max", "floor", "quant_source", "slot_zero", "fp4_ties")
        return {"hadamard": "on" if self.hadamard else "off", **{name: getattr(self, name) for name in names}}

    def quantizer(self) -> Quantizer:
        """How the cache's bytes are made."""
        chosen = quantizer(
            self.dialect, maximum=self.fp8_max, floor=self.floor, source=self.quant_source, record=self.record
        )
        of_fp4 = self.record == "idx_fp4_68" or (self.record in LAYOUTS and LAYOUTS[self.record].of_fp4)
        return replace(chosen, maximum=FP4_MAXIMUM, fp4_ties=self.fp4_ties) if of_fp4 else chosen

    @property
    def rounds_before_rotation(self) -> bool:
        """Whether a normalised row is rounded to bf16 before it is rotated."""
        return self.record in LAYOUTS and self.quant_source == "bf16"


@dataclass
class World:
    """One compressor's buffers and requests; `make` fills it."""

    geometry: Geometry
    options: Options
    ring: Ring
    generator: Generator
    bias: Tensor
    weight: Tensor
    angles: Tensor
    state: Tensor
    cache: Tensor
    page_size: int
    sequences: list[Tensor]
    lengths: list[int] = field(default_factory=list)

    @property
    def slots(self) -> int:
        """Slots of the cache."""
        return self.cache.shape[0] * self.page_size

    def slot_of(self, request: int, end: int) -> int:
        """The cache slot of the group that ends at `end`; spread over pages, slot 0 included for request 0."""
        group = end // self.geometry.ratio
        return group * len(self.sequences) + request

    def tables(self) -> dict[str, Tensor]:
        """The rotary tables as the layout wants them."""
        cos, sin = self.angles.cos(), self.angles.sin()
        if self.options.table == "two":
            return {"cosines": cos, "sines": sin}
        if self.options.table == "split":
            return {"cosines": torch.cat([cos, sin], 1)}
        return {"cosines": torch.stack([cos, sin], -1).reshape(len(cos), -1)}

    def epilogue(self) -> dict[str, object]:
        """Arguments of the part from the pooled row to the cache."""
        named = {"weight": self.weight, "cache": self.cache, "page_size": self.page_size, "eps": EPS}
        return {**named, **self.tables(), **self.options.keywords()}

    def expected(self, pooled: Tensor, ends: Sequence[int]) -> Tensor:
        """Finished rows of pooled ones, float64."""
        return finished(self, pooled, ends)

    def closed_form(self, request: int, ends: list[int]) -> Tensor:
        """Finished rows of a request's groups, from its whole sequence."""
        sequence = self.sequences[request].to(self.options.source_dtype)
        return finished(self, compress.compressed_rows(sequence, ends, self.bias, self.geometry), ends)


def finished(world: World, pooled: Tensor, ends: Sequence[int]) -> Tensor:
    """Normalised, rotated, perhaps transformed rows, float64."""
    normed = compress.rms_norm(pooled, world.weight, EPS)
    if world.options.rounds_before_rotation:
        normed = normed.float().bfloat16().double()
    rows = _rotated(world, normed, ends)
    return compress.hadamard(rows) if world.options.hadamard else rows


def alternatives(world: World, pooled: Tensor, ends: Sequence[int]) -> list[Tensor]:
    """Rows that another rounding at a tie's distance gives, where there is one before the rotation."""
    if not world.options.rounds_before_rotation:
        return []
    normed = compress.rms_norm(pooled, world.weight, EPS)
    return [_rotated(world, row, ends) for row in rounded_either_way(normed, slack_of(normed), compress.ROPE)]


def _rotated(world: World, rows: Tensor, ends: Sequence[int]) -> Tensor:
    positions = torch.tensor(ends, dtype=torch.int64) + 1 - world.geometry.ratio
    angles = world.angles[positions]
    return compress.rotate(rows, angles.cos(), angles.sin())


def make_world(
    geometry: Geometry,
    *,
    options: Options | None = None,
    ring_size: int | None = None,
    window_page: int | None = None,
    requests: int = 3,
    tokens: int = 64,
    page_size: int | None = None,
    seed: int = 0,
) -> World:
    """A world whose requests have `tokens` projected rows each and have consumed none.

    Args:
        ring_size: rows of the ring; the window when absent.
        window_page: tokens per sliding-window page, for a paged ring; the ring is per request when absent.
        page_size: slots per cache page.
    """
    options = options or Options(record="v4_584" if geometry.head_dim == 512 else "idx_fp8_132")
    generator = torch.Generator().manual_seed(seed)
    size = ring_size or geometry.window
    ring, rows = _ring(size, window_page, requests, tokens, generator)
    page_size = page_size or 256 // geometry.ratio
    groups = -(-tokens // geometry.ratio) * requests
    cache_pages = -(-groups // page_size) + 1
    stride = page_bytes(options.record, geometry.head_dim, page_size)
    return World(
        geometry=geometry,
        options=options,
        ring=ring,
        generator=generator,
        bias=torch.randn(geometry.window, geometry.head_dim, generator=generator),
        weight=torch.rand(geometry.head_dim, generator=generator) + 0.5,
        angles=torch.rand(tokens + 1, 32, generator=generator) * 6.28,
        state=garbage((rows, geometry.width), options.state_dtype, generator),
        cache=torch.full((cache_pages, stride), POISON_BYTE, dtype=torch.uint8),
        page_size=page_size,
        sequences=[torch.randn(tokens, geometry.width, generator=generator) for _ in range(requests)],
        lengths=[0] * requests,
    )


def garbage(shape: tuple[int, int], dtype: torch.dtype, generator: Generator) -> Tensor:
    """Uninitialised memory: never zeros, which would hide a stale read."""
    chosen = torch.randint(len(GARBAGE), shape, generator=generator)
    return torch.tensor(GARBAGE)[chosen].to(dtype)


def _ring(size: int, window_page: int | None, requests: int, tokens: int, generator: Generator) -> tuple[Ring, int]:
    """The ring and how many state rows it needs."""
    if window_page is None:
        return RequestRing(size), requests * size
    per_request = -(-tokens // window_page)
    order = torch.randperm(requests * per_request, generator=generator).view(requests, per_request)
    offsets = torch.arange(window_page, dtype=torch.int64)
    table = (order[:, :, None] * window_page + offsets).view(requests, -1)
    slots = torch.arange(requests * per_request * window_page, dtype=torch.int64)
    return PagedRing(size, window_page, table.to(torch.int32), slots), requests * per_request * size


@dataclass(frozen=True)
class Step:
    """One step: `extends` in token order, and how many tokens each request keeps of it."""

    extends: tuple[Extend, ...]
    kept: tuple[int, ...]
    decode: bool


def schedule(world: World, *, steps: int, seed: int, drafts: int = 0) -> Iterator[Step]:
    """Random steps until the sequences end: prefill in chunks, decode, and verify with rollback.

    A verify step adds `drafts` tokens and keeps at least one. What was rejected is replaced, so that a stale row
    cannot pass for the right one.
    """
    choose = random.Random(seed)
    capacity = len(world.sequences[0])
    for _ in range(steps):
        kind = choose.choice(("prefill", "decode", "verify") if drafts else ("prefill", "decode", "decode"))
        extends, kept = [], []
        for request, prefix in enumerate(world.lengths):
            chunk = choose.choice(_CHUNKS[world.geometry.ratio])
            wanted = {"prefill": chunk, "decode": 1, "verify": drafts}[kind]
            seq_len = min(prefix + wanted, capacity)
            taken = seq_len - prefix
            extends.append(Extend(request, prefix, seq_len))
            kept.append(choose.randint(1, taken) if kind == "verify" and taken else taken)
        yield Step(tuple(extends), tuple(kept), kind == "decode")


def accept(world: World, step: Step) -> None:
    """Advance the requests by what a step keeps, and replace what it took back."""
    for entry, kept in zip(step.extends, step.kept, strict=True):
        length = entry.prefix + kept
        world.lengths[entry.request] = length
        if length < entry.seq_len:
            fresh = torch.randn(entry.seq_len - length, world.geometry.width, generator=world.generator)
            world.sequences[entry.request][length : entry.seq_len] = fresh


def source_rows(world: World, step: Step) -> Tensor:
    """The step's projected rows, flattened over requests."""
    rows = [world.sequences[entry.request][entry.prefix : entry.seq_len] for entry in step.extends]
    return torch.cat(rows).to(world.options.source_dtype)


def decode_arguments(world: World, step: Step) -> dict[str, object]:
    """A decode launch; a request that has ended is a padding row."""
    seq_lens = [entry.seq_len if entry.seq_len > entry.prefix else 0 for entry in step.extends]
    rows = [world.sequences[entry.request][max(entry.seq_len - 1, 0)] for entry in step.extends]
    slots = [world.slot_of(entry.request, entry.seq_len - 1) for entry in step.extends]
    complete = [length > 0 and length % world.geometry.ratio == 0 for length in seq_lens]
    return {
        **world.epilogue(),
        "state": world.state,
        "source": torch.stack(rows).to(world.options.source_dtype),
        "plan": decode_plan([entry.request for entry in step.extends], seq_lens, world.ring, world.geometry),
        "bias": world.bias,
        "bias_at": world.options.bias_at,
        "out_loc": torch.tensor([slot if done else -1 for slot, done in zip(slots, complete, strict=True)]),
        "ratio": world.geometry.ratio,
    }


def prefill_arguments(world: World, step: Step, *, padded: int | None = None) -> tuple[dict[str, object], PrefillPlan]:
    """A prefill launch, and both plans; `write` of the second goes to the launch after it."""
    plans = prefill_plan(step.extends, world.ring, world.geometry, padded=padded)
    slots = [
        world.slot_of(entry.request, position) if (position + 1) % world.geometry.ratio == 0 else -1
        for entry in step.extends
        for position in range(entry.prefix, entry.seq_len)
    ]
    arguments = {
        **world.epilogue(),
        "state": world.state,
        "source": source_rows(world, step),
        "plan": plans.compress,
        "bias": world.bias,
        "bias_at": world.options.bias_at,
        "out_loc": torch.tensor(slots, dtype=torch.int64),
        "ratio": world.geometry.ratio,
    }
    return arguments, plans


def write_arguments(world: World, source: Tensor, write: Tensor) -> dict[str, object]:
    """The launch after a prefill."""
    named = {"state": world.state, "source": source, "plan": write, "bias": world.bias}
    return {**named, "ratio": world.geometry.ratio, "bias_at": world.options.bias_at}


def check_step(world: World, step: Step, before: Tensor, name: str) -> None:
    """The cache holds the groups of the step as the closed form has them, and is otherwise as `before`.

    Raises:
        VerifyError: the first difference found.
    """
    slots: list[int] = []
    rows = []
    for entry in step.extends:
        ends = compress.group_ends(entry.prefix, entry.seq_len, world.geometry.ratio)
        slots += [world.slot_of(entry.request, end) for end in ends]
        rows.append(world.closed_form(entry.request, ends))
    check_stored(
        world.cache,
        before,
        world.page_size,
        torch.tensor(slots, dtype=torch.int64),
        torch.cat(rows),
        world.options.record,
        world.options.quantizer(),
        name,
    )


def largest_drafts(world: World) -> int:
    """Tokens of a verify step that the world's ring allows."""
    return rollback_rows(world.ring.size, world.geometry)
