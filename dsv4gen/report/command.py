"""`dsv4gen report` without the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dsv4gen.base import paths
from dsv4gen.base.errors import EXIT_FINDINGS, UsageError
from dsv4gen.console import emit_json, say
from dsv4gen.emit.select import select_targets
from dsv4gen.report.collect import collect
from dsv4gen.report.model import WRONG


def run(
    targets: Sequence[str],
    families: Sequence[str],
    cell: str,
    html: Path | None,
    verify_files: Sequence[Path],
    bench_files: Sequence[Path],
    as_json: bool,
) -> int:
    """Collect, then print or write; the exit status: 1 where anything shown failed or is out of date.

    Raises:
        UsageError: a target, family or cell that does not exist.
        OutputError: a page that cannot be written.
    """
    if cell:
        targets, families = _narrowed(cell, targets, families)
        cell = f"{targets[0]}/{families[0]}"
    report = collect(targets, families, verify_files, bench_files)
    if as_json:
        emit_json(report.to_json())
    elif cell:
        from dsv4gen.report.terminal import show_cell

        return EXIT_FINDINGS if any(stage.state in WRONG for stage in show_cell(report, cell).stages) else 0
    elif html is None:
        from dsv4gen.report.terminal import show

        show(report)
    if html is not None:
        from dsv4gen.report.html import write_html

        file = write_html(report, html)
        if not as_json:
            say(f"wrote {paths.display(file)}: {len(report.cells)} cells", "good")
    return 0 if report.clean else EXIT_FINDINGS


def _narrowed(cell: str, targets: Sequence[str], families: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The one target and family that a cell names; nothing else is looked at for it."""
    word, _, family = cell.partition("/")
    if not (word and family):
        raise UsageError(f"no cell {cell!r}", remedy="name one as TARGET/FAMILY")
    (target, *more) = select_targets((word,))
    if more or (targets and target not in targets) or (families and family not in families):
        raise UsageError(f"no one cell {cell!r} of those asked for", remedy="name one as TARGET/FAMILY")
    return (target,), (family,)
