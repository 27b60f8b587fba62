"""A checked spec beside the file it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from dsv4gen.base.errors import Place
from dsv4gen.spec.document import Document

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Loaded(Generic[M]):
    """A model with the positions of its keys and values; `file` is the name shown to users."""

    model: M
    file: str
    document: Document

    def place(self, *keys: str | int) -> Place:
        """Position of the value at `keys`, e.g. place("ops", "select", "launch_paths", 1, "prefer").

        A path that the file leaves to a default yields its nearest existing parent.
        """
        return self.document.span(keys).value

    def key_place(self, *keys: str | int) -> Place:
        """Position of the key itself."""
        return self.document.span(keys).key
