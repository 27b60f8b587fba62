"""Inputs and expected results of gather_dequant, built from a spec's shapes and hazards.

Tests, `verify` and benchmarks build the same cases. Cache bytes are random, so that every code, every scale
byte and every bit pattern of the bf16 part occurs; the outputs lie in poisoned memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Generator, Tensor

from dsv4gen.reference import hazards
from dsv4gen.reference.compare import check_exact
from dsv4gen.reference.gather_dequant import V4, gather_dequant, store_tokens
from dsv4gen.reference.hazards import Poisoned, poisoned

#: arguments that name compile-time options
OPTIONS = ("dialect", "extra_dialect")
#: the columns that a shape leaves behind the written range when it names no `columns`
_MARGIN = 2
_SMALL = {"tokens": 3, "width": 9, "page_size": 5, "queries": 2}
_DUAL = {**_SMALL, "extra_width": 7, "extra_page_size": 2, "extra_pages": 4}
_GARBAGE = ("index_minus_one", "index_negative", "index_past_end", "index_garbage", "poisoned_slot_zero")
_LENGTHS = ("length_zero", "length_negative", "length_above_width")


@dataclass(frozen=True)
class Case:
    """One call: `arguments` are the keywords of the launch function `op`, outputs included."""

    name: str
    op: str
    arguments: Mapping[str, object]
    out: Poisoned = field(repr=False)
    mask: Poisoned = field(repr=False)
    expected_out: Tensor = field(repr=False)
    #: as bytes, since poison is no truth value
    expected_mask: Tensor = field(repr=False)
    #: no kernel of this family branches on rows
    rows: tuple[Mapping[str, int], ...] = ()

    @property
    def options(self) -> Mapping[str, str]:
        """Compile-time options among the arguments."""
        return {name: str(self.arguments[name]) for name in OPTIONS if name in self.arguments}

    def fresh(self) -> Case:
        """The same call with outputs poisoned again."""
        out, mask = self.out.again(), self.mask.again()
        arguments = {**self.arguments, "out": out.tensor, "mask": mask.tensor}
        return replace(self, arguments=arguments, out=out, mask=mask)

    def check(self) -> None:
        """Compare the outputs with the reference: values and mask exact, bf16 part by its bits, poison intact.

        Raises:
            VerifyError: the first difference found.
        """
        check_exact(self.mask.tensor.view(torch.uint8), self.expected_mask, name=f"{self.name}: mask")
        check_exact(self.out.tensor, self.expected_out, name=f"{self.name}: out")
        rope = (self.out.tensor[..., V4.codes :], self.expected_out[..., V4.codes :])
        check_exact(*rope, name=f"{self.name}: bf16 part", nan_payload=True)
        self.out.check_surroundings(f"{self.name}: out")
        self.mask.check_surroundings(f"{self.name}: mask")


def products_case(dialect: str) -> Case:
    """Every code times every scale byte: 256 x 4 tiles of 64 codes, one scale each."""
    count = -(-256 * 4 // V4.tiles)
    number = torch.arange(count * V4.tiles)
    codes = (V4.tile * (number % 4)[:, None] + torch.arange(V4.tile)).to(torch.uint8).view(count, V4.codes)
    scales = (number // 4 % 256).to(torch.uint8).view(count, V4.tiles)
    pool = torch.full((1, V4.page_bytes(count)), hazards.POISON_BYTE, dtype=torch.uint8)
    rope = torch.arange(count * V4.rope, dtype=torch.int16).view(torch.bfloat16).view(count, V4.rope)
    store_tokens(pool, count, torch.arange(count), codes, scales, rope)
    indices = torch.arange(count, dtype=torch.int32)[None]
    lengths = torch.tensor([count], dtype=torch.int32)
    return _case(f"all products {dialect}", [_Scope("", pool, count, indices, lengths, dialect)], {"tokens": 1})


def verification_cases(*, full: bool) -> Iterator[Case]:
    """Cases that reach every op in every dialect with every hazard; `full` adds one case per hazard and wide rows."""
    for dialect, other in (("e4m3fn", "e4m3fnuz"), ("e4m3fnuz", "e4m3fn")):
        yield products_case(dialect)
        yield build_case(_SMALL, names=(*_GARBAGE, *_LENGTHS, "scale_extremes", "nan_code"), dialect=dialect)
        yield build_case(_DUAL, names=_GARBAGE, dialect=dialect, extra_dialect=other, extra_lengths=False)
    yield build_case(_DUAL, names=(*_LENGTHS, "strided", "duplicate_index"), lengths=False)
    yield build_case(_DUAL, names=("misaligned_base",))
    yield build_case(_SMALL, names=("empty",))
    if full:
        for name in hazards.HAZARDS:
            if hazards.hazard(name).kind != "scores":
                yield build_case(_DUAL, names=(name,), seed=7)
        for width, page_size in ((1, 2), (65, 53), (128, 256), (640, 64), (2048, 256)):
            yield build_case({"tokens": 1, "width": width, "page_size": page_size}, names=_GARBAGE)


def machine_code_cases(*, full: bool) -> Iterator[Case]:
    """Cases for compiled code: besides those of `verification_cases`, the tiles of large work."""
    yield from verification_cases(full=full)
    large = {"tokens": 512, "width": 65, "page_size": 64, "pages": 40, "queries": 4}
    dual = {**large, "width": 33, "extra_width": 33, "extra_page_size": 2, "extra_pages": 40}
    for dialect in ("e4m3fn", "e4m3fnuz"):
        yield build_case(large, names=_GARBAGE, dialect=dialect)
    for shape in (_DUAL, dual):
        yield build_case(shape, names=_GARBAGE, extra_dialect="e4m3fnuz")


@dataclass(frozen=True)
class _Scope:
    """One cache with its index list; `prefix` is that of its arguments."""

    prefix: str
    pool: Tensor
    page_size: int
    indices: Tensor
    lengths: Tensor | None
    dialect: str

    def arguments(self) -> dict[str, object]:
        named = {
            "cache": self.pool,
            "page_size": self.page_size,
            "indices": self.indices,
            "lengths": self.lengths,
            "dialect": self.dialect,
        }
        return {f"{self.prefix}{name}": value for name, value in named.items()}


def build_case(
    shape: Mapping[str, int],
    *,
    names: Iterable[str] = (),
    dialect: str = "e4m3fn",
    extra_dialect: str = "e4m3fn",
    lengths: bool = True,
    extra_lengths: bool = True,
    seed: int = 0,
) -> Case:
    """A case of op `gather`, or of `gather_dual` where the shape names an `extra_page_size`.

    Args:
        shape: tokens, width, page_size, and optionally pages, queries, columns, k_offset, extra_*.
        names: hazards to put into the inputs.
        dialect, extra_dialect: encodings of the caches.
        lengths, extra_lengths: whether the scope's rows have a length.
        seed: of all random inputs.
    """
    names = tuple(names)
    generator = torch.Generator().manual_seed(seed)
    sizes = {"queries": 1, "k_offset": 1, **shape}
    if "empty" in names:
        sizes["tokens"] = 0
    scopes = [_scope("", sizes, names, dialect, lengths, generator)]
    if "extra_page_size" in shape:
        scopes.append(_scope("extra_", sizes, names, extra_dialect, extra_lengths, generator))
    name = " ".join([*(f"{key}={value}" for key, value in shape.items()), *names])
    return _case(name, scopes, sizes, names)


def _case(name: str, scopes: list[_Scope], sizes: Mapping[str, int], names: tuple[str, ...] = ()) -> Case:
    """Outputs, arguments and expected results for prepared scopes."""
    k_offset, queries = sizes.get("k_offset", 1), sizes.get("queries", 1)
    width = sum(scope.indices.shape[1] for scope in scopes)
    columns = sizes.get("columns", k_offset + width + _MARGIN)
    out, mask = _outputs(sizes["tokens"], columns, names)
    arguments: dict[str, object] = {"out": out.tensor, "mask": mask.tensor, "queries": queries, "k_offset": k_offset}
    for scope in scopes:
        arguments.update(scope.arguments())
    expected = _expected(scopes, out.tensor, mask.tensor.view(torch.uint8), queries, k_offset)
    op = "gather" if len(scopes) == 1 else "gather_dual"
    return Case(f"{op} {name}", op, arguments, out, mask, *expected)


def _scope(
    prefix: str,
    sizes: Mapping[str, int],
    names: tuple[str, ...],
    dialect: str,
    with_lengths: bool,
    generator: Generator,
) -> _Scope:
    page_size = sizes[f"{prefix}page_size"]
    pages = sizes.get(f"{prefix}pages", 3)
    width = sizes[f"{prefix}width"]
    tokens, batch = sizes["tokens"], -(-sizes["tokens"] // sizes["queries"])
    slots = pages * page_size
    indices = torch.randint(0, max(slots, 1), (tokens, width), generator=generator, dtype=torch.int32)
    for hazard in hazards.hazards_of("indices", names):
        indices = hazard.apply(indices, slots, generator)
    lengths = None
    if with_lengths:
        lengths = torch.randint(0, width + 1, (batch,), generator=generator, dtype=torch.int32)
        for hazard in hazards.hazards_of("lengths", names):
            lengths = hazard.apply(lengths, width, generator)
        lengths = _placed(lengths, names)
    pool = _pool(pages, page_size, names, generator)
    return _Scope(prefix, pool, page_size, _placed(indices, names), lengths, dialect)


def _pool(pages: int, page_size: int, names: tuple[str, ...], generator: Generator) -> Tensor:
    """Random pages, as the engines pass them: without the padding, one page's bytes apart."""
    stride = V4.page_bytes(page_size)
    pool = torch.randint(0, 256, (pages, stride), generator=generator, dtype=torch.uint8)
    data_end = page_size * V4.data_row
    used = page_size * (V4.data_row + V4.scale_row)
    for kind, area in (("codes", pool[:, :data_end]), ("scales", pool[:, data_end:used])):
        for hazard in hazards.hazards_of(kind, names):
            area.copy_(hazard.apply(area, 0, generator))
    if "poisoned_slot_zero" in names and pages:
        pool[0, : V4.data_row] = 0x7F
    return pool[:, :used]


