"""What launches reach: options with which some call launches a kernel, and optional row paths that its rows can take.

A launch is one of a path whose `domain` holds, with the tile of the first bucket that holds. `prefer` does not count,
nor do earlier launch paths: where a device refuses those, any path whose domain holds may stand in. Where the solver
cannot decide, the answer is yes, so that more is emitted, never less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from dsv4gen.base.expression_json import Value
from dsv4gen.plan.ir import Axis, Bucket, RowPath, Tile
from dsv4gen.plan.paths import choices_of, make_launch_paths, proof_axes
from dsv4gen.plan.reader import Reader, with_tile
from dsv4gen.prove import Expr
from dsv4gen.prove.reach import first_of, some_shape


class Reach:
    """The launches of one kernel on one target."""

    def __init__(self, reader: Reader, kernel: str, buckets: Sequence[Bucket], axes: Sequence[Axis]) -> None:
        self._reader = reader
        self._paths = [
            path.domain
            for op in reader.spec.ops
            for path, spec in zip(make_launch_paths(reader, op), reader.spec.ops[op].launch_paths, strict=True)
            if kernel in spec.launches and path.rejected is None
        ]
        self._buckets = buckets
        self._axes = proof_axes(axes, device=True)

    def launched(self, options: Mapping[str, str]) -> bool:
        """Whether some call launches the kernel with these options; the others may be anything."""
        return any(
            some_shape(self._axes, [first_of([path], values)])
            for path in self._paths
            for values in self._combinations([path], options)
        )

    def row_paths(self, rows: Sequence[RowPath], tile: Tile, options: Mapping[str, str]) -> tuple[str, ...]:
        """Names of the row paths in order, without optional ones that no launch of the tile takes."""
        prefers = [with_tile(row.prefer, tile) for row in rows]
        return tuple(
            row.name
            for number, row in enumerate(rows)
            if not row.optional or self._taken(prefers[: number + 1], tile, options)
        )

    def _taken(self, rows: Sequence[Expr], tile: Tile, options: Mapping[str, str]) -> bool:
        """Whether a call launches the tile on a row that takes the last of `rows`."""
        whens = [bucket.when for bucket in self._buckets]
        chains = [whens[: number + 1] for number, bucket in enumerate(self._buckets) if bucket.tile == tile]
        return any(
            some_shape(self._axes, [first_of(table, values) for table in ([path], chain, rows)], likely=False)
            for path in self._paths
            for chain in chains
            for values in self._combinations([path, *chain, *rows], options)
        )

    def _combinations(self, read: Iterable[Expr], options: Mapping[str, str]) -> Iterator[Mapping[str, Value]]:
        """The options with every choice of the others that predicates read."""
        names = (name for expr in read for name in expr.names)
        free = {name: values for name, values in choices_of(self._reader, names).items() if name not in options}
        for values in product(*free.values()):
            yield {**dict(zip(free, values, strict=True)), **options}
