"""A family's manifest entry -> the tables of paths, tiles, decisions and proofs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dsv4gen.base.errors import DsvError
from dsv4gen.base.manifest import Manifest
from dsv4gen.base.tiles import tile_words
from dsv4gen.report.model import Decision, Path, Proof, Tile
from dsv4gen.runtime.dispatch import decide, usual_facts, with_facts

Json = Mapping[str, Any]


def paths_of(entry: Json) -> Iterator[Path]:
    """Launch paths of every op, in the order in which they are tried."""
    for op, table in entry["ops"].items():
        for path in table["paths"]:
            rejected = path["rejected"]
            yield Path(
                op=op,
                name=path["name"],
                variant=path["variant"] or "",
                domain=path["domain"]["text"],
                prefer=path["prefer"]["text"],
                launches=tuple(launch["kernel"] for launch in path["launches"]),
                rejected=rejected["reason"] if rejected else "",
                key=rejected["key"] if rejected else path["key"],
            )


def tiles_of(entry: Json) -> Iterator[Tile]:
    """Tiles in use, then those that were refused, kernel by kernel."""
    for name, kernel in entry["kernels"].items():
        for bucket in kernel["buckets"]:
            yield Tile(name, tile_words(bucket["tile"]), bucket["when"]["text"], bucket["origin"])
        for refused in kernel["refused_tiles"]:
            yield Tile(name, tile_words(refused["tile"]), "", "", refused["reason"])


def proofs_of(entry: Json) -> Iterator[Proof]:
    """The proof table."""
    for proof in entry["proofs"]:
        yield Proof(proof["subject"], *proof["cells"])


def decisions_of(family: str, entry: Json, manifest: Manifest) -> Iterator[Decision]:
    """What the shapes that the spec lists take, each outcome once."""
    seen = set()
    for op, options, shape in _shapes(entry):
        try:
            sizes = with_facts(entry, op, shape, usual_facts(manifest.target))
            made = decide(family, entry, manifest.target["name"], op, sizes, options, environ={})
        except DsvError:
            continue  # a shape of another op
        symbols = tuple(launch.symbol for launch in made.launches)
        if (op, made.path, symbols) in seen:
            continue
        seen.add((op, made.path, symbols))
        because = next(considered.reason for considered in made.considered if considered.taken)
        words = " ".join(f"{name}={value}" for name, value in {**options, **shape}.items())
        yield Decision(op, words, made.path, because, symbols)


def _shapes(entry: Json) -> Iterator[tuple[str, Mapping[str, str], Mapping[str, int]]]:
    """(op, options, shape) of every listed shape; a list without an op is tried on every op."""
    for listed in entry.get("bench", {}).values():
        for shape in listed["shapes"]:
            yield listed["op"], listed["options"], shape
    for op in entry["ops"]:
        for shape in [*entry["shapes"].get("test", ()), *entry["shapes"].get("bench", ())]:
            yield op, {}, shape
