"""Follow a path of keys through the models, to know which keys are allowed at that point."""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel

from dsv4gen.spec.document import Keys
from dsv4gen.spec.models import Table


def known_keys(model: type[BaseModel], keys: Keys) -> tuple[str, ...]:
    """The keys the schema allows in the mapping at `keys`; empty where any key is allowed."""
    here: Any = model
    for key in keys:
        here = _step(here, key)
    owner = _model_in(here)
    return tuple(info.alias or name for name, info in owner.model_fields.items()) if owner else ()


def _step(annotation: Any, key: str | int) -> Any:
    owner = _model_in(annotation)
    if owner is not None:
        for name, info in owner.model_fields.items():
            if key in (name, info.alias):
                return info.annotation
        return None
    for candidate in _alternatives(annotation):
        if get_origin(candidate) in (Table, tuple):
            return get_args(candidate)[0]
    return None


def _model_in(annotation: Any) -> type[BaseModel] | None:
    for candidate in _alternatives(annotation):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, each without its Annotated wrapper."""
    if get_origin(annotation) is Annotated:
        return _alternatives(get_args(annotation)[0])
    if get_origin(annotation) in (None, Table, tuple):
        return (annotation,)
    return tuple(inner for member in get_args(annotation) for inner in _alternatives(member))
