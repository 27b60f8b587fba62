"""YAML text to plain data with positions.

Built on ruamel.yaml's event stream and not on its constructors: events still show the explicit tags, the
aliases, the merge keys and the repeated keys that a constructor resolves or drops. Everything refused is
collected, so that one run reports every mistake that does not make the rest of the file unreadable.

Refused on purpose: tags, merge keys (`extends:` is the way to share), keys that are not text, repeated keys,
several documents, `%YAML` other than 1.2, and more than MAX_NODES values once aliases are expanded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from dsv4gen.base.errors import Place, SpecError
from dsv4gen.spec.document import Document, Keys, Span
from dsv4gen.spec.scalars import Scalar, read_plain

MAX_NODES = 20_000
MAX_DEPTH = 40

#: ruamel's events carry no type information.
Event = Any


class _Unreadable(Exception):
    """The rest of the file cannot be read; the reason is already in the document's errors."""


def read_text(raw: bytes, file: str) -> Document:
    """Parse the bytes of one file, shown to users as `file`; mistakes go to `Document.errors`."""
    document = Document(file)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        message = f"not UTF-8 text: byte 0x{raw[error.start]:02x}"
        place = Place(file, line, column)
        document.errors.append(SpecError(message, place=place, remedy="save the file as UTF-8"))
        return document
    try:
        _Builder(document, YAML(typ="safe", pure=True).parse(text)).build()
    except _Unreadable:
        pass
    except YAMLError as error:
        document.errors.append(_syntax_error(error, text, file))
    return document


def _syntax_error(error: YAMLError, text: str, file: str) -> SpecError:
    """ruamel's complaint at its own position; a tab gets the remedy that it nearly always needs."""
    if not isinstance(error, MarkedYAMLError):
        offset = getattr(error, "position", 0)
        before = text[:offset]
        place = Place(file, before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)
        return SpecError("a control character that YAML does not allow", place=place, remedy="remove it")
    mark = error.problem_mark or error.context_mark
    place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file, 1, 1)
    lines = text.splitlines()
    line = lines[mark.line] if mark and mark.line < len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())] or "'\\t'" in str(error.problem):
        return SpecError("a tab where YAML allows only spaces", place=place, remedy="indent with spaces")
    context = f"{error.context}: " if error.context else ""
    return SpecError(f"not valid YAML: {context}{error.problem or error.context}", place=place)


