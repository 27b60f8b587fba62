"""Inputs and expected results of indexer_logits, built from a spec's shapes and hazards.

Tests, `verify`, the card's script and benchmarks build the same cases. Keys and queries are normal values, quantised by
our own quantisers; every byte of a page that no visible key lies on is NaN, and so is everything around the outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Generator, Tensor

from dsv4gen.base.errors import VerifyError
from dsv4gen.reference import fp8, hazards
from dsv4gen.reference import indexer_logits as reference
from dsv4gen.reference.compress_store import quantizer, store_rows
from dsv4gen.reference.hazards import Poisoned, poisoned
from dsv4gen.reference.indexer_logits import HEAD_DIM, TOKEN

#: every byte of a page without a visible key: NaN as a code of e4m3fn and as a scale
NAN_BYTE = 0xFF
#: arguments that name compile-time options
OPTIONS = ("dialect", "query_dialect", "sums", "tail")
ABSOLUTE, RELATIVE = 5e-5, 1e-5
GARBAGE = ("index_minus_one", "index_negative", "index_past_end", "index_garbage", "poisoned_slot_zero")


@dataclass(frozen=True)
class Case:
    """One call: `arguments` are the keywords of the launch function `op`, outputs included."""

    name: str
    op: str
    arguments: Mapping[str, object]
    out: Poisoned = field(repr=False)
    #: float64, holding `out`'s poison where nothing is written
    expected: Tensor = field(repr=False)
    #: where something is written
    written: Tensor = field(repr=False)
    #: allowed error beside the contract's; for sums in fewer bits
    slack: float = 0.0
    #: no kernel of this family branches on rows
    rows: tuple[Mapping[str, int], ...] = ()

    @property
    def options(self) -> Mapping[str, str]:
        """Compile-time options among the arguments."""
        return {name: str(self.arguments[name]) for name in OPTIONS if name in self.arguments}

    def fresh(self) -> Case:
        """The same call with the output poisoned again."""
        out = self.out.again()
        return replace(self, arguments={**self.arguments, "out": out.tensor}, out=out)

    def check(self) -> None:
        """Compare with the reference: infinities in place, values by the contract's tolerance, poison intact.

        Raises:
            VerifyError: the first difference found.
        """
        check_logits(self.out.tensor, self.expected, self.written, name=f"{self.name}: out", slack=self.slack)
        self.out.check_surroundings(f"{self.name}: out")


def check_logits(actual: Tensor, expected: Tensor, written: Tensor, *, name: str, slack: float = 0.0) -> None:
    """abs < 5e-5 + slack or rel < 1e-5 against exact logits; the rest still holds its poison.

    Raises:
        VerifyError: an element, the place of an infinity, or an element that must not be written differs.
    """
    found = actual.double()
    error = (found - expected).abs()
    # Without the test for finite ones anything would be within the tolerance of an infinity.
    right = torch.isfinite(expected) & (error <= ABSOLUTE + slack + RELATIVE * expected.abs()) | (found == expected)
    right |= torch.isnan(found) & torch.isnan(expected)
    poison = poisoned((1,), torch.float32).tensor.view(torch.int32)
    right = torch.where(written, right, actual.contiguous().view(torch.int32) == poison)
    if not bool(right.all()):
        first = tuple(int(place) for place in (~right).nonzero()[0])
        what = f"expected {expected[first].item()!r}" if written[first] else "expected to be left alone"
        raise VerifyError(
            f"{name}: {int((~right).sum())} of {right.numel()} elements outside the tolerance; "
            f"first at {list(first)}: {actual[first].item()!r}, {what}"
        )


def build_case(
    shape: Mapping[str, int],
    *,
    names: Iterable[str] = (),
    dialect: str = "e4m3fn",
    query_dialect: str = "e4m3fn",
    tail: str = "untouched",
    per_row: bool = False,
    seed: int = 0,
    **arguments: object,
) -> Case:
    """A case of op `prefill` where the shape names `rows`, of `decode` otherwise.

    Args:
        shape: batch, heads, width, page_size, and optionally queries, rows, pages, table_pages.
        names: hazards to put into the inputs.
        dialect, query_dialect: encodings of the cache and of the queries.
        tail: what becomes of columns behind the visible keys.
        per_row: whether a decode step gives a length per query.
        seed: of all random inputs.
        arguments: further keywords of the launch function.
    """
    names = tuple(names)
    generator = torch.Generator().manual_seed(seed)
    sizes = {"queries": 1, **shape}
    if "empty" in names:
        sizes.update({"batch": 0, **({"rows": 0} if "rows" in shape else {})})
    batch, width, page_size = sizes["batch"], sizes["width"], sizes["page_size"]
    pages = sizes.get("pages", 6)
    columns = sizes.get("table_pages", -(-width // page_size))
    table = torch.randint(0, max(pages, 1), (batch, columns), generator=generator, dtype=torch.int32)
    for hazard in hazards.hazards_of("indices", names):
        table = hazard.apply(table, pages, generator)
    rows = sizes.get("rows", batch * sizes["queries"])
    lens = _lengths(sizes, names, per_row, generator)
    pool = _pool(pages, page_size, dialect, table, names, generator)
    q, weights = _queries(rows, sizes["heads"], query_dialect, generator)
    out = poisoned(
        (rows, width),
        torch.float32,
        row_padding=5 if "strided" in names else 256 - width % 256 if "poisoned_tail" in names else 0,
        offset=1 if "misaligned_base" in names else 0,
    )
    inputs: dict[str, object] = {
        "q": _apart(q if "rows" in shape else q.view(batch, sizes["queries"], *q.shape[1:]), names, 16),
        "weights": _apart(weights, names, 1),
        "cache": pool,
        "page_table": _apart(table, names, 1),
        **{name: _apart(value, names, 0) for name, value in lens.items()},
    }
    chosen = {"page_size": page_size, "dialect": dialect, "query_dialect": query_dialect, "tail": tail}
    title = " ".join(
        ["prefill" if "rows" in shape else "decode", *(f"{key}={value}" for key, value in shape.items()), *names]
    )
    op = "prefill" if "rows" in shape else "decode"
    expected, written = _expected(op, inputs, chosen, rows, width)
    return Case(title, op, {**inputs, **chosen, "out": out.tensor, **arguments}, out, expected, written)


def store_keys(pool: Tensor, page_size: int, slots: Tensor, dialect: str, generator: Generator) -> None:
    """Normal keys at `slots`, as the writer of an indexer cache quantises them."""
    values = torch.randn(len(slots), HEAD_DIM, generator=generator)
    store_rows(pool, page_size, slots, values, "idx_fp8_132", quantizer(dialect))


def quantised_queries(shape: tuple[int, ...], dialect: str, generator: Generator) -> tuple[Tensor, Tensor]:
    """uint8 codes [..., 128] of normal queries and their float32 scales [...]."""
    values = torch.randn(*shape, HEAD_DIM, generator=generator)
    chosen = fp8.dialect_of(dialect)
    scales = values.abs().amax(-1).clamp(min=1e-4) / chosen.divisor
    return fp8.encode(values / scales.unsqueeze(-1), chosen), scales


def verification_cases(*, full: bool) -> Iterator[Case]:
    """Cases that reach both ops with every hazard; `full` adds one case per hazard and more heads."""
    step = {"batch": 2, "queries": 2, "heads": 16, "width": 70, "page_size": 16}
    ragged = {"batch": 3, "rows": 5, "heads": 7, "width": 70, "page_size": 16}
    lengths = ("length_zero", "length_negative", "length_above_width")
    for shape in (step, ragged):
        yield build_case(shape, names=GARBAGE)
        yield build_case(shape, names=("strided", "poisoned_tail"), tail="minus_inf", seed=1)
        yield build_case(shape, names=lengths, dialect="e4m3fnuz", tail="minus_inf", seed=2)
        yield build_case({**shape, "page_size": 5}, names=("misaligned_base",), query_dialect="e4m3fnuz", seed=3)
        yield build_case(shape, names=("empty",))
    for shape in (step, ragged):
        yield build_case({**shape, "page_size": 64, "pages": 3}, names=("index_minus_one",), tail="minus_inf", seed=5)
    yield build_case(step, per_row=True, names=lengths, seed=4)
    yield build_case({**step, "heads": 65, "batch": 1, "queries": 1, "table_pages": 3}, names=("duplicate_index",))
    if full:
        for shape in (step, ragged):
            for name in hazards.HAZARDS:
                if hazards.hazard(name).kind in ("indices", "lengths", "layout"):
                    yield build_case(shape, names=(name,), tail="minus_inf", seed=7)
        for heads in (1, 64, 130):
            yield build_case({"batch": 1, "queries": 3, "heads": heads, "width": 260, "page_size": 64}, seed=heads)


def machine_code_cases(*, full: bool) -> Iterator[Case]:
    """Cases for compiled code: besides those of `verification_cases`, 64 heads and any two dialects in every tile."""
    yield from verification_cases(full=full)
    names = ("index_minus_one", "index_past_end")
    for dialect, other in (("e4m3fn", "e4m3fnuz"), ("e4m3fnuz", "e4m3fn")):
        for rows in ({"batch": 2, "queries": 2}, {"batch": 2, "rows": 5}):
            for width in (130, 40):
                shape = {**rows, "heads": 64, "width": width, "page_size": 64}
                for query_dialect in (dialect, other):
                    yield build_case(shape, names=names, dialect=dialect, query_dialect=query_dialect, seed=width)


def _lengths(
    sizes: Mapping[str, int], names: tuple[str, ...], per_row: bool, generator: Generator
) -> dict[str, Tensor]:
    """Random lengths, and the requests of rows in a prefill step: together, with one row of no request."""
    width, batch = sizes["width"], sizes["batch"]
    ragged = "rows" in sizes
    shape = (sizes["rows"],) if ragged else (batch, sizes["queries"]) if per_row else (batch,)
    lens = torch.randint(0, width + 1, shape, generator=generator, dtype=torch.int32)
    if lens.numel():
        lens.view(-1)[-1] = width
    for hazard in hazards.hazards_of("lengths", names):
        lens = hazard.apply(lens, width, generator)
    if not ragged:
        return {"row_lens" if per_row else "seq_lens": lens}
    requests = torch.arange(sizes["rows"], dtype=torch.int32) * batch // max(sizes["rows"], 1)
    if "index_garbage" in names and len(requests) > 1:
        requests[0], requests[1] = -1, batch
    return {"requests": requests, "seq_lens": lens}


def _pool(
    pages: int, page_size: int, dialect: str, table: Tensor, names: tuple[str, ...], generator: Generator
) -> Tensor:
    """Keys on the pages of the table, NaN everywhere else; pages start 16 bytes apart at least."""
    used = page_size * TOKEN
    pool = torch.full((pages, -(-used // 16) * 16), NAN_BYTE, dtype=torch.uint8)
    known = {page for page in table.flatten().tolist() if 0 <= page < pages}
    if "poisoned_slot_zero" in names and known - {0}:
        known.discard(0)
        table[table == 0] = min(known)
    slots = torch.tensor([page * page_size + slot for page in sorted(known) for slot in range(page_size)])
    if len(slots):
        store_keys(pool, page_size, slots.to(torch.int64), dialect, generator)
    return pool[:, :used]


def _queries(rows: int, heads: int, dialect: str, generator: Generator) -> tuple[Tensor, Tensor]:
    """Codes [rows, heads, 128] and weights of either sign with every constant factor in them."""
    codes, scales = quantised_queries((rows, heads), dialect, generator)
    gates = torch.randn(rows, heads, generator=generator)
    return codes, gates * scales * HEAD_DIM**-0.5 * heads**-0.5


def _apart(values: Tensor, names: tuple[str, ...], alignment: int) -> Tensor:
    """Rows with gaps, or elements too where `alignment` is 0, or off their alignment, where a hazard asks for it."""
    step = 3 if "strided" in names and alignment == 0 else 1
    gap = (alignment or 1) if "strided" in names else 0
    offset = max(alignment, 1) if "misaligned_base" in names else 0
    if not gap + offset:
        return values
    home = torch.full((*values.shape[:-1], step * values.shape[-1] + gap + offset), -7, dtype=torch.float32)
    home = home.to(values.dtype) if values.dtype != torch.uint8 else torch.full_like(home, NAN_BYTE).to(torch.uint8)
    view = home[..., offset : offset + step * values.shape[-1] : step]
    view.copy_(values)
    return view


def _expected(
    op: str, inputs: Mapping[str, object], chosen: Mapping[str, object], rows: int, width: int
) -> tuple[Tensor, Tensor]:
    """The reference's logits and where it writes: what two fillings of the output do not share."""
    results = []
    for filling in (0.0, 1.0):
        out = torch.full((rows, width), filling, dtype=torch.float64)
        named = {name: value for name, value in inputs.items() if name != "cache"}
        getattr(reference, op)(**named, pool=inputs["cache"], out=out, **chosen)
        results.append(out)
    first, second = results
    return first, (first == second) | torch.isnan(first)
