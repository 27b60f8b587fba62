"""A parsed YAML file: plain data beside the position of every key and value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from dsv4gen.base.errors import Place, SpecError

#: Keys and list indices from the top of a document down to one value.
Keys: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True)
class Span:
    """Where a value stands; `key` is the position of its key, or of the value itself in a list."""

    key: Place
    value: Place


@dataclass
class Document:
    """One file while it is being checked.

    Attributes:
        file: the name shown to users.
        data: None, bool, int, float, str, tuple of these, or dict with text keys.
        spans: position per path; the empty path is the document itself.
        texts: plain scalars as written, for messages that quote the file.
        errors: what the YAML level refused; data may be partial when there are any.
    """

    file: str
    data: object = None
    spans: dict[Keys, Span] = field(default_factory=dict)
    texts: dict[Keys, str] = field(default_factory=dict)
    errors: list[SpecError] = field(default_factory=list)

    def nearest(self, keys: Keys) -> Keys:
        """The longest prefix of `keys` that the file really contains."""
        while keys and keys not in self.spans:
            keys = keys[:-1]
        return keys

    def span(self, keys: Keys) -> Span:
        """The span of the nearest existing path; the top of the file when there is none."""
        top = Place(self.file, 1, 1)
        return self.spans.get(self.nearest(keys), Span(top, top))
