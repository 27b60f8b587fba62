"""Kernels: tiles that fit this target, buckets, emitted instances; every claim of the spec proven."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from dsv4gen.base.errors import ProofError, raise_all
from dsv4gen.base.expression_json import Value
from dsv4gen.base.tiles import tile_words
from dsv4gen.plan.ir import Axis, Bucket, Instance, Kernel, Proof, RowPath, Tile
from dsv4gen.plan.paths import axis_ranges, proof_axes, used_choices
from dsv4gen.plan.reach import Reach
from dsv4gen.plan.reader import Reader, with_tile
from dsv4gen.plan.spills import make_spills
from dsv4gen.prove import CoverageProof, Expr, FitProof, PathRule, prove_buckets, prove_coverage, prove_fit, prove_width
from dsv4gen.spec.family import Kernel as KernelSpec
from dsv4gen.spec.kernel_references import visible_tile
from dsv4gen.spec.tuning import TuningRow
from dsv4gen.target.occupancy import second_bound


def make_kernel(reader: Reader, name: str, axes: Sequence[Axis]) -> tuple[Kernel, list[Proof]]:
    """One kernel with its proofs.

    Raises:
        ProofError: a bucket's tile that does not fit, a gap or a dead branch, an index too wide for its type.
    """
    spec = reader.spec.kernels[name]
    fit = _Fit.of(reader, name, spec)
    _require_fit(reader, name, fit)
    buckets = _buckets(reader, name, spec)
    used = _distinct(bucket.tile for bucket in buckets)
    proofs = [Proof(name, _prove_buckets(reader, name, buckets, axes))]
    for tile in used:
        proofs += [Proof(f"{name} {tile_words(tile)}", proof) for proof in fit.prove(tile)]
        proofs += _prove_tile(reader, name, spec, tile, axes)
    legal, refused = _sort_tiles(fit, spec)
    row_paths = _row_paths(reader, name, spec)
    reach = Reach(reader, name, buckets, axes)
    kernel = Kernel(
        name=name,
        entry=spec.entry,
        row_paths=row_paths,
        tiles=legal,
        refused_tiles=refused,
        buckets=buckets,
        instances=tuple(_instances(reader, name, fit, used, row_paths, reach)),
        spills=make_spills(reader, name),
        place=reader.place("kernels", name, "symbol"),
    )
    return kernel, proofs


def _row_paths(reader: Reader, name: str, spec: KernelSpec) -> tuple[RowPath, ...]:
    keys = ("kernels", name, "row_paths")
    return tuple(
        RowPath(
            path.name,
            reader.expr(path.domain, *keys, index, "domain", extra=spec.tiles),
            reader.expr(path.prefer, *keys, index, "prefer", extra=spec.tiles),
            path.optional,
        )
        for index, path in enumerate(spec.row_paths)
    )


def _buckets(reader: Reader, name: str, spec: KernelSpec) -> tuple[Bucket, ...]:
    """Buckets in order; those whose predicate the target's facts fold to false are not there."""
    if reader.tuning is not None and name in reader.tuning.model.kernels:
        return _tuned_buckets(reader.of_tuning(), name, reader.tuning.model.kernels[name])
    found = []
    for index, bucket in enumerate(spec.buckets):
        when = reader.expr(bucket.when, "kernels", name, "buckets", index, "when")
        if when.constant is not False:
            found.append(Bucket(when, dict(bucket.tile), f"kernels.{name}.buckets[{index}]"))
            _require_own_symbol(reader, name, found, index)
    return tuple(found)


def _require_own_symbol(reader: Reader, name: str, buckets: Sequence[Bucket], index: int) -> None:
    """The last bucket's tile has a symbol of its own on this target.

    Raises:
        ProofError: an earlier bucket has another tile under the same symbol.
    """
    kernel, *others, last = (reader.spec.kernels[name], *buckets)
    for other in others:
        if visible_tile(kernel, other.tile) == visible_tile(kernel, last.tile) and other.tile != last.tile:
            raise ProofError(
                f"another bucket has a different tile under the same symbol on {reader.record.name}",
                place=reader.place("kernels", name, "buckets", index, "tile"),
                remedy="add the dimension that differs to the symbol",
            )


def _tuned_buckets(reader: Reader, name: str, rows: Sequence[TuningRow]) -> tuple[Bucket, ...]:
    """As the spec's; only predicate and tile of a row are used."""
    whens = (reader.expr(row.when, "kernels", name, index, "when") for index, row in enumerate(rows))
    return tuple(
        Bucket(when, dict(row.tile), f"tuning.kernels.{name}[{index}]")
        for index, (when, row) in enumerate(zip(whens, rows, strict=True))
        if when.constant is not False
    )


def _require_fit(reader: Reader, name: str, fit: _Fit) -> None:
    """Every tile of the tuning file fits the target as the spec is now.

    Raises:
        ProofError, Problems: all that do not, each at its row.
    """
    if reader.tuning is None or name not in reader.tuning.model.kernels:
        return
    errors: list[ProofError] = []
    for index, row in enumerate(reader.tuning.model.kernels[name]):
        try:
            fit.prove(dict(row.tile))
        except ProofError as error:
            place = reader.tuning.place("kernels", name, index, "tile")
            remedy = f"tune again: dsv4gen tune {reader.spec.family} --target {reader.record.name}"
            errors.append(ProofError(f"a stale row: {error.message}", place=place, remedy=remedy))
    raise_all(errors)


