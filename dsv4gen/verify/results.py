"""Outcomes on disk: `verify --out FILE` writes one, and every run leaves its outcome where `dsv4gen report` finds it.

A file says what it is about by digests (`Manifest.family_digest`), so a reader can tell results of what is generated
now from older ones. `SCHEMA` goes up whenever a field of `Outcome` or of its rows changes its meaning or goes away.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from dsv4gen.base import paths
from dsv4gen.base.errors import OutputError, Place, ResultsError
from dsv4gen.verify.outcome import KIND, SCHEMA, Outcome

_REMEDY = "run: dsv4gen verify --out FILE"


def write_results(outcome: Outcome, path: Path) -> None:
    """Write an outcome; a reader sees the old file or the new one, never a part.

    Raises:
        OutputError: a place that cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        with open(handle, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor, not a path
            file.write(json.dumps(outcome.to_json(), sort_keys=True, indent=1) + "\n")
        os.replace(name, path)  # noqa: PTH105 - the name is text
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}", remedy="choose another --out") from error


def read_results(path: Path) -> Outcome:
    """The outcome that a file holds.

    Raises:
        ResultsError: missing, not JSON, not results of verify, of another schema, or incomplete.
    """
    place = Place(paths.display(path))
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ResultsError("there is no such file", place=place, remedy=_REMEDY) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ResultsError(f"not readable as JSON: {error}", place=place, remedy=_REMEDY) from error
    kind, schema = (data.get("kind"), data.get("schema")) if isinstance(data, dict) else (None, None)
    if kind != KIND:
        raise ResultsError(f"not results of dsv4gen verify: kind is {kind!r}", place=place, remedy=_REMEDY)
    if schema != SCHEMA:
        message = f"results of schema {schema!r}; this dsv4gen reads schema {SCHEMA}"
        raise ResultsError(message, place=place, remedy=_REMEDY)
    try:
        return TypeAdapter(Outcome).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ResultsError(f"{where}: {first['msg'].lower()}", place=place, remedy=_REMEDY) from None


def keep(outcome: Outcome) -> None:
    """Leave the parts of an outcome in the cache, one file per target and family; an unwritable cache is no error."""
    for target, families in outcome.digests.items():
        for family in families:
            try:
                write_results(outcome.part(target, family), _folder() / f"{target}.{family}.json")
            except OutputError:
                return


def kept() -> Iterator[Path]:
    """Files that earlier runs left."""
    yield from sorted(_folder().glob("*.json"))


def _folder() -> Path:
    return paths.cache() / "results" / "verify"
