"""`docs/specs.md`: every key of a spec file, from the models that check it.

What a key means is read from the `Attributes:` of its model's docstring, or else from the docstring of the model it
holds; what it may hold comes from its annotation. So the page says what is really accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, BaseModel, StringConstraints
from pydantic.fields import FieldInfo

from dsv4gen.base.argument_names import TEXT_READS
from dsv4gen.spec.facts import GROUPS, Product
from dsv4gen.spec.family import DTYPES, FamilySpec
from dsv4gen.spec.models import Expression, Name, Natural, Positive, Table, Text
from dsv4gen.spec.platform import PlatformHead
from dsv4gen.spec.tuning import TuningSpec

_WORDS: tuple[tuple[Any, str], ...] = (
    (Expression, "expression"),
    (Name, "name"),
    (Text, "text, one line"),
    (Positive, "whole number above 0"),
    (Natural, "whole number from 0"),
    (str, "text"),
    (bool, "true or false"),
    (int, "whole number"),
    (float, "number"),
    (type(None), "null"),
)
#: what the model behind a key of the platform file stands for in words
_BY_NAME = {"DeviceFile": "the groups of facts that differ", "ProductFile": "[Product](#product)"}
_COMMON = {"doc": "one line for people", "source": "where it comes from", "mark": "how well it is known"}
_INTRODUCTION = f"""\
# Spec files

Every key of every kind of spec file. This page is generated from the models that check the files: `dsv4gen schema
--markdown` prints it, and a test compares it. `dsv4gen schema family|platform|tuning` prints JSON Schemas for editors.

All files are YAML 1.2 without tags, merge keys, repeated keys or several documents. Unknown keys are errors. Every
mistake of every file is reported at once, with file, line and column.

*Expressions* are text that is parsed and never evaluated: whole numbers, `true`, `false`, names, quoted choices,
`+ - * // % **`, comparisons, `and`, `or`, `not`, `a if c else b`, `min`, `max`, `ceil_div`, `round_up`. Numbers and
`true`/`false` may stand without quotes. Names are axes, constants, options, tile dimensions where a tile is known, and
target facts such as `wave.launch`.

*dtypes* are {", ".join(f"`{dtype}`" for dtype in DTYPES)}.

