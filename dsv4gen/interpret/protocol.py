"""Requests and replies between client and worker: one JSON object a line.

A request names a function of a module and its arguments. Scalars, strings, None and flat lists travel as they
are; a tensor travels as a reference into a shared segment, so that nothing is copied through the pipe.

    {"op": "call", "module": path, "function": name, "arguments": [...], "keywords": {...}}
    {"op": "launch", ..., "grid": [x, y, z]}      the function is a kernel
    {"op": "describe"}                            versions of the worker's libraries
    {"value": ...} | {"error": {"kind", "message", "line"}}
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TypeAlias

from dsv4gen.base.errors import ArgumentError

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_TENSOR_KEY = "__tensor__"


@dataclass(frozen=True)
class TensorReference:
    """A strided tensor inside a segment of the client; `low` and `high` are the bytes its elements span.

    `segment` is the segment's serial number, `descriptor` its open file in the client.
    """

    segment: int
    descriptor: int
    segment_bytes: int
    low: int
    high: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


Value: TypeAlias = "bool | int | float | str | list[Value] | TensorReference | None"


def encode_value(value: object) -> Json:
    """An argument as JSON.

    Raises:
        ArgumentError: a kind of value that cannot travel.
    """
    if isinstance(value, TensorReference):
        return {_TENSOR_KEY: asdict(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [encode_value(item) for item in value]
    raise ArgumentError(
        f"the interpreter cannot pass a {type(value).__name__}",
        remedy="pass tensors, numbers, strings, None or lists of them",
    )


def decode_value(value: Json) -> Value:
    """The argument back from JSON, tensors as references."""
    if isinstance(value, dict):
        fields = value[_TENSOR_KEY]
        assert isinstance(fields, dict)
        lists = {"shape": tuple(fields.pop("shape")), "strides": tuple(fields.pop("strides"))}  # type: ignore[arg-type]
        return TensorReference(**fields, **lists)  # type: ignore[arg-type]
    if isinstance(value, list):
        return [decode_value(item) for item in value]
    return value


def to_line(message: Json) -> bytes:
    """A message as one line of bytes; floats keep infinities and NaN in Python's spelling."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def from_line(line: bytes) -> dict[str, Json]:
    """The message of a line."""
    message = json.loads(line)
    assert isinstance(message, dict)
    return message
