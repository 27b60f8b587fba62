"""How results reach a terminal or a pipe: tables, colours on a terminal only, JSON on request."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence

import click

from dsv4gen.base.errors import DsvError, UsageError

#: blocks along an axis of any grid
_GRID_MAX = 2**31 - 1
_STYLES = {"good": "green", "bad": "red", "dim": "bright_black", "head": "bold"}


def say(text: str = "", style: str = "") -> None:
    """One line on standard output; colour only on a terminal and without NO_COLOR."""
    colour = _STYLES.get(style)
    if not colour or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        click.echo(text)
    elif colour == "bold":
        click.secho(text, bold=True)
    else:
        click.secho(text, fg=colour)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns padded with blanks; numbers to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(head), *cells]) for i in range(len(head))]
    numeric = [bool(cells) and all(_is_number(row[i]) for row in cells) for i in range(len(head))]

    def line(row: Sequence[str]) -> str:
        padded = (c.rjust(w) if n else c.ljust(w) for c, w, n in zip(row, widths, numeric, strict=True))
        return "  ".join(padded).rstrip()

    say(line(list(head)), "head")
    for row in cells:
        say(line(row))


def _is_number(cell: str) -> bool:
    return cell.replace(".", "", 1).replace(",", "").lstrip("-").isdigit() or cell == "-"


def emit_json(value: object) -> None:
    """JSON for other programs, sorted keys."""
    click.echo(json.dumps(value, sort_keys=True, indent=1, default=str))


def report_error(error: DsvError) -> None:
    """An error as users see it: code, place, message, remedy; several one below the other."""
    for single in getattr(error, "errors", (error,)):
        click.secho(f"error[{single.code}] ", fg="red", bold=True, nl=False, err=True)
        click.echo(str(single), err=True)


def parse_shape(words: Iterable[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Trailing KEY=VALUE words: whole numbers are axes, other words are options.

    Raises:
        UsageError: a word without '=', an empty key or value, or a key that is given twice.
    """
    shape: dict[str, int] = {}
    options: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not (key and equals and value):
            raise UsageError(f"{word!r} is not KEY=VALUE", remedy="write shapes as batch=4 width=131072 k=512")
        if key in shape or key in options:
            remedy = f"leave out {key}={shape.get(key, options.get(key))} or {word}"
            raise UsageError(f"{key} is given twice", remedy=remedy)
        try:
            shape[key] = int(value)
        except ValueError:
            options[key] = value
    return shape, options


def family_and_words(family: str | None, words: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """The family that a command names, if any, and its words: without a family, the first word stands in its place."""
    return (None, (family, *words)) if family and "=" in family else (family, tuple(words))


def parse_grid(text: str) -> tuple[int, ...]:
    """Blocks per dimension from X, X,Y or X,Y,Z.

    Raises:
        UsageError: not one to three positive whole numbers below 2^31.
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > 3 or not all(part.isdecimal() and len(part) <= 10 and 0 < int(part) <= _GRID_MAX for part in parts):
        raise UsageError(f"--grid {text!r} is not X, X,Y or X,Y,Z", remedy="write blocks per dimension as --grid 4,1,1")
    return tuple(int(part) for part in parts)
