"""A sweep's journal: a head line, then a line per measurement, written as soon as it is known.

Each line is written at once, so several processes may share a file, and an interrupted sweep loses nothing but the
measurement in progress. A line counts for a candidate only while its digest, and the card, are the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dsv4gen.base.errors import OutputError, Place, UsageError
from dsv4gen.base.plain_data import PlainDataError, from_plain

KIND, SCHEMA = "dsv4gen tune", 1
BASE = ""


@dataclass(frozen=True)
class Head:
    """What a sweep is about; `kind` is `time` or `emulated`, `machine` the card and versions."""

    family: str
    target: str
    kind: str
    date: str
    machine: Mapping[str, str]
    axes: Mapping[str, list[str]]


@dataclass(frozen=True)
class Entry:
    """One measurement, or the reason why there is none.

    Attributes:
        op, options, shape: the cell.
        kernel, tile: the candidate; no kernel for the family as it is.
        bucket: which of the spec's buckets the shape is in.
        value: microseconds, or executed instructions.
        final: timed at length, not just in passing.
        digest: of the candidate's module.
    """

    op: str
    options: Mapping[str, str]
    shape: Mapping[str, int]
    kernel: str
    tile: Mapping[str, int]
    bucket: str = ""
    value: float = 0.0
    final: bool = False
    problem: str = ""
    digest: str = ""

    @property
    def cell(self) -> tuple[object, ...]:
        """What was called."""
        return self.op, tuple(sorted(self.options.items())), tuple(sorted(self.shape.items()))

    @property
    def key(self) -> tuple[object, ...]:
        """What was measured."""
        return *self.cell, self.kernel, tuple(sorted(self.tile.items())), self.digest


@dataclass
class Journal:
    """A file of entries; those of before are in `done`, by key, the last one counts."""

    path: Path
    head: Head
    done: dict[tuple[object, ...], Entry] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path, head: Head) -> Journal:
        """Begin a journal, or go on with one of the same family, target and card.

        Raises:
            UsageError: it is another sweep's, or no journal.
            OutputError: it cannot be written.
        """
        if path.exists() and path.stat().st_size:
            old, entries = read_journal(path)
            for name in ("family", "target", "kind"):
                if getattr(old, name) != getattr(head, name):
                    message = f"a journal of {name} {getattr(old, name)}, not {getattr(head, name)}"
                    raise UsageError(message, place=Place(str(path)), remedy="name another file with --journal")
            if old.machine != head.machine:
                changed = [n for n in {*old.machine, *head.machine} if old.machine.get(n) != head.machine.get(n)]
                message = f"a journal of another machine: {', '.join(sorted(changed))} differ"
                raise UsageError(message, place=Place(str(path)), remedy="name another file with --journal")
            journal = cls(path, old, {entry.key: entry for entry in entries})
            journal._end_line()
            return journal
        journal = cls(path, head)
        journal._append({"kind": KIND, "schema": SCHEMA, "head": asdict(head)})
        return journal

    def find(self, entry: Entry) -> Entry | None:
        """The measurement of before."""
        return self.done.get(entry.key)

    def add(self, entry: Entry) -> None:
        """Write a measurement."""
        self.done[entry.key] = entry
        self._append(asdict(entry))

    def _end_line(self) -> None:
        """Keep what an interruption cut off from swallowing the line that comes next."""
        if not self.path.read_bytes().endswith(b"\n"):
            self._write(b"\n")

    def _append(self, data: Mapping[str, Any]) -> None:
        self._write((json.dumps(data, sort_keys=True) + "\n").encode())

    def _write(self, line: bytes) -> None:
        try:
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                os.write(handle, line)
            finally:
                os.close(handle)
        except OSError as error:
            raise OutputError(f"cannot write {self.path}: {error.strerror}") from error


def read_journal(path: Path) -> tuple[Head, list[Entry]]:
    """Head and entries; a line cut off by an interruption is left out.

    Raises:
        UsageError: no journal of this schema, or one with a value that cannot be.
    """
    place = Place(str(path))
    try:
        lines = list(_lines(path.read_text(encoding="utf-8").splitlines()))
    except OSError as error:
        raise UsageError(f"no journal: {error.strerror}", place=place, remedy="dsv4gen tune writes one") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"no journal: {error}", place=place, remedy="dsv4gen tune writes one") from error
    if not lines or lines[0].get("kind") != KIND or lines[0].get("schema") != SCHEMA:
        raise UsageError(f"not a journal of {KIND} schema {SCHEMA}", place=place, remedy="dsv4gen tune writes one")
    try:
        head = from_plain(Head, lines[0].get("head"), "head")
        return head, [_entry(line, f"entry {number}") for number, line in enumerate(lines[1:], start=1)]
    except PlainDataError as error:
        raise UsageError(f"a damaged journal: {error}", place=place, remedy="measure again") from None


def _entry(line: Mapping[str, Any], where: str) -> Entry:
    entry = from_plain(Entry, line, where)
    if not entry.problem and entry.value <= 0:
        raise PlainDataError(f"{where}.value: {entry.value} is no measurement, and no problem says why")
    return entry


def _lines(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found
