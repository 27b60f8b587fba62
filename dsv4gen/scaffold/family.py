"""`dsv4gen new-family`: spec, template, reference, cases, timed inputs and test of a family that counts entries.

The texts lie in `texts/`; `@name@` stands for the family. They are a working family, so what is wrong after an edit
is the edit.
"""

from __future__ import annotations

import keyword
import re
from pathlib import Path

from dsv4gen.base import extensions
from dsv4gen.base.errors import UsageError
from dsv4gen.scaffold.home import Home, find_home, write_new

#: language -> the part of a template's name that tells editors what it is
LANGUAGES = {"hip_cuda": "cu", "triton": "py"}
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TEXTS = Path(__file__).parent / "texts"
#: a family named so would have the file name of another family's cases or timed inputs
_CASES, _BENCH = "_cases", "_bench"


def new_family(name: str, *, language: str = "hip_cuda", folder: Path | None = None) -> list[Path]:
    """Write a new family and return its files.

    Args:
        language: a key of LANGUAGES.
        folder: an extension's folder; the checkout when None.

    Raises:
        UsageError: not a name, a name in use, or no place for it.
        OutputError: a file that exists or cannot be written.
    """
    _check_name(name)
    home = find_home(folder)
    texts = {path: source.read_text(encoding="utf-8") for path, source in _files(name, language, home).items()}
    filled = {path: text.replace("@name@", name) for path, text in texts.items()}
    package = home.root / "tests" / name / "__init__.py"
    return write_new(filled if folder is not None else {**filled, package: ""})


def _files(name: str, language: str, home: Home) -> dict[Path, Path]:
    """New file -> the text it starts from."""
    own, kind = _TEXTS / language, LANGUAGES[language]
    return {
        home.root / "specs" / "families" / f"{name}.yaml": own / "spec.yaml.txt",
        home.root / "templates" / language / f"{name}.{kind}.jinja": own / f"template.{kind}.jinja.txt",
        home.reference / f"{name}.py": _TEXTS / "reference.py.txt",
        home.reference / f"{name}{_CASES}.py": _TEXTS / "cases.py.txt",
        home.reference / f"{name}{_BENCH}.py": _TEXTS / "bench.py.txt",
        home.root / "tests" / name / f"test_{name}.py": own / "test.py.txt",
    }


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        raise UsageError(f"{name!r} is not a family name", remedy="small letters, digits and _, such as argmax")
    for ending, what in ((_CASES, "cases"), (_BENCH, "timed inputs")):
        if name.endswith(ending):
            raise UsageError(f"a family name cannot end in {ending}", remedy=f"that is the name of a family's {what}")
    for folder in extensions.spec_folders():
        if (folder / "families" / f"{name}.yaml").exists():
            raise UsageError(f"there is a family {name} already", remedy="choose another name")
