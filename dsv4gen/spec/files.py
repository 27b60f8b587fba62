"""Files that family specs name: the template and the reference, each in the package's folder or an extension's."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dsv4gen.base import paths
from dsv4gen.base.errors import DsvError, SpecError
from dsv4gen.base.extensions import reference_folders, template_folders
from dsv4gen.spec.family import FamilySpec
from dsv4gen.spec.findings import Findings
from dsv4gen.spec.loaded import Loaded

_CASES = "_cases"


def check_files(families: Iterable[Loaded[FamilySpec]]) -> list[SpecError]:
    """Templates and references that are not there."""
    own = paths.PACKAGE / "reference"
    try:
        templates, references = template_folders(), (own, *reference_folders(own))
    except DsvError:  # a reference that exists twice, which is named when references are imported
        return []
    modules = {path.stem for folder in references for path in folder.glob("*.py")}
    defining = {name.removesuffix(_CASES) for name in modules if name.endswith(_CASES)} & modules
    errors: list[SpecError] = []
    for loaded in families:
        family, findings = loaded.model, Findings(loaded)
        kind = f"templates/{family.language}"
        findings.known(family.template, _bodies(templates, family.language), f"no file of {kind}", "template")
        if family.reference not in modules:
            findings.known(family.reference, defining, "no module of dsv4gen.reference", "reference")
        elif family.reference not in defining:
            cases = f"{family.reference}{_CASES}"
            remedy = f"write {cases}.py, or name one of {', '.join(sorted(defining))}"
            findings.add(f"no module {cases} has the calls that are judged by it", "reference", remedy=remedy)
        errors.extend(findings.errors)
    return errors


def _bodies(folders: Iterable[Path], language: str) -> set[str]:
    """Templates of one language; `_file.cu.jinja` is the frame of all sources."""
    files = (path.name for folder in folders for path in (folder / language).glob("*.jinja"))
    return {name for name in files if not name.startswith("_")}
