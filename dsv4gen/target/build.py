"""Build the record of one target from the facts of its file and of the files it extends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from dsv4gen.base.errors import DsvError, SpecError, raise_all
from dsv4gen.spec.check import dotted
from dsv4gen.spec.document import Keys
from dsv4gen.spec.facts import GROUPS, Product
from dsv4gen.spec.inheritance import chain, cited_works
from dsv4gen.spec.leaves import Leaf, group_leaves, product_leaves
from dsv4gen.spec.load import Specs
from dsv4gen.spec.loaded import Loaded
from dsv4gen.spec.models import Table
from dsv4gen.target.consistency import check_gates, check_record
from dsv4gen.target.record import FactValue, Provenance, TargetRecord


def build_record(specs: Specs, name: str) -> TargetRecord:
    """The record of the target `name`, with the records of its `also` devices.

    Raises:
        SpecError, Problems: missing facts, or facts that contradict each other.
    """
    files = chain(specs.platforms, name)
    leaves: dict[Keys, Leaf] = {}
    for file in reversed(files):
        leaves.update(group_leaves(file.model, file.document))
    main = files[0]
    also: list[TargetRecord] = []
    for device, overrides in main.model.also.items():
        own = group_leaves(overrides, main.document, ("also", device))
        also.append(_record(files, device, {**leaves, **own}, ()))
    record = _record(files, name, leaves, tuple(also))
    errors = check_gates(specs, record, files)
    for one in (record, *also):
        errors.extend(check_record(one, main))
    raise_all(errors)
    return record


def _record(
    files: list[Loaded[Any]], device: str, leaves: Mapping[Keys, Leaf], also: tuple[TargetRecord, ...]
) -> TargetRecord:
    main = files[0]
    errors: list[DsvError] = []
    groups: dict[str, Any] = {}
    for name, model in GROUPS.items():
        groups[name] = _group(model, (name,), leaves, main, device, errors)
    own = product_leaves(main.model.products, main.document)
    products: dict[str, Any] = {}
    for name in main.model.products:
        products[name] = _group(Product, ("products", name), own, main, device, errors)
    raise_all(errors)
    gates: dict[str, str] = {}
    for file in reversed(files):
        gates.update(file.model.defaults)
    return TargetRecord(
        name=main.model.target,
        device=device,
        summary=main.model.summary,
        evidence=main.model.evidence,
        products=Table(products),
        defaults=Table(gates),
        also=also,
        facts=Table({dotted(keys): value for keys, value in _flatten(groups.items())}),
        provenance=Table({dotted(keys): _provenance(leaf) for keys, leaf in {**leaves, **own}.items()}),
        works=Table(cited_works(files)),
        **groups,
    )


def _group(
    model: type[BaseModel],
    path: Keys,
    leaves: Mapping[Keys, Leaf],
    main: Loaded[Any],
    device: str,
    errors: list[DsvError],
) -> BaseModel | None:
    """The typed group at `path`; None after adding its missing facts to `errors`."""
    values: dict[str, Any] = {}
    for keys, leaf in leaves.items():
        if keys[: len(path)] == path:
            _insert(values, keys[len(path) :], leaf.value)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            missing = dotted((*path, *detail["loc"]))
            message = f"{device} has no fact '{missing}'"
            remedy = "add it here, or to a file this one extends"
            errors.append(SpecError(message, place=main.key_place(*path), remedy=remedy))
        return None


def _insert(values: dict[str, Any], keys: Keys, value: Any) -> None:
    *parents, last = (str(key) for key in keys)
    for parent in parents:
        values = values.setdefault(parent, {})
    values[last] = value


def _flatten(items: Iterable[tuple[str, Any]], above: Keys = ()) -> Iterator[tuple[Keys, FactValue]]:
    for name, value in items:
        if isinstance(value, BaseModel):
            yield from _flatten(value, (*above, name))
        else:
            yield (*above, name), value


def _provenance(leaf: Leaf) -> Provenance:
    """Sources and marks are present: loading refuses facts without them."""
    assert leaf.source is not None and leaf.mark is not None
    return Provenance(leaf.source, leaf.mark, leaf.place)
