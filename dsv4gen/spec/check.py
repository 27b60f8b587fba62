"""Validate a document against a model and turn every complaint into a SpecError at its line and column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dsv4gen.base.errors import SpecError, did_you_mean
from dsv4gen.spec.document import Document, Keys
from dsv4gen.spec.schema_walk import known_keys

M = TypeVar("M", bound=BaseModel)

_EXPECTED = {
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}

_YAML_1_1_BOOLEANS = ("yes", "no", "on", "off", "y", "n")


def validate(document: Document, model: type[M]) -> M | None:
    """The document as a model; None when `document.errors` holds at least one error afterwards.

    A place that YAML itself already refused is not reported a second time.
    """
    if document.data is None:
        return None
    refused = {error.place for error in document.errors}
    try:
        checked = model.model_validate(document.data)
    except ValidationError as error:
        found = [_spec_error(document, model, keys, details) for keys, details in _by_mistake(document, error)]
        document.errors.extend(one for one in found if one.place not in refused)
        return None
    return None if refused else checked


def _by_mistake(document: Document, error: ValidationError) -> list[tuple[Keys, list[dict[str, Any]]]]:
    """pydantic's details; those of the members of one union are together, since they are one mistake."""
    grouped: dict[tuple[Keys, str], list[dict[str, Any]]] = {}
    for detail in error.errors(include_url=False):
        keys = document.nearest(tuple(detail["loc"]))
        kind = "wrong type" if detail["type"] in _EXPECTED else f"{detail['type']} {detail['loc']}"
        grouped.setdefault((keys, kind), []).append(dict(detail))
    return [(keys, details) for (keys, _), details in grouped.items()]


def _spec_error(
    document: Document, model: type[BaseModel], keys: Keys, details: Sequence[Mapping[str, Any]]
) -> SpecError:
    detail = details[0]
    loc: Keys = tuple(detail["loc"])
    span = document.span(keys)
    shown = dotted(keys)
    if detail["type"] == "extra_forbidden":
        message = f"unknown key '{loc[-1]}'{did_you_mean(str(loc[-1]), known_keys(model, loc[:-1]))}"
        return SpecError(message, place=span.key, remedy=_known_list(known_keys(model, loc[:-1])))
    if detail["type"] == "missing" and isinstance(loc[-1], int):
        return SpecError(f"{_named(shown)}missing item {loc[-1]} of the list", place=span.value)
    if detail["type"] == "missing":
        where = f" in '{shown}'" if shown else ""
        return SpecError(f"missing key '{loc[-1]}'{where}", place=span.key)
    got = describe(detail["input"], document.texts.get(keys))
    if detail["type"] in _EXPECTED:
        expected = " or ".join(dict.fromkeys(_EXPECTED[one["type"]] for one in details))
        remedy = _type_remedy(detail["type"], detail["input"])
        return SpecError(f"{_named(shown)}expected {expected}, got {got}", place=span.value, remedy=remedy)
    return SpecError(f"{_named(shown)}{_reason(detail)}, got {got}", place=span.value)


def dotted(keys: Keys) -> str:
    """A path as people write it: `ops.select.launch_paths[1].prefer`."""
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


def describe(value: object, written: str | None = None) -> str:
    """A value with its type, in the file's own spelling where known."""
    if isinstance(value, bool):
        return f"the boolean {written or str(value).lower()}"
    if isinstance(value, int):
        return f"the integer {written or value}"
    if isinstance(value, float):
        return f"the number {written or value}"
    if isinstance(value, str):
        return f"the text '{value}'"
    if value is None:
        return "nothing"
    return "a mapping" if isinstance(value, Mapping) else "a list"


def _named(shown: str) -> str:
    return f"{shown}: " if shown else ""


def _known_list(known: tuple[str, ...]) -> str:
    return f"known keys here: {', '.join(known)}" if known else ""


def _type_remedy(kind: str, value: object) -> str:
    if kind == "string_type" and isinstance(value, (bool, int, float)):
        return "quote it to keep it as text"
    if kind == "bool_type" and isinstance(value, str) and value.lower() in _YAML_1_1_BOOLEANS:
        return f"write true or false; YAML 1.2 reads {value} as text"
    if kind in ("int_type", "float_type") and isinstance(value, str):
        return "write the number without quotes or separators"
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        return f"write {int(value)}"
    return ""


def _reason(detail: Mapping[str, Any]) -> str:
    if detail["type"] == "literal_error":
        return f"expected one of {detail['ctx']['expected']}"
    message = str(detail["msg"])
    return message[0].lower() + message[1:]
