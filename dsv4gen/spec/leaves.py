"""The facts one platform file states: each value with its source, its mark and its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from dsv4gen.base.errors import Place, SpecError, did_you_mean
from dsv4gen.spec.check import dotted
from dsv4gen.spec.document import Document, Keys
from dsv4gen.spec.facts import GROUPS
from dsv4gen.spec.platform import Fact, Mark, Sourced


@dataclass(frozen=True)
class Leaf:
    """One fact. `source` reads "KEY, KEY: detail"; the keys are those of the file's `sources`."""

    value: Any
    source: str | None
    mark: Mark | None
    place: Place

    @property
    def works(self) -> tuple[str, ...]:
        """The keys of the works the source cites."""
        cited = (self.source or "").partition(":")[0]
        return tuple(re.split(r",\s*", cited)) if cited else ()


def group_leaves(holder: BaseModel, document: Document, keys: Keys = ()) -> dict[Keys, Leaf]:
    """The leaves of all groups of a platform file or of one of its `also` devices, by path in the holder."""
    found: dict[Keys, Leaf] = {}
    for name in GROUPS:
        group = getattr(holder, f"group_{name}")
        if group is not None:
            found.update(_walk(group, document, keys, (name,), None, None))
    return found


def product_leaves(products: Mapping[str, BaseModel], document: Document) -> dict[Keys, Leaf]:
    """The leaves of all products of a platform file."""
    found: dict[Keys, Leaf] = {}
    for name, product in products.items():
        found.update(_walk(product, document, (), ("products", name), None, None))
    return found


def _walk(
    group: Any, document: Document, above: Keys, path: Keys, source: str | None, mark: Mark | None
) -> Iterator[tuple[Keys, Leaf]]:
    source, mark = group.source or source, group.mark or mark
    for name in type(group).model_fields:
        if name not in group.model_fields_set or name in Sourced.model_fields:
            continue
        child = getattr(group, name)
        below: Keys = (*path, name)
        if isinstance(child, Fact):
            place = document.span((*above, *below)).value
            yield below, Leaf(child.value, child.source or source, child.mark or mark, place)
        else:
            yield from _walk(child, document, above, below, source, mark)


def check_sources(leaves: Mapping[Keys, Leaf], known: Mapping[str, str]) -> list[SpecError]:
    """Facts without a source or mark, and sources that cite no declared work."""
    errors: list[SpecError] = []
    for keys, leaf in leaves.items():
        for missing in [name for name in ("source", "mark") if getattr(leaf, name) is None]:
            remedy = f"add '{missing}' to its group, or write {{value, source, mark: ran|read|infer}}"
            errors.append(SpecError(f"{dotted(keys)} has no {missing}", place=leaf.place, remedy=remedy))
        for work in leaf.works:
            if work not in known:
                hint = did_you_mean(work, known)
                message = f"{dotted(keys)} cites '{work}', which 'sources' does not list{hint}"
                errors.append(SpecError(message, place=leaf.place, remedy='write "KEY, KEY: detail"'))
    return errors
