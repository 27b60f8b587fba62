"""Texts behind a cell: generated files with their maps, the templates they come from, the specs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from dsv4gen.base import extensions
from dsv4gen.report.model import SourceFile

Texts = dict[str, str]


def sources_of(target: str, files: Mapping[str, bytes], texts: Texts) -> Iterator[SourceFile]:
    """The generated files of one family, main source first; their texts and those of templates are added to `texts`."""
    names = [name for name in files if not name.startswith(("maps/", "plans/"))]
    for name in sorted(names, key=lambda name: (name.endswith(".pyi"), name.endswith(".py"), name)):
        key = f"generated/{target}/{name}"
        texts[key] = files[name].decode("utf-8", "replace")
        stored = files.get(f"maps/{name}.json")
        if stored is None:
            yield SourceFile(name, key)
            continue
        found = json.loads(stored)
        templates = tuple(f"templates/{template}" for template in found["templates"])
        for template in templates:
            _add_template(template, texts)
        yield SourceFile(name, key, templates, tuple((a, b, c) for a, b, c in found["runs"]))


def add_spec(file: str, texts: Texts) -> None:
    """Add a spec by the name shown to users, such as `specs/families/topk.yaml`."""
    tail = file.split("specs/", 1)[-1]
    _add_first(file, [folder / tail for folder in extensions.spec_folders()], texts)


def _add_template(name: str, texts: Texts) -> None:
    tail = name.removeprefix("templates/")
    _add_first(name, [folder / tail for folder in extensions.template_folders()], texts)


def _add_first(name: str, places: list[Path], texts: Texts) -> None:
    if name in texts:
        return
    for path in places:
        if path.is_file():
            texts[name] = path.read_text(encoding="utf-8", errors="replace")
            return
