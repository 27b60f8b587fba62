"""What all spec models share: strict frozen models, read-only tables, expressions kept as text."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeAlias, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StringConstraints,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

T = TypeVar("T")


class Model(BaseModel):
    """A mapping of the file: no unknown key, no conversion between types, no NaN or infinity."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class Table(Mapping[str, T]):
    """A read-only mapping with text keys, sorted so that no output depends on the order in the file."""

    def __init__(self, entries: Mapping[str, T]) -> None:
        self._entries = dict(sorted(entries.items()))

    def __getitem__(self, key: str) -> T:
        return self._entries[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __hash__(self) -> int:
        return hash(tuple(self._entries.items()))

    def __repr__(self) -> str:
        return f"Table({self._entries!r})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Validate as a dict of the argument type, then freeze."""
        (value_type,) = get_args(source) or (Any,)
        keys = core_schema.str_schema(strict=True)
        entries = core_schema.dict_schema(keys, handler(value_type), strict=True)
        plain = core_schema.plain_serializer_function_ser_schema(dict)
        return core_schema.no_info_after_validator_function(cls, entries, serialization=plain)


def _literal_as_text(value: object) -> object:
    """`1` and `true` are expressions too; they are kept in the spelling the expression language uses."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else value


def _distinct(values: tuple[T, ...]) -> tuple[T, ...]:
    for position, value in enumerate(values):
        if value in values[:position]:
            shown = list(value) if isinstance(value, tuple) else value
            raise PydanticCustomError("listed_twice", "{value} is listed twice", {"value": str(shown)})
    return values


def _printable(text: str) -> str:
    """Control and direction characters would end up in sources, where they hide what the text says."""
    for one in text:
        if unicodedata.category(one) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            raise PydanticCustomError(
                "unprintable", "the character {code} cannot be printed", {"code": f"U+{ord(one):04X}"}
            )
    return text


def _quotable(text: str) -> str:
    """Generated modules have it between three quotes, as it is."""
    if '"""' in text or text.endswith('"') or "\\" in text:
        raise PydanticCustomError(
            "unquotable", "three quotes in a row, a quote at the end and backslashes cannot stand in generated text"
        )
    return text


#: A list in which no entry appears twice.
Distinct = Annotated[tuple[T, ...], AfterValidator(_distinct)]

#: An identifier of the spec language.
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]

#: An expression as text, parsed by `dsv4gen.prove`, never evaluated. Integers and true/false may be unquoted.
Expression = Annotated[
    str,
    BeforeValidator(_literal_as_text, json_schema_input_type=str | int | bool),
    Field(min_length=1),
]

#: One line of text for people.
Text = Annotated[
    str, StringConstraints(min_length=1, pattern=r"^[^\n]*$"), AfterValidator(_printable), AfterValidator(_quotable)
]

Positive = Annotated[int, Field(gt=0)]
Natural = Annotated[int, Field(ge=0)]
#: M, N and K, or x, y and z.
Tile: TypeAlias = tuple[Positive, Positive, Positive]
