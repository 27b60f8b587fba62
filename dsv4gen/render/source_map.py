"""From output line to template line.

Jinja keeps no positions, so each template line gets an invisible marker before its first printed character;
the markers ride through macros, includes and loops and are taken out of the finished text. A line printed
without a marker belongs to the template line of the line above it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dsv4gen.base.errors import Place

_OPEN, _CLOSE = "\x01", "\x02"
_MARKER = re.compile(f"{_OPEN}([^{_CLOSE}]*):(\\d+){_CLOSE}")
_DELIMITER = re.compile(r"\{\{|\{%|\{#|\}\}|%\}|#\}")
_CLOSERS = {"{{": "}}", "{%": "%}", "{#": "#}"}


@dataclass(frozen=True)
class SourceMap:
    """Origin of each output line; line numbers count from 1 on both sides."""

    file: str
    origins: tuple[tuple[str, int], ...]

    def origin(self, line: int) -> Place | None:
        """The template line behind an output line, or None outside the file."""
        if not 1 <= line <= len(self.origins):
            return None
        template, number = self.origins[line - 1]
        return Place(f"templates/{template}", number)

    def with_template_lines(self, text: str) -> str:
        """A text whose places in the file, such as `topk.hip:12:3`, are followed by the template's."""

        def both(found: re.Match[str]) -> str:
            origin = self.origin(int(found[1]))
            return f"{found[0]} = {origin}" if origin else found[0]

        return re.sub(rf"{re.escape(self.file)}:(\d+)(?::\d+)?", both, text)

    def to_json(self) -> dict[str, object]:
        """Run-length form: `[output line, template index, template line]` where the origin does not just advance."""
        names = sorted({template for template, _ in self.origins})
        runs: list[list[int]] = []
        expected: tuple[str, int] | None = None
        for number, (template, line) in enumerate(self.origins, start=1):
            if (template, line) != expected:
                runs.append([number, names.index(template), line])
            expected = (template, line + 1)
        return {"file": self.file, "lines": len(self.origins), "templates": names, "runs": runs}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SourceMap:
        """The map that `to_json` stored."""
        runs = [*data["runs"], [data["lines"] + 1, 0, 0]]
        origins = [
            (data["templates"][template], line + offset)
            for (start, template, line), (end, _, _) in pairwise(runs)
            for offset in range(end - start)
        ]
        return cls(data["file"], tuple(origins))


def add_markers(source: str, template: str) -> str:
    """Template text with a marker before the first printed character of every line."""
    closer = ""
    out = []
    for number, line in enumerate(source.split("\n"), start=1):
        marker = f"{_OPEN}{template}:{number}{_CLOSE}"
        out.append(_mark_line(line, marker) if not closer else line)
        closer = _open_at_end(line, closer)
    return "\n".join(out)


def _mark_line(line: str, marker: str) -> str:
    body = line.lstrip()
    indent = line[: len(line) - len(body)]
    if not body or body.startswith(("{{-", "{#")):
        return line
    if not body.startswith("{%"):
        return indent + marker + body
    tag, end, rest = body.partition("%}")
    printable = end and rest.strip() and not rest.lstrip().startswith(("{%", "{#"))
    return indent + tag + end + marker + rest if printable and not tag.endswith("-") else line


def _open_at_end(line: str, closer: str) -> str:
    """The delimiter still awaited at the end of a line, or an empty string in printed text."""
    for found in _DELIMITER.finditer(line):
        token = found.group()
        if not closer:
            closer = _CLOSERS.get(token, "")
        elif token == closer:
            closer = ""
    return closer


def take_markers(text: str, file: str, fallback: str) -> tuple[str, SourceMap]:
    """Finished text (LF, no trailing blanks, one final newline, no runs of blank lines) and its map."""
    lines: list[str] = []
    origins: list[tuple[str, int]] = []
    current = (fallback, 1)
    for raw in text.replace("\r\n", "\n").split("\n"):
        marks: Sequence[tuple[str, str]] = _MARKER.findall(raw)
        if marks:
            current = (marks[-1][0], int(marks[-1][1]))
        line = _MARKER.sub("", raw).rstrip()
        if line or (lines and lines[-1]):
            lines.append(line)
            origins.append(current)
    while lines and not lines[-1]:
        lines.pop()
        origins.pop()
    return "\n".join(lines) + "\n", SourceMap(file, tuple(origins))
