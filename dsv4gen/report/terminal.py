"""The report on a terminal: the matrix, then everything that needs attention; or one cell with its reasons."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dsv4gen.base.errors import UsageError, did_you_mean
from dsv4gen.report.model import STAGES, Cell, Report, State

GLYPHS: dict[State, tuple[str, str]] = {
    "yes": ("✓", "green"),
    "part": ("◐", "yellow"),
    "no": ("·", "bright_black"),
    "never": ("–", "bright_black"),
    "stale": ("△", "yellow"),
    "failed": ("✗", "red"),
}
LEGEND = "✓ done  ◐ in part  · not done  – needs hardware that was not at hand  △ out of date  ✗ failed"


def show(report: Report) -> None:
    """Print the matrix, the inputs and what needs attention."""
    console = _console(24 + 24 * len(report.families))
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("target", no_wrap=True, style="bold")
    for family in report.families:
        table.add_column(family.name, no_wrap=True)
    for target in report.targets:
        table.add_row(target.name, *(_words(report.cell(target.name, family.name)) for family in report.families))
    console.print(table)
    console.print(f"in order: {', '.join(STAGES)}.  {LEGEND}", style="bright_black")
    for line in (*report.inputs, "AMD results are emulated on a CPU, not measured on AMD hardware."):
        console.print(line, style="bright_black")
    for problem in report.problems:
        console.print(f"✗ {problem}", style="red")
    for cell in report.cells:
        for stage in cell.wrong:
            glyph, style = GLYPHS[stage.state]
            first = f": {stage.reasons[0]}" if stage.reasons else ""
            console.print(f"{glyph} {cell.id} {stage.name}: {stage.text}{first}", style=style)


def show_cell(report: Report, name: str) -> Cell:
    """Print one cell, named `TARGET/FAMILY`: its stages with every reason, its paths and refused tiles.

    Raises:
        UsageError: no such cell.
    """
    cells = {cell.id: cell for cell in report.cells}
    if name not in cells:
        raise UsageError(f"no cell {name!r}{did_you_mean(name, cells)}", remedy="name one as TARGET/FAMILY")
    cell = cells[name]
    console = _console(100)
    console.print(Text(f"{cell.family} on {cell.target}: {cell.headline}", style="bold"))
    for stage in cell.stages:
        glyph, style = GLYPHS[stage.state]
        console.print(Text.assemble((f"{glyph} ", style), (f"{stage.name:<9}", "bold"), stage.text))
        for reason in stage.reasons:
            console.print(Text(f"            {reason}", style="bright_black"))
    _print_rows(
        console,
        "launch paths",
        (f"{path.op}.{path.name}: {_because(path.rejected, path.prefer)}" for path in cell.paths),
    )
    _print_rows(console, "refused tiles", (f"{tile.kernel}: {tile.refused}" for tile in cell.tiles if tile.refused))
    return cell


def _because(rejected: str, prefer: str) -> str:
    return f"rejected, {rejected}" if rejected else f"where {prefer}"


def _print_rows(console: Console, title: str, rows: Iterable[str]) -> None:
    lines = list(rows)
    if lines:
        console.print(Text(title, style="bold"))
    for line in lines:
        console.print(Text(f"  {line}"))


def _words(cell: Cell) -> Text:
    """Five glyphs, one per stage, and the headline."""
    text = Text()
    for stage in cell.stages:
        glyph, style = GLYPHS[stage.state]
        text.append(glyph, style=style)
    return text.append(f" {cell.headline}", style=GLYPHS[cell.state][1] if cell.state in ("failed", "stale") else "")


def _console(least: int) -> Console:
    """Plain and wide enough for the matrix where the output is no terminal; never wrapping words there."""
    if sys.stdout.isatty():
        return Console(highlight=False, markup=False)
    return Console(highlight=False, markup=False, width=max(least, 400), color_system=None, soft_wrap=True)
