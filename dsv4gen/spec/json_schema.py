"""JSON Schemas of the spec files, for editors."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from dsv4gen.base.errors import UsageError, did_you_mean
from dsv4gen.spec.family import FamilySpec
from dsv4gen.spec.platform import PlatformSpec
from dsv4gen.spec.tuning import TuningSpec

_MODELS: dict[str, type[BaseModel]] = {"family": FamilySpec, "platform": PlatformSpec, "tuning": TuningSpec}


def json_schema(kind: str) -> dict[str, Any]:
    """The JSON Schema of one kind of spec file: "family", "platform" or "tuning".

    Raises:
        UsageError: another kind.
    """
    if kind not in _MODELS:
        message = f"no schema named '{kind}'{did_you_mean(kind, _MODELS)}"
        raise UsageError(message, remedy=f"one of {', '.join(_MODELS)}")
    schema = _MODELS[kind].model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