Ops, tensors, scalars, axes and run-time strides become names of Python. None may be a keyword, begin with `_`,
or be one of those that launch functions read: {", ".join(f"`{name}`" for name in sorted(TEXT_READS))}.
"""
_PLATFORM = """\
Each group of facts may be left out where a parent (`extends`) states it. A fact is written bare or as
`{value, source, mark}`; `source` and `mark` of its group serve its bare facts. A source reads `KEY, KEY: detail`, with
keys from `sources`. Marks: `ran` (provoked with the tool named), `read` (read in the work named), `infer` (concluded;
no proof may use it). In the tables of groups, `required` means: stated by the file or by one of its parents.
"""


def spec_page() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    parts += ["## specs/families/<family>.yaml\n", *_sections(FamilySpec)]
    parts += ["## specs/platforms/<target>.yaml\n", _PLATFORM, *_sections(PlatformHead)]
    parts += [_section(group, f"`{key}`") for key, group in _groups()]
    parts += [_section(Product, "Product")]
    parts += ["## specs/tuning/<target>/<family>.yaml\n", *_sections(TuningSpec)]
    return "\n".join(parts)


def _groups() -> Iterator[tuple[str, type[BaseModel]]]:
    """Groups of facts and the groups inside them, by dotted key."""
    for key, group in GROUPS.items():
        yield key, group
        for name, annotation in _annotations(group).items():
            if isinstance(annotation, type) and issubclass(annotation, BaseModel):
                yield from _nested(f"{key}.{name}", annotation)


def _nested(key: str, group: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    yield key, group
    for name, annotation in _annotations(group).items():
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            yield from _nested(f"{key}.{name}", annotation)


def _sections(model: type[BaseModel]) -> list[str]:
    """A model and all models below it, each once, in the order of their first mention."""
    found: dict[str, type[BaseModel]] = {}
    waiting = [model]
    while waiting:
        current = waiting.pop(0)
        if current.__name__ not in found:
            found[current.__name__] = current
            waiting += [one for annotation in _annotations(current).values() for one in _models_in(annotation)]
    return [_section(one, one.__name__) for one in found.values()]


def _section(model: type[BaseModel], title: str) -> str:
    meanings = _attribute_docs(model)
    lines = [f"### {title}\n", _summary(model) + "\n", "| key | holds | default | meaning |", "|---|---|---|---|"]
    annotations = _annotations(model)
    for name, info in model.model_fields.items():
        meaning = meanings.get(name) or " ".join(_summary(one) for one in _models_in(annotations[name]))
        meaning = (meaning or _COMMON.get(name, "")).rstrip(".")
        nullable = " or null" if info.is_required() and type(None) in get_args(annotations[name]) else ""
        lines.append(f"| `{name}` | {_cell(annotations[name])}{nullable} | {_default(info)} | {meaning} |")
    return "\n".join(lines) + "\n"


def _annotations(model: type[BaseModel]) -> dict[str, Any]:
    hints = get_type_hints(model, include_extras=True)
    return {name: hints[name] for name in model.model_fields}


def _summary(model: type[BaseModel]) -> str:
    """The docstring without its list of attributes, as one paragraph."""
    text = (model.__doc__ or "").split("Attributes:")[0]
    return " ".join(text.split()).replace("|", "\\|")


def _attribute_docs(model: type[BaseModel]) -> dict[str, str]:
    """`name: meaning` and `name, name: meaning` of the docstring's Attributes, continuation lines joined."""
    _, _, block = (model.__doc__ or "").partition("Attributes:")
    found: dict[str, str] = {}
    for entry in re.split(r"\n\s*(?=[a-z0-9_]+(?:, [a-z0-9_]+)*: )", block):
        names, colon, meaning = entry.strip().partition(": ")
        if colon:
            text = " ".join(meaning.split()).replace("|", "\\|")
            found.update(dict.fromkeys(names.split(", "), text))
    return found


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    if info.default is None:
        return ""
    if isinstance(info.default, (Table, tuple)) and not info.default:
        return "none"
    return f"`{str(info.default).lower() if isinstance(info.default, bool) else info.default}`"


def _cell(annotation: Any) -> str:
    return holds(annotation).replace("|", "\\|")


def holds(annotation: Any) -> str:
    """What a key may hold, in words."""
    for known, words in _WORDS:
        if annotation == known:
            return words
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(arguments)
    if origin in (Union, UnionType):
        return " or ".join(holds(one) for one in arguments if one is not type(None))
    if origin is Literal:
        return " or ".join(f"`{one}`" for one in arguments)
    if origin is Table:
        return f"mapping to {holds(arguments[0])}"
    if origin is tuple and arguments[-1] is Ellipsis:
        return f"list of {holds(arguments[0])}"
    if origin is tuple:
        return f"list of {len(arguments)}: {', '.join(dict.fromkeys(map(holds, arguments)))}"
    name = annotation.__name__
    inner = next((key for key, group in _groups() if group is annotation), "")
    if inner:
        return f"[`{inner}`](#{inner.replace('.', '')})"
    return _BY_NAME.get(name, f"[{name}](#{name.lower()})")


def _annotated(arguments: tuple[Any, ...]) -> str:
    """A type with constraints: a pattern, at least one entry, all entries different, a lower bound."""
    words = holds(arguments[0])
    for constraint in arguments[1:]:
        inner = getattr(constraint, "metadata", None) or [constraint]
        pattern = next((one.pattern for one in inner if getattr(one, "pattern", None)), None)
        if isinstance(constraint, StringConstraints) or pattern:
            words = f"{words} like `{pattern}`"
        elif isinstance(constraint, AfterValidator):
            words = f"{words}, all different"
        elif any(getattr(one, "min_length", None) for one in inner):
            words = f"{words}, at least one"
        elif any(getattr(one, "gt", None) == 0 for one in inner):
            words = f"{words} above 0"
    return words


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models an annotation contains; those of platform files have sections of their own."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation.__name__ not in _BY_NAME:
            yield annotation
        return
    for argument in get_args(annotation):
        yield from _models_in(argument)