def _outputs(tokens: int, columns: int, names: tuple[str, ...]) -> tuple[Poisoned, Poisoned]:
    """Poisoned out and mask; out keeps the 16-byte alignment that its table asks for."""
    padding = 8 if "strided" in names else 0
    offset = 1 if "misaligned_base" in names else 0
    out = poisoned((tokens, columns, V4.width), torch.bfloat16, row_padding=padding, offset=8 * offset)
    mask = poisoned((tokens, columns), torch.bool, row_padding=padding + offset, offset=offset)
    return out, mask


def _placed(values: Tensor, names: tuple[str, ...]) -> Tensor:
    """Integers moved off their alignment, or with gaps between neighbours, where a hazard asks for it."""
    step = 3 if "strided" in names else 1
    offset = 1 if "misaligned_base" in names else 0
    if step == 1 and offset == 0:
        return values
    home = torch.full((*values.shape[:-1], step * values.shape[-1] + offset), -7, dtype=values.dtype)
    view = home[..., offset::step]
    view.copy_(values)
    return view


def _expected(
    scopes: Iterable[_Scope], out: Tensor, mask: Tensor, queries: int, k_offset: int
) -> tuple[Tensor, Tensor]:
    """What the reference makes of copies of the outputs."""
    expected_out, expected_mask = out.clone(), mask.clone()
    for scope in scopes:
        gather_dequant(
            scope.pool,
            scope.indices,
            expected_out,
            expected_mask,
            page_size=scope.page_size,
            dialect=scope.dialect,
            lengths=scope.lengths,
            queries_per_batch=queries,
            k_offset=k_offset,
        )
        k_offset += scope.indices.shape[1]
    return expected_out, expected_mask
