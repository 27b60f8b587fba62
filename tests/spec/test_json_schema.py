"""The schemas that editors get describe the files that the loader takes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dsv4gen.base.errors import UsageError
from dsv4gen.spec import json_schema
from dsv4gen.spec.facts import GROUPS


@pytest.mark.parametrize("kind", ["family", "platform", "tuning"])
def test_schema_is_json_and_closed(kind: str) -> None:
    schema = json_schema(kind)
    assert json.loads(json.dumps(schema)) == schema
    assert schema["additionalProperties"] is False
    closed = [name for name, part in schema["$defs"].items() if part.get("additionalProperties") is False]
    objects = [name for name, part in schema["$defs"].items() if "properties" in part]
    assert closed == objects


def test_platform_schema_takes_bare_and_sourced_facts() -> None:
    schema = json_schema("platform")
    assert set(GROUPS) < set(schema["properties"])
    launch = schema["$defs"]["WaveFile"]["properties"]["launch"]["anyOf"]
    kinds = {part.get("type", "reference") for part in launch}
    assert kinds == {"integer", "reference"}


def test_family_schema_takes_literal_expressions() -> None:
    path: dict[str, Any] = json_schema("family")["$defs"]["LaunchPath"]["properties"]["domain"]
    assert {part["type"] for part in path["anyOf"]} == {"string", "integer", "boolean"}


def test_unknown_kind() -> None:
    with pytest.raises(UsageError, match="did you mean 'family'"):
        json_schema("famly")
