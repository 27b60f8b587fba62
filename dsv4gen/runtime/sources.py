"""Cut one kernel out of a generated source, and trace a compiler's message back to the template line.

A HIP/CUDA source is a device layer, a kernel body, and entries, each introduced by a marker. Every entry needs
the two sections in front and nothing of the others, so a cold start compiles just the kernel it launches.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dsv4gen.base.entries import MARK
from dsv4gen.base.errors import CompileError, ManifestError, Place

#: `topk.cu(33): error: ...` of NVRTC and `topk.hip:33:5: error: ...` of clang
_MESSAGE = re.compile(r"^[^\s():]+(?:\((\d+)\)|:(\d+)(?::\d+)?): (?:fatal |catastrophic )?error:? ?(.*)$", re.MULTILINE)
_SHOWN = 5


class Slice(NamedTuple):
    """Source text that holds only the wanted entries; `lines[i]` is the whole file's line behind line i + 1."""

    name: str
    text: str
    lines: tuple[int, ...]


def slice_source(name: str, text: str, symbols: Iterable[str]) -> Slice:
    """The sections in front of the first entry, and the wanted entries in file order.

    Raises:
        ManifestError: the source has no entry of that name, so it does not belong to its manifest.
    """
    lines: list[int] = []
    kept: list[str] = []
    for piece, first, wanted in _pieces(name, text, symbols):
        if wanted:
            kept.append(piece)
            lines += range(first, first + piece.count("\n"))
    return Slice(name, "".join(kept), tuple(lines))


def blank_others(name: str, text: str, symbols: Iterable[str]) -> str:
    """The source with empty lines in place of the other entries, so that every line keeps its number.

    Raises:
        ManifestError: as `slice_source`.
    """
    pieces = _pieces(name, text, symbols)
    return "".join(piece if wanted else "\n" * piece.count("\n") for piece, _, wanted in pieces)


def _pieces(name: str, text: str, symbols: Iterable[str]) -> Iterator[tuple[str, int, bool]]:
    """What is in front of the entries, and each entry: its text, the number of its first line, and if it is wanted."""
    wanted = set(symbols)
    marks = list(MARK.finditer(text))
    missing = sorted(wanted - {mark[1] for mark in marks})
    if missing:
        raise ManifestError(f"{name} has no kernel {', '.join(missing)}", remedy="run: dsv4gen build")
    starts = [mark.start() for mark in marks]
    yield text[: starts[0]], 1, True
    line = 1 + text.count("\n", 0, starts[0])
    for mark, start, end in zip(marks, starts, [*starts[1:], len(text)], strict=True):
        yield text[start:end], line, mark[1] in wanted
        line += text.count("\n", start, end)


def compile_error(source: Slice, log: str, what: str, folder: Path) -> CompileError:
    """The compiler's first complaints, placed at the template line of the first one."""
    found = [(int(match[1] or match[2]), match[3]) for match in _MESSAGE.finditer(log)]
    if not found:
        return CompileError(f"{what} was refused:\n{log.strip()[-2000:]}")
    places = [(_place(source, line, folder), message) for line, message in found[:_SHOWN]]
    more = f"\n  and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    rest = "".join(f"\n  {place}: {message}" for place, message in places[1:])
    return CompileError(f"{places[0][1]} [{what}]{rest}{more}", place=places[0][0])


def _place(source: Slice, line: int, folder: Path) -> Place:
    whole = source.lines[line - 1] if 1 <= line <= len(source.lines) else line
    return _origin(folder / "maps" / f"{source.name}.json", whole) or Place(source.name, whole)


def _origin(map_file: Path, line: int) -> Place | None:
    """The template line behind a line of a generated file, from the run-length map beside it."""
    try:
        data: dict[str, Any] = json.loads(map_file.read_text(encoding="utf-8"))
        run = max((run for run in data["runs"] if run[0] <= line), key=lambda run: int(run[0]))
        return Place(f"templates/{data['templates'][run[1]]}", run[2] + line - run[0])
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return None
