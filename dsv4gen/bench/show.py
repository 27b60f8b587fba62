"""Results and comparisons as tables, for a terminal or as Markdown."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import click

from dsv4gen.bench.compare import Change, Comparison
from dsv4gen.bench.result import WAYS, Result, Row
from dsv4gen.console import say, table

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]


def show(result: Result, *, markdown: bool = False) -> None:
    """Machine, one table per family, and what was left out."""
    say(machine_line(result))
    rate = result.rates
    say(
        f"floors: {rate.bytes_per_s / 1e12:.2f} TB/s, {rate.flops_per_s / 1e12:.0f} TFLOP/s bf16, measured here; "
        f"a torch kernel on one element takes {rate.empty_us:.2f} us in a chain"
    )
    for family in dict.fromkeys(row.cell.family for row in result.rows):
        rows = [row for row in result.rows if row.cell.family == family]
        head, cells = family_table(rows)
        say()
        _markdown(head, cells) if markdown else table(head, cells)
        for line in summary(rows):
            say(line)
    say()
    for name, reason in result.missing.items():
        say(f"peer {name}: not here ({reason})", "dim")
    for row in result.rows:
        if row.problem:
            say(f"{row.cell}: {row.problem}", "bad")
    for name, problem in _peer_problems(result.rows):
        say(f"peer {name}: {problem}", "dim")
    if result.untimed:
        say(f"interrupted: {len(result.rows)} of {len(result.rows) + result.untimed} cells were timed", "bad")


@contextmanager
def progress_bar() -> Iterator[tuple[Callable[[int], None], Callable[[Row], None]]]:
    """Two functions, to be told how many cells there are and of each that is done: a bar on a terminal, else lines."""
    if not sys.stderr.isatty():
        yield lambda count: click.echo(f"{count} cells", err=True), lambda row: click.echo(_done(row), err=True)
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("timing", total=None)
        yield (
            lambda count: bar.update(task, total=count),
            lambda row: bar.update(task, advance=1, description=str(row.cell)),
        )


def _done(row: Row) -> str:
    return f"{row.cell}: {row.problem or f'{row.times[WAYS[0]].us:.2f} us'}"


def machine_line(result: Result) -> str:
    """Date, card and versions."""
    words = [result.date, result.machine.get("device", "?")]
    return ", ".join(words + [f"{name} {text}" for name, text in result.machine.items() if name != "device"])


def family_table(rows: Sequence[Row]) -> Table:
    """One line per cell: shape, times, what part of the floor, peers and our time over theirs."""
    axes = telling_axes(rows)
    options = sorted({name for row in rows for name in row.cell.options if _differs(rows, name)})
    peers = list(dict.fromkeys(name for row in rows for name, found in row.peers.items() if found.times))
    ways = [way for way in WAYS if any(way in row.times for row in rows)]
    head = ["list", *axes, *options, *(f"{way} us" for way in ways), "floor us", "x floor"]
    head += [word for peer in peers for word in (f"{peer} us", "ratio")]
    cells = []
    for row in rows:
        line = [row.cell.group, *(str(row.cell.shape.get(axis, "-")) for axis in axes)]
        line += [row.cell.options[name] for name in options]
        line += [_us(row, way) for way in ways]
        timed = row.times.get(WAYS[0])
        line += [f"{row.floor_us:.2f}", f"{timed.us / row.floor_us:.2f}" if timed and row.floor_us else "-"]
        for peer in peers:
            theirs = row.peers[peer].times.get(WAYS[0]) if peer in row.peers else None
            line += [f"{theirs.us:.2f}", f"{timed.us / theirs.us:.2f}"] if theirs and timed else ["-", "-"]
        cells.append(tuple(line))
    return tuple(head), cells


def summary(rows: Sequence[Row]) -> list[str]:
    """Geometric means of our time over each peer's."""
    found: dict[str, list[float]] = {}
    for row in rows:
        for name, peer in row.peers.items():
            if peer.times and row.times:
                found.setdefault(name, []).append(row.times[WAYS[0]].us / peer.times[WAYS[0]].us)
    return [f"geometric mean of ours / {name}: {_geometric(r):.2f} over {len(r)} cells" for name, r in found.items()]


def show_comparison(comparison: Comparison) -> None:
    """Changed cells, and a line for everything else."""
    for name, old, new in comparison.differences:
        say(f"{name} was {old}, is {new}", "dim")
    changed = [change for change in comparison.changes if change.verdict != "same"]
    if changed:
        changed.sort(key=lambda change: -change.ratio)
        table(("verdict", "cell", "old us", "new us", "ratio", "noise"), [_change_cells(change) for change in changed])
    for row in comparison.broken:
        say(f"broken: {row.cell}: {row.problem}", "bad")
    for title, cells in (("not timed now", comparison.missing), ("new", comparison.added)):
        if cells:
            say(f"{title}: {len(cells)} cells", "dim")
    same = len(comparison.changes) - len(changed)
    text = f"{len(comparison.slower)} slower, {len(changed) - len(comparison.slower)} faster, {same} within noise"
    say(text, "good" if comparison.passed else "bad")


def _change_cells(change: Change) -> tuple[str, ...]:
    numbers = (change.old.us, change.new.us, change.ratio, change.bound)
    return change.verdict, str(change.cell), *(f"{number:.2f}" for number in numbers)


def telling_axes(rows: Sequence[Row]) -> list[str]:
    """Axes that tell the cells of a list apart."""
    lists: dict[str, list[Row]] = {}
    for row in rows:
        lists.setdefault(row.cell.group, []).append(row)
    names = dict.fromkeys(axis for row in rows for axis in row.cell.shape)
    return [axis for axis in names if len(rows) == 1 or any(_several(members, axis) for members in lists.values())]


def _several(rows: Sequence[Row], axis: str) -> bool:
    return len({row.cell.shape.get(axis) for row in rows}) > 1


def _differs(rows: Sequence[Row], option: str) -> bool:
    return len({row.cell.options[option] for row in rows}) > 1


def _us(row: Row, way: str) -> str:
    return f"{row.times[way].us:.2f}" if way in row.times else "-"


def _geometric(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def _peer_problems(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """Each problem once, with the number of cells it came up in."""
    counts: dict[tuple[str, str], int] = {}
    for row in rows:
        for name, peer in row.peers.items():
            if peer.problem:
                counts[name, peer.problem] = counts.get((name, peer.problem), 0) + 1
    return [(name, f"{problem} ({count} cells)") for (name, problem), count in counts.items()]


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    for cells in (head, ["---"] * len(head), *rows):
        say(f"| {' | '.join(cells)} |")
