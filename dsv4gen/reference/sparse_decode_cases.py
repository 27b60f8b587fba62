"""Inputs and expected results of sparse_decode, built from a spec's shapes and hazards.

Tests, `verify`, the card's script and benchmarks build the same cases. Following FlashMLA's recipe, queries are
normal and cut at 1, keys a tenth of that, stored through our own quantiser; every slot that no valid entry names
is NaN in every byte, and so is everything outside the outputs' elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Generator, Tensor

from dsv4gen.reference import fp8, hazards
from dsv4gen.reference.compare import check_attention, check_lse
from dsv4gen.reference.gather_dequant import V4, store_tokens, valid_entries
from dsv4gen.reference.hazards import Poisoned, poisoned
from dsv4gen.reference.sparse_decode import Scope, attend, attend_rows, merge_lse

SCALE = 512**-0.55
#: every byte of an unselected slot: NaN as a code of e4m3fn, as a scale and as bf16
NAN_BYTE = 0xFF
#: arguments that name compile-time options
OPTIONS = ("dialect", "extra_dialect", "reduce")


@dataclass(frozen=True)
class Case:
    """One call: `arguments` are the keywords of the launch function `op`, outputs included."""

    name: str
    op: str
    arguments: Mapping[str, object]
    out: Poisoned = field(repr=False)
    lse: Poisoned = field(repr=False)
    expected_out: Tensor = field(repr=False)
    expected_lse: Tensor = field(repr=False)

    @property
    def options(self) -> Mapping[str, str]:
        """Compile-time options among the arguments."""
        chosen = {name: str(self.arguments[name]) for name in OPTIONS if name in self.arguments}
        return {**chosen, "scopes": "two" if "extra_cache" in self.arguments else "one"}

    def check(self) -> None:
        """Compare with the reference by the contract's rule; poison around the outputs is intact.

        Raises:
            VerifyError: the first difference found.
        """
        check_lse(self.lse.tensor, self.expected_lse, name=f"{self.name}: lse")
        check_attention(self.out.tensor, self.expected_out, name=f"{self.name}: out")
        self.out.check_surroundings(f"{self.name}: out")
        self.lse.check_surroundings(f"{self.name}: lse")


def build_case(
    shape: Mapping[str, int],
    *,
    names: Iterable[str] = (),
    dialect: str = "e4m3fn",
    extra_dialect: str = "e4m3fn",
    lengths: bool = True,
    extra_lengths: bool = True,
    sink: str = "mixed",
    seed: int = 0,
    **arguments: object,
) -> Case:
    """A case of op `attend`, with two scopes where the shape names an `extra_page_size`.

    Args:
        shape: tokens, heads, width, page_size, and optionally pages, queries, value_width, extra_*.
        names: hazards to put into the inputs.
        dialect, extra_dialect: encodings of the caches.
        lengths, extra_lengths: whether the scope's rows have a length.
        sink: `none`, `finite`, or `mixed` with about a third of each infinity.
        seed: of all random inputs.
        arguments: further keywords of the launch function.
    """
    names = tuple(names)
    generator = torch.Generator().manual_seed(seed)
    sizes = {"queries": 1, "value_width": V4.width, **shape}
    if "empty" in names:
        sizes["tokens"] = 0
    scopes = {"": _scope("", sizes, names, dialect, lengths, generator)}
    if "extra_page_size" in shape:
        scopes["extra_"] = _scope("extra_", sizes, names, extra_dialect, extra_lengths, generator)
    tokens, heads = sizes["tokens"], sizes["heads"]
    q = _normal((tokens, heads, V4.width), generator).bfloat16()
    sinks = sink_logits(heads, sink, generator)
    out, lse = _outputs(tokens, heads, sizes["value_width"], names)
    expected = attend(
        q,
        scopes.values(),
        scale=SCALE,
        sink=sinks,
        queries=sizes["queries"],
        value_width=sizes["value_width"],
    )
    inputs: dict[str, object] = {"q": _rows_apart(q, names), "sink": sinks, "out": out.tensor, "lse": lse.tensor}
    for prefix, scope in scopes.items():
        inputs.update({f"{prefix}{name}": value for name, value in _scope_arguments(scope).items()})
    inputs.update(scale=SCALE, queries=sizes["queries"], **arguments)
    name = " ".join(["attend", *(f"{key}={value}" for key, value in shape.items()), *names])
    return Case(name, "attend", inputs, out, lse, *expected)


def sink_logits(heads: int, kind: str, generator: Generator) -> Tensor | None:
    """float32 [heads], or None for `none`."""
    if kind == "none":
        return None
    values = torch.randn(heads, generator=generator)
    if kind == "mixed":
        drawn = torch.rand(heads, generator=generator)
        values[drawn < 0.31] = torch.inf
        values[drawn > 0.69] = -torch.inf
    return values


def fill_pool(pool: Tensor, page_size: int, slots: Tensor, dialect: str, generator: Generator) -> None:
    """Store ordinary rows at `slots`, quantised in the dialect; the rest of the pool keeps what it holds."""
    count = len(slots)
    values = (_normal((count, V4.width), generator) / 10).clamp(-1, 1)
    tiles = values[:, : V4.codes].reshape(count, V4.tiles, V4.tile)
    codes, scales = fp8.quantize_tiles(tiles, fp8.dialect_of(dialect))
    store_tokens(pool, page_size, slots, codes.view(count, V4.codes), scales, values[:, V4.codes :].bfloat16())


def build_rows_case(tokens: int, heads: int, width: int, *, seed: int = 0) -> Case:
    """A case of op `attend_rows`: NaN where masked, a row without a valid key where there are several tokens."""
    generator = torch.Generator().manual_seed(seed)
    rows = (_normal((tokens, width, V4.width), generator) / 10).bfloat16()
    mask = torch.rand(tokens, width, generator=generator) < 0.4
    mask[1:2] = True
    rows[mask] = torch.nan
    q = _normal((tokens, heads, V4.width), generator).bfloat16()
    sink = sink_logits(heads, "mixed", generator)
    out, lse = _outputs(tokens, heads, V4.width, ())
    inputs = {"q": q, "rows": rows, "mask": mask, "sink": sink, "scale": SCALE, "out": out.tensor, "lse": lse.tensor}
    expected = attend_rows(q, rows, mask, scale=SCALE, sink=sink)
    return Case(f"attend_rows {tokens} {heads} {width}", "attend_rows", inputs, out, lse, *expected)


def build_merge_case(splits: int, tokens: int, heads: int, *, seed: int = 0) -> Case:
    """A case of op `merge_lse`: a third of the parts is empty, with NaN results and infinities of either sign."""
    generator = torch.Generator().manual_seed(seed)
    parts = torch.randn(splits, tokens, heads, V4.width, generator=generator)
    lses = 20 * torch.randn(splits, tokens, heads, generator=generator)
    drawn = torch.rand(lses.shape, generator=generator)
    lses[drawn < 0.15], lses[drawn > 0.85] = torch.inf, -torch.inf
    lses[:, :1, :1] = torch.inf
    parts[torch.isinf(lses)] = torch.nan
    sink = sink_logits(heads, "mixed", generator)
    out, lse = _outputs(tokens, heads, V4.width, ())
    inputs = {"parts": parts, "lses": lses, "sink": sink, "out": out.tensor, "lse": lse.tensor}
    return Case(
        f"merge_lse {splits} {tokens} {heads}", "merge_lse", inputs, out, lse, *merge_lse(parts, lses, sink=sink)
    )


def workspaces(tokens: int, heads: int, parts: int) -> dict[str, Tensor]:
    """Arguments for a call in parts: stale NaN where a part without keys leaves them as they are, zero counters."""
    return {
        "part_results": torch.full((tokens * heads * parts * V4.width,), torch.nan),
        "part_lses": torch.full((tokens * heads * parts,), torch.nan),
        "counters": torch.zeros(tokens * heads, dtype=torch.int32),
    }


def verification_cases(full: bool) -> Iterator[Case]:
    """Cases that reach every op and path of the module on an interpreter; `full` adds wider ones."""
    single = {"tokens": 2, "heads": 16, "width": 65, "page_size": 64, "pages": 2}
    dual = {**single, "extra_width": 33, "extra_page_size": 2, "extra_pages": 20, "queries": 2}
    garbage = ("index_minus_one", "index_past_end", "index_garbage", "length_zero", "length_above_width")
    yield build_case(single, names=garbage, splits=1)
    yield build_case(dual, names=garbage, splits=1, extra_dialect="e4m3fnuz")
    for reduce in ("kernel", "last_arriver"):
        room: dict[str, Any] = workspaces(2, 16, 3)
        yield build_case(dual, names=garbage, splits=3, reduce=reduce, **room)
    yield build_rows_case(2, 16, 65)
    yield build_merge_case(3, 2, 16)
    if full:
        for heads in (1, 20, 64, 128):
            yield build_case({**dual, "heads": heads}, sink="finite", seed=heads, splits=1)


def machine_code_cases(full: bool) -> Iterator[Case]:
    """Cases for compiled code: besides those of `verification_cases`, every way to reduce in every tile."""
    yield from verification_cases(full)
    shape = {"tokens": 2, "page_size": 256, "pages": 2, "extra_page_size": 64, "extra_pages": 2, "queries": 2}
    names = ("index_minus_one", "index_past_end", "index_garbage")
    for heads, width, extra_width in ((32, 33, 17), (16, 33, 17), (16, 9, 7)):
        sizes = {**shape, "heads": heads, "width": width, "extra_width": extra_width}
        yield build_case(sizes, names=names, splits=1, seed=heads)
        for reduce in ("kernel", "last_arriver"):
            room: dict[str, Any] = workspaces(2, heads, 5)
            yield build_case(sizes, names=names, splits=5, reduce=reduce, seed=width, **room)
        yield build_rows_case(2, heads, width)


def _scope(
    prefix: str,
    sizes: Mapping[str, int],
    names: tuple[str, ...],
    dialect: str,
    with_lengths: bool,
    generator: Generator,
) -> Scope:
    page_size, pages = sizes[f"{prefix}page_size"], sizes.get(f"{prefix}pages", 3)
    width, tokens = sizes[f"{prefix}width"], sizes["tokens"]
    batch, slots = -(-tokens // sizes["queries"]), pages * page_size
    indices = torch.randint(0, max(slots, 1), (tokens, width), generator=generator, dtype=torch.int32)
    for hazard in hazards.hazards_of("indices", names):
        indices = hazard.apply(indices, slots, generator)
    lengths = None
    if with_lengths:
        lengths = torch.randint(0, width + 1, (batch,), generator=generator, dtype=torch.int32)
        for hazard in hazards.hazards_of("lengths", names):
            lengths = hazard.apply(lengths, width, generator)
        lengths = _spread(lengths, names)
    pool = torch.full((pages, V4.page_bytes(page_size)), NAN_BYTE, dtype=torch.uint8)
    valid = valid_entries(indices, slots, lengths, sizes["queries"])
    used = torch.tensor(sorted(set(indices[valid].tolist())), dtype=torch.int64)
    fill_pool(pool, page_size, used, dialect, generator)
    return Scope(pool, page_size, _spread(indices, names), lengths, dialect)


def _scope_arguments(scope: Scope) -> dict[str, object]:
    return {
        "cache": scope.pool,
        "page_size": scope.page_size,
        "indices": scope.indices,
        "lengths": scope.lengths,
        "dialect": scope.dialect,
    }


def _normal(shape: tuple[int, ...], generator: Generator) -> Tensor:
    return torch.randn(shape, generator=generator).clamp(-1, 1)


def _outputs(tokens: int, heads: int, width: int, names: tuple[str, ...]) -> tuple[Poisoned, Poisoned]:
    padding = 8 if "strided" in names else 0
    offset = 1 if "misaligned_base" in names else 0
    out = poisoned((tokens, heads, width), torch.bfloat16, row_padding=padding, offset=8 * offset)
    return out, poisoned((tokens, heads), torch.float32, row_padding=padding + offset, offset=offset)


def _rows_apart(q: Tensor, names: tuple[str, ...]) -> Tensor:
    """The queries with NaN between their rows where `strided` is asked for; 16-byte alignment stays."""
    if "strided" not in names:
        return q
    home = torch.full((*q.shape[:-1], q.shape[-1] + 8), torch.nan, dtype=q.dtype)
    view = home[..., : q.shape[-1]]
    view.copy_(q)
    return view


def _spread(values: Tensor, names: tuple[str, ...]) -> Tensor:
    """Integers off their alignment, or with gaps between neighbours, where a hazard asks for it."""
    step = 3 if "strided" in names else 1
    offset = 1 if "misaligned_base" in names else 0
    if step == 1 and offset == 0:
        return values
    home = torch.full((*values.shape[:-1], step * values.shape[-1] + offset), -7, dtype=values.dtype)
    view = home[..., offset::step]
    view.copy_(values)
    return view
