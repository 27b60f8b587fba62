"""The model of `specs/platforms/<target>.yaml`: a partial record whose every fact names its source.

The file form of a group is derived from its class in `dsv4gen.spec.facts`: each leaf is optional (a parent
may hold it) and is written bare or as `{value, source, mark}`; `source` and `mark` of the group serve its
bare leaves.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, create_model
from pydantic.fields import FieldInfo

from dsv4gen.spec.facts import GROUPS, Product
from dsv4gen.spec.models import Model, Name, Table, Text

T = TypeVar("T")

#: ran: provoked with the tool named; read: read in the source named; infer: concluded or remembered.
Mark: TypeAlias = Literal["ran", "read", "infer"]


class Sourced(Model):
    """A group in a file: where its facts come from unless a fact says so itself."""

    source: Text | None = None
    mark: Mark | None = None


class Fact(Model, Generic[T]):
    """One fact with its own source."""

    value: T
    source: Text | None = None
    mark: Mark | None = None


def _bare_fact(value: object) -> object:
    return value if isinstance(value, dict) and "value" in value else {"value": value}


def file_form(group: type[BaseModel]) -> type[Sourced]:
    """The model of a group as written in a file."""
    fields: dict[str, Any] = {}
    for name, info in group.model_fields.items():
        nested = _nested_group(info.annotation)
        fields[name] = (file_form(nested) if nested else _fact_form(info), Field(default=None))
    return create_model(f"{group.__name__}File", __base__=Sourced, __doc__=group.__doc__, **fields)


def _fact_form(info: FieldInfo) -> Any:
    """A leaf, bare or with its source, under the constraints of the field."""
    parts = (info.annotation, *info.metadata)
    leaf: Any = Annotated[parts] if info.metadata else info.annotation
    return Annotated[Fact[leaf], BeforeValidator(_bare_fact, json_schema_input_type=leaf | Fact[leaf])]


def _nested_group(annotation: Any) -> type[BaseModel] | None:
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


#: Keys of the groups are aliases because `copy` would shadow a method of pydantic's.
_GROUP_FIELDS: dict[str, Any] = {
    f"group_{key}": (file_form(group), Field(default=None, alias=key)) for key, group in GROUPS.items()
}

#: Facts of a device that shares a target's source but not all of its facts.
DeviceFile = create_model("DeviceFile", __base__=Model, **_GROUP_FIELDS)

ProductFile = file_form(Product)


class PlatformHead(Model):
    """Everything of a platform file except its groups.

    Attributes:
        target: the file's name; a leading underscore makes it a parent that is no target itself.
        extends: the parent whose facts hold unless this file says otherwise.
        evidence: the best check this project can make: run on a device, emulated, or only compiled.
        sources: the works that `source:` texts cite by key, here and in files that extend this one.
        also: devices that run the same source, compiled for their own architecture.
        defaults: variant per family, for `default: defaults.<family>` in a family spec.
        summary: the devices, for people.
        products: cards, for roofline text only.
    """

    target: Annotated[str, Field(pattern=r"^_?[a-z][a-z0-9_]*$")]
    summary: Text
    extends: str | None = None
    evidence: Literal["device", "emulated", "compiled"] | None = None
    sources: Table[Text] = Table({})
    also: Table[DeviceFile] = Table({})  # type: ignore[valid-type]
    products: Table[ProductFile] = Table({})  # type: ignore[valid-type]
    defaults: Table[Name] = Table({})

    @property
    def abstract(self) -> bool:
        """True for a parent that is no target itself."""
        return self.target.startswith("_")


PlatformSpec = create_model("PlatformSpec", __base__=PlatformHead, **_GROUP_FIELDS)
