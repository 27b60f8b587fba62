"""Check one rendered file; findings carry the template line the text came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dsv4gen.base.errors import DsvError, LintError, Place
from dsv4gen.lint.foreign import foreign_words
from dsv4gen.lint.parses import empty_initialisers, python_findings, unbalanced
from dsv4gen.lint.tokens import code_only
from dsv4gen.render import RenderedFile


def check_file(file: RenderedFile, facts: Mapping[str, object]) -> list[DsvError]:
    """All findings of a rendered C++ or Python file; `facts` are the target's, by dotted path."""
    findings = _cpp(file, facts) if file.dialect in ("hip", "cuda", "simt") else python_findings(file.text, file.name)
    return [
        LintError(message, place=_place(file, line), remedy=f"see {file.name} line {line}")
        for line, message in findings
    ]


def _cpp(file: RenderedFile, facts: Mapping[str, object]) -> Iterator[tuple[int, str]]:
    code = code_only(file.text)
    for line, word, meaning in foreign_words(code, file.dialect, facts):
        yield line, f"{word!r} is foreign in {file.name}: {meaning}"
    yield from unbalanced(code)
    yield from empty_initialisers(code)


def _place(file: RenderedFile, line: int) -> Place:
    return file.source_map.origin(line) or Place(file.name, line)
