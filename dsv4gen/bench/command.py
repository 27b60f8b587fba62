"""`dsv4gen bench` without the command line: from what is asked for to a result."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dsv4gen.base.errors import LoadError, UsageError
from dsv4gen.base.manifest import Manifest
from dsv4gen.bench import machine
from dsv4gen.bench.cells import Wanted, cells_of, option_defaults
from dsv4gen.bench.compare import NOISE, suspects
from dsv4gen.bench.peers import names, open_peers
from dsv4gen.bench.result import NO_DEFAULTS, WAYS, Defaults, Result, Row
from dsv4gen.bench.run import Bench
from dsv4gen.bench.stopwatch import CudaStopwatch
from dsv4gen.runtime.platform import Device


@dataclass(frozen=True)
class Asked:
    """The words of the command line.

    Attributes:
        families: all generated ones when empty.
        peers: names, `none`, or nothing for all that are installed.
        device: torch's number of the card.
        ways: how to time.
    """

    families: Sequence[str]
    wanted: Wanted
    peers: Sequence[str] = ()
    device: int = 0
    ways: Sequence[str] = WAYS


def run(
    asked: Asked, old: Result | None = None, noise: float = NOISE, started: Callable[[int], None] = lambda _: None,
    progress: Callable[[Row], None] = lambda _: None,
) -> Result:  # fmt: skip
    """Time on the card. Cells that look slower than in `old` are timed a second time, and the faster one counts.

    Raises:
        LoadError: no card, or no family of that name.
        UsageError, ArgumentError: words that fit nothing.
    """
    import dsv4gen
    from dsv4gen.runtime.load import any_entry

    peers, versions, missing = open_peers(_peers(asked.peers))
    for name in asked.families:
        cells_of(name, any_entry(name), asked.wanted)
    card = machine.card(asked.device)
    manifests = {name: manifest_for(name, card) for name in asked.families or served(card)}
    entries = {name: manifest.families[name] for name, manifest in manifests.items()}
    cells = [cell for name, entry in entries.items() for cell in cells_of(name, entry, asked.wanted)]
    stopwatch = CudaStopwatch(asked.device)
    device = f"cuda:{asked.device}"
    rates = machine.rates(stopwatch, device)
    bench = Bench(entries, _loader(dsv4gen.load, device), stopwatch, rates, device, peers, asked.ways)
    defaults = {name: option_defaults(entry) for name, entry in entries.items()}
    started(len(cells))
    rows = bench.run(cells, progress)
    untimed = len(cells) - len(rows)
    if old is not None and not untimed:
        rows = second_look(bench, old, rows, noise, defaults)
    described = {**machine.describe(asked.device), **{name: text for name, text in versions.items() if name != "torch"}}
    digests = {name: manifest.family_digest(name) for name, manifest in manifests.items()}
    today = datetime.date.today().isoformat()
    return Result(today, described, rates, tuple(rows), missing, digests, defaults, untimed)


def second_look(
    bench: Bench, old: Result, rows: Sequence[Row], noise: float, defaults: Defaults = NO_DEFAULTS
) -> list[Row]:
    """Rows with those that look slower timed again without peers; the faster of both times stays."""
    again = {row.cell.key: replace(bench, peers={}).row(row.cell) for row in suspects(old, rows, noise, defaults)}

    def better(row: Row) -> Row:
        other = again.get(row.cell.key)
        if other is None or other.problem or other.times[WAYS[0]].us >= row.times[WAYS[0]].us:
            return row
        return replace(row, times=other.times)

    return [better(row) for row in rows]


def served(card: Device) -> list[str]:
    """Families that are generated for a card.

    Raises:
        LoadError: none is.
    """
    from dsv4gen.base import paths
    from dsv4gen.runtime import selection
    from dsv4gen.runtime.load import families

    root = paths.generated()

    def accepted(name: str) -> bool:
        judged = selection.candidates(name, card.target, root) if card.target else ()
        return any(isinstance(one, selection.Accepted) for one in judged)

    found = [name for name in families() if accepted(name)]
    if not found:
        remedy = "run: dsv4gen build --target, with the card's target"
        raise LoadError(f"nothing is generated for {card} in {paths.display(root)}", remedy=remedy)
    return found


def manifest_for(family: str, card: Any) -> Manifest:
    """The manifest that `load` takes a family from on a card.

    Raises:
        LoadError: nothing is generated for it.
    """
    from dsv4gen.base import paths
    from dsv4gen.runtime import selection

    return selection.choose(family, card.target, str(card), paths.generated()).manifest


def _peers(words: Sequence[str]) -> Sequence[str]:
    if "none" not in words:
        return words or names()
    if len(words) > 1:
        raise UsageError("--peers none excludes every other peer")
    return ()


def _loader(load: Callable[..., Any], device: str) -> Callable[..., Any]:
    kept: dict[tuple[Any, ...], Any] = {}

    def cached(family: str, **options: str) -> Any:
        key = (family, tuple(sorted(options.items())))
        if key not in kept:
            kept[key] = load(family, device=device, **options)
        return kept[key]

    return cached