def _prove_buckets(reader: Reader, name: str, buckets: Sequence[Bucket], axes: Sequence[Axis]) -> CoverageProof:
    whens = [bucket.when for bucket in buckets]
    choices = used_choices(reader, map(PathRule.bucket, whens))
    tuned = reader.tuning is not None and name in reader.tuning.model.kernels
    place = reader.of_tuning().place("kernels", name) if tuned else reader.place("kernels", name, "buckets")
    return prove_buckets("buckets", whens, proof_axes(axes, device=False), choices=choices, place=place)


def _prove_tile(reader: Reader, name: str, spec: KernelSpec, tile: Tile, axes: Sequence[Axis]) -> list[Proof]:
    label = f"{name} {tile_words(tile)}"
    space = proof_axes(axes, device=True)
    proofs: list[Proof] = []
    rules = [
        PathRule(path.name, with_tile(path.domain, tile), with_tile(path.prefer, tile))
        for path in _row_paths(reader, name, spec)
    ]
    _require_words(rules, axes)
    if rules:
        place = reader.place("kernels", name, "row_paths")
        choices = used_choices(reader, rules)
        proofs.append(Proof(label, prove_coverage("row paths", rules, space, choices=choices, place=place)))
    for index_name, index in spec.indices.items():
        keys = ("kernels", name, "indices", index_name, "value")
        value = with_tile(reader.expr(index.value, *keys, extra=spec.tiles), tile)
        proofs.append(Proof(label, prove_width(index_name, value, space, index.bits, place=reader.place(*keys))))
    return proofs


def _require_words(rules: Iterable[PathRule], axes: Sequence[Axis]) -> None:
    """The device evaluates row predicates in 32-bit words; refuse one that needs more.

    Raises:
        ProofError: names the predicate.
    """
    ranges = axis_ranges(axes)
    for rule in rules:
        if rule.prefer.cpp_word(ranges) != "u32":
            raise ProofError(
                f"row path {rule.name}: {rule.prefer} does not fit the 32-bit words it is evaluated in",
                place=rule.prefer.place,
                remedy="bound its axes, or write it without subtraction",
            )


@dataclass(frozen=True)
class _Fit:
    """What a block of one kernel needs, as formulas over the tile, and the target's limits."""

    threads: Expr
    shared: Expr
    bounds: Mapping[str, tuple[Expr, int]]
    known: Mapping[str, Value]
    most_threads: int
    most_shared: int

    @classmethod
    def of(cls, reader: Reader, name: str, spec: KernelSpec) -> _Fit:
        """Read once per kernel: a kernel may have hundreds of tiles."""
        keys = ("kernels", name, "fits")
        threads = reader.raw(spec.fits.threads, *keys, "threads", extra=spec.tiles)
        shared = reader.raw(spec.fits.shared_bytes, *keys, "shared_bytes", extra=spec.tiles)
        bounds = {
            counted: (reader.raw(bound.value, *keys, "bounds", counted, "value", extra=spec.tiles), bound.most)
            for counted, bound in spec.fits.bounds.items()
        }
        read = (threads, shared, *(value for value, _ in bounds.values()))
        known = {name: value for expr in read for name, value in reader.values(expr).items()}
        limit = reader.record.proof_limit
        most_shared = limit("shared.block" if reader.spec.language == "triton" else "shared.static")
        return cls(threads, shared, bounds, known, limit("block.threads"), most_shared)

    def prove(self, tile: Tile) -> tuple[FitProof, ...]:
        """The tile's threads and shared memory against the limits, and what else the kernel bounds.

        Raises:
            ProofError: one of them does not fit.
        """
        known = self.known
        return (
            prove_fit("threads", tile, self.threads, self.most_threads, constants=known, unit="threads"),
            prove_fit("shared memory", tile, self.shared, self.most_shared, constants=known),
            *(
                prove_fit(counted, tile, value, most, constants=known, unit=counted)
                for counted, (value, most) in self.bounds.items()
            ),
        )


def _sort_tiles(fit: _Fit, spec: KernelSpec) -> tuple[tuple[Tile, ...], tuple[tuple[Tile, str], ...]]:
    """All tiles the spec allows: the ones that fit, and the ones that do not with the proof's words."""
    legal: list[Tile] = []
    refused: list[tuple[Tile, str]] = []
    for values in product(*spec.tiles.values()):
        tile = dict(zip(spec.tiles, values, strict=True))
        try:
            fit.prove(tile)
            legal.append(tile)
        except ProofError as error:
            refused.append((tile, error.message))
    return tuple(legal), tuple(refused)


def _instances(
    reader: Reader, name: str, fit: _Fit, tiles: Sequence[Tile], rows: Sequence[RowPath], reach: Reach
) -> Iterator[Instance]:
    """Of every combination of tile and options in the symbol, those with options that a call launches.

    All of them in Triton, which compiles what is called.
    """
    spec = reader.spec.kernels[name]
    wanted = [option for option in reader.spec.options if f"{{{option}}}" in spec.symbol]
    for tile in tiles:
        threads, shared, *_ = fit.prove(tile)
        for choices in product(*(reader.spec.options[option].choices for option in wanted)):
            options = dict(zip(wanted, choices, strict=True))
            if reader.spec.language == "hip_cuda" and not reach.launched(options):
                continue
            taken = reach.row_paths(rows, tile, options)
            symbol = spec.symbol.format_map({**options, **tile})
            blocks = with_tile(reader.expr(spec.min_blocks, "kernels", name, "min_blocks", extra=spec.tiles), tile)
            least = int(blocks.evaluate({}))
            second_bound(reader.record, threads.value, least)
            yield Instance(symbol, options, tile, threads.value, shared.value, least, taken)


def _distinct(tiles: Iterable[Tile]) -> list[Tile]:
    found: list[Tile] = []
    for tile in tiles:
        if tile not in found:
            found.append(tile)
    return found
