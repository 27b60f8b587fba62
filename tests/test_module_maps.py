"""Each package's docstring says what each of its modules is for: all of them, and no others."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.checkout import ROOT

PACKAGE = ROOT / "dsv4gen"
PACKAGES = sorted(path.parent for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE)
#: a line of a map: names, then what they are for behind two blanks or on the next line
_LINE = re.compile(r"^ *(\w+(?:, \w+)*)(?:  +\S.*)?$", re.MULTILINE)


def docstring(package: Path) -> str:
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8"))) or ""


def documented(package: Path) -> list[str]:
    """Names in front of the lines of the docstring's map, in its order."""
    return [name for line in _LINE.finditer(docstring(package)) for name in line[1].split(", ")]


def modules(package: Path) -> set[str]:
    """Modules and packages that lie in a folder."""
    files = {path.stem for path in package.glob("*.py")} - {"__init__"}
    return files | {path.parent.name for path in package.glob("*/__init__.py")}


ORDERED = [package for package in PACKAGES if "dependency order" in " ".join(docstring(package).split())]


@pytest.mark.parametrize("package", PACKAGES, ids=[path.relative_to(PACKAGE).as_posix() for path in PACKAGES])
def test_a_package_names_its_modules(package: Path) -> None:
    there, named = modules(package), documented(package)
    assert (there - set(named), set(named) - there) == (set(), set()), "modules without a line, lines without a module"
    assert len(named) == len(set(named))


def imports(file: Path, package: Path) -> set[str]:
    """Modules of its own package that a module imports when it is imported."""
    prefix = ".".join(package.relative_to(ROOT).parts)
    found = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module == prefix:
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{prefix}."):
            found.add(str(node.module).removeprefix(f"{prefix}.").split(".")[0])
    return found


@pytest.mark.parametrize("package", ORDERED, ids=[path.relative_to(PACKAGE).as_posix() for path in ORDERED])
def test_a_map_in_dependency_order_is(package: Path) -> None:
    named = documented(package)
    late = {
        f"{name} imports {other}"
        for position, name in enumerate(named)
        if (package / f"{name}.py").exists()
        for other in imports(package / f"{name}.py", package) & set(named[position + 1 :])
    }
    assert not late


def test_the_architecture_page_names_every_stage() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = {path.name for path in PACKAGES if path.parent == PACKAGE}
    assert not {name for name in folders if not re.search(rf"`(dsv4gen\.)?{name}[`/.]", page)}
