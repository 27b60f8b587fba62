"""Compiler messages: g++, clang, nvcc and NVRTC formats, mapped back to template lines.

Formats read from the compilers themselves:

    topk.hip:12:5: error: use of undeclared identifier 'x'        clang, g++
    topk.cu(12): error: identifier "x" is undefined               nvcc, NVRTC
    topk.cu(12): error #20: identifier "x" is undefined           NVRTC with numbers on
    ptxas error   : Entry function 'f' uses too much shared data  ptxas, no place
    ld.lld: error: undefined symbol: f                            linker, no place
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dsv4gen.base.errors import CompileError, DsvError, Place
from dsv4gen.toolchain.process import Outcome

_KIND_AND_TEXT = r"(?P<kind>(?:fatal |catastrophic )?error|warning)(?: #[\w-]+)?: (?P<text>.*)$"
_COLON = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):(?:(?P<column>\d+):)? " + _KIND_AND_TEXT)
_BRACKET = re.compile(r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): " + _KIND_AND_TEXT)
_NO_PLACE = re.compile(r"^(?P<tool>[\w.+-]+)\s*:? (?:\w+ )?(?P<kind>fatal|error)\s*: (?P<text>.*)$")
_MAX_OUTPUT_LINES = 20


class SourceMap(Protocol):
    """Where generated lines came from."""

    def origin(self, line: int) -> Place | None:
        """The template place of a generated line (from 1), or None when it has none."""


@dataclass(frozen=True)
class Diagnostic:
    """One message of a compiler; `place` is in the generated text until `located` maps it."""

    severity: str
    message: str
    place: Place | None

    @property
    def is_error(self) -> bool:
        """True for errors, False for warnings."""
        return self.severity == "error"


def parse(output: str) -> tuple[Diagnostic, ...]:
    """Every error and warning in a compiler's output, in order."""
    found = (_parse_line(line) for line in output.splitlines())
    return tuple(diagnostic for diagnostic in found if diagnostic is not None)


def located(diagnostics: Sequence[Diagnostic], file: str, source_map: SourceMap | None) -> tuple[Diagnostic, ...]:
    """The diagnostics with places in `file` replaced by their template places.

    A line the map does not know keeps its place in the generated text.
    """
    if source_map is None:
        return tuple(diagnostics)
    return tuple(_located_one(diagnostic, file, source_map) for diagnostic in diagnostics)


def compile_errors(
    outcome: Outcome,
    *,
    what: str,
    file: str,
    source_map: SourceMap | None = None,
    after_crash: str = "",
) -> list[DsvError]:
    """The errors of a compiler that failed.

    Args:
        what: what was being compiled and for whom, e.g. `topk.hip for gfx950 (topk_main)`.
        file: name of the generated file as the compiler saw it.
        after_crash: the way out when the compiler died instead of refusing the text.
    """
    ran = f"command: {outcome.shown_command}"
    errors = [one for one in located(parse(outcome.output), file, source_map) if one.is_error]
    if outcome.ended_by_itself and errors:
        found = [CompileError(f"{one.message} [{what}]", place=one.place) for one in errors[:-1]]
        return [*found, CompileError(f"{errors[-1].message} [{what}]\n  {ran}", place=errors[-1].place)]
    reason = "it wrote no file" if outcome.succeeded else outcome.reason
    tail = outcome.output.strip().splitlines()[-_MAX_OUTPUT_LINES:]
    message = "\n  ".join([f"the compiler failed on {what}: {reason}", ran, *tail])
    remedy = "" if outcome.ended_by_itself else after_crash
    return [CompileError(message, place=errors[0].place if errors else None, remedy=remedy)]


def _parse_line(line: str) -> Diagnostic | None:
    placed = _COLON.match(line) or _BRACKET.match(line)
    if placed:
        column = placed.groupdict().get("column")
        place = Place(placed["file"], int(placed["line"]), int(column) if column else None)
        return Diagnostic(_severity(placed["kind"]), placed["text"], place)
    bare = _NO_PLACE.match(line)
    return Diagnostic("error", f"{bare['tool']}: {bare['text']}", None) if bare else None


def _severity(kind: str) -> str:
    return "warning" if kind == "warning" else "error"


def _located_one(diagnostic: Diagnostic, file: str, source_map: SourceMap) -> Diagnostic:
    place = diagnostic.place
    if place is None or place.line is None or place.file != file:
        return diagnostic
    origin = source_map.origin(place.line)
    return diagnostic if origin is None else Diagnostic(diagnostic.severity, diagnostic.message, origin)