class _Builder:
    """Turns the events of one file into the data and spans of `document`."""

    def __init__(self, document: Document, events: Iterator[Event]) -> None:
        self.document = document
        self.events = events
        self.anchors: dict[str, tuple[object, Keys] | None] = {}

    def build(self) -> None:
        """Read the single document of the stream."""
        seen = 0
        for event in self.events:
            if not isinstance(event, DocumentStartEvent):
                continue
            seen += 1
            if seen > 1:
                self._stop("a second document in one file", event, "split the documents into one file each")
            if event.version not in (None, (1, 2)):
                self._error("only YAML 1.2 is read", self._place(event), "remove the %YAML line")
            start = next(self.events)
            place = self._place(start)
            self.document.data = self._value(start, (), place)
        if self.document.data is None and not self.document.errors:
            self._error("the file is empty", Place(self.document.file, 1, 1), "")

    def _value(self, event: Event, keys: Keys, key_place: Place) -> object:
        """The data of the node that `event` starts, stored under `keys`."""
        place = self._place(event)
        if len(keys) > MAX_DEPTH:
            self._stop(f"more than {MAX_DEPTH} levels of nesting", event, "")
        if isinstance(event, AliasEvent):
            return self._alias(event, keys, key_place)
        if event.ctag is not None:
            self._error(f"the tag {event.tag} is not allowed", place, "remove it; the schema knows the type")
        self._note(keys, Span(key_place, place), event)
        if event.anchor:
            self.anchors[event.anchor] = None
        if isinstance(event, ScalarEvent):
            data: object = self._scalar(event, keys)
            if data is None:
                self.document.spans[keys] = Span(key_place, key_place)
        else:
            data = self._mapping(keys) if isinstance(event, MappingStartEvent) else self._sequence(keys)
        if event.anchor:
            self.anchors[event.anchor] = (data, keys)
        return data

    def _scalar(self, event: Event, keys: Keys) -> Scalar:
        if event.style is not None:
            return str(event.value)
        self.document.texts[keys] = event.value
        try:
            return read_plain(event.value)
        except ValueError as error:
            self._error(str(error), self._place(event), "quote it, or write the number without leading zeros")
            return str(event.value)

    def _sequence(self, keys: Keys) -> tuple[object, ...]:
        items: list[object] = []
        for event in self.events:
            if isinstance(event, SequenceEndEvent):
                break
            items.append(self._value(event, (*keys, len(items)), self._place(event)))
        return tuple(items)

    def _mapping(self, keys: Keys) -> dict[str, object]:
        table: dict[str, object] = {}
        for event in self.events:
            if isinstance(event, MappingEndEvent):
                break
            place = self._place(event)
            key = self._new_key(event, keys, table)
            if key is None:
                self._value(next(self.events), self._aside(keys, place), place)
            else:
                table[key] = self._value(next(self.events), (*keys, key), place)
        return table

    def _new_key(self, event: Event, keys: Keys, table: dict[str, object]) -> str | None:
        """The key's text, or None after an error."""
        key = self._key(event, keys)
        if key is None or key not in table:
            return key
        path: Keys = (*keys, key)
        first = self.document.spans[path].key
        message = f"the key '{key}' is already set on line {first.line}"
        self._error(message, self._place(event), "keep one of the two")
        return None

    @staticmethod
    def _aside(keys: Keys, place: Place) -> Keys:
        """A path no schema knows, for values whose key was refused but whose own mistakes still count."""
        return (*keys, f"{place.line}:{place.column}")

    def _key(self, event: Event, keys: Keys) -> str | None:
        """The key's text, or None after an error."""
        place = self._place(event)
        if not isinstance(event, ScalarEvent):
            if isinstance(event, (SequenceStartEvent, MappingStartEvent)):
                self._value(event, self._aside(keys, place), place)
            self._error("a key must be plain text", place, "write a name before the colon")
            return None
        if event.style is not None:
            return str(event.value)
        if event.value == "<<":
            self._error("merge keys are not supported", place, "repeat the keys, or use 'extends:'")
            return None
        try:
            key = read_plain(event.value)
        except ValueError:
            key = 0
        if isinstance(key, str):
            return key
        shown = event.value or "an empty key"
        self._error(f"the key {shown} is not text", place, f'quote it: "{event.value}"')
        return None

    def _alias(self, event: Event, keys: Keys, key_place: Place) -> object:
        """The anchored data again; its inner positions are those of the anchor."""
        found = self.anchors.get(event.anchor)
        if found is None:
            kind = "contains itself" if event.anchor in self.anchors else "has no anchor"
            self._error(f"the alias *{event.anchor} {kind}", self._place(event), "")
            return None
        data, source = found
        depth = len(source)
        for path, span in list(self.document.spans.items()):
            if path[:depth] == source:
                self._note((*keys, *path[depth:]), span, event)
        self.document.spans[keys] = Span(key_place, self._place(event))
        return data

    def _note(self, keys: Keys, span: Span, event: Event) -> None:
        if len(self.document.spans) >= MAX_NODES:
            self._stop(f"more than {MAX_NODES} values once aliases are expanded", event, "use fewer aliases")
        self.document.spans[keys] = span

    def _place(self, event: Event) -> Place:
        return Place(self.document.file, event.start_mark.line + 1, event.start_mark.column + 1)

    def _error(self, message: str, place: Place, remedy: str) -> None:
        self.document.errors.append(SpecError(message, place=place, remedy=remedy))

    def _stop(self, message: str, event: Event, remedy: str) -> None:
        self._error(message, self._place(event), remedy)
        raise _Unreadable
