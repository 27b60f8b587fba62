"""One picture of a result: our time, the floor and the peers over the cells of each family."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from dsv4gen.base.errors import ToolMissing, UsageError
from dsv4gen.base.outputs import write_whole
from dsv4gen.bench.result import WAYS, Result, Row
from dsv4gen.bench.show import machine_line, telling_axes

_WIDTH, _HEIGHT = 12.0, 4.0


def require_plot(path: Path) -> None:
    """Make sure that `plot` can draw to a file of this name.

    Raises:
        ToolMissing: matplotlib is not installed.
        UsageError: an ending that stands for no format.
    """
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        raise ToolMissing(f"--plot needs matplotlib: {error}", remedy="pip install 'dsv4gen[bench]'") from error
    formats = FigureCanvasBase.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in formats:
        remedy = f"end its name in one of {', '.join(sorted(formats))}"
        raise UsageError(f"--plot {path}: {path.suffix or 'no ending'} stands for no format", remedy=remedy)


def plot(result: Result, path: Path) -> None:
    """Draw to a file; its ending chooses the format.

    Raises:
        ToolMissing: matplotlib is not installed.
        UsageError: an ending that stands for no format.
        OutputError: the file cannot be written.
    """
    require_plot(path)
    from matplotlib.figure import Figure

    families = list(dict.fromkeys(row.cell.family for row in result.rows if row.times))
    figure = Figure(figsize=(_WIDTH, _HEIGHT * max(1, len(families))), layout="constrained")
    figure.suptitle(machine_line(result), fontsize="small")
    for number, family in enumerate(families):
        axes = figure.add_subplot(len(families), 1, number + 1)
        _draw(axes, family, [row for row in result.rows if row.cell.family == family and row.times])
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix.lstrip(".").lower())
    write_whole(path, drawn.getvalue())


def _draw(axes: Any, family: str, rows: list[Row]) -> None:
    positions = range(len(rows))
    axes.plot(positions, [row.times[WAYS[0]].us for row in rows], "o-", label="dsv4gen")
    axes.plot(positions, [row.floor_us for row in rows], "--", color="gray", label="floor")
    for name in dict.fromkeys(name for row in rows for name in row.peers):
        theirs = [row.peers.get(name) for row in rows]
        values = [peer.times[WAYS[0]].us if peer and peer.times else float("nan") for peer in theirs]
        axes.plot(positions, values, ".", label=name)
    axes.set_yscale("log")
    axes.set_ylabel("us per call")
    axes.set_title(family)
    names = telling_axes(rows)
    words = [" ".join(f"{axis} {row.cell.shape[axis]}" for axis in names if axis in row.cell.shape) for row in rows]
    axes.set_xticks(list(positions), words, rotation=90, fontsize=5)
    axes.legend(fontsize="small")
