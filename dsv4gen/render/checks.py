"""What a template may not contain; refused when it loads, at its line.

Strict undefined names do not catch an inline `if` without `else` (prints nothing), `default(...)` and
`is defined` (hide a misspelling), nor a field named like a dict method (prints a bound method).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jinja2 import Environment, meta, nodes

from dsv4gen.base.errors import DsvError, Place, TemplateError, did_you_mean

_GLUED_OPEN = re.compile(r"\{\{(?![ \-\n])")
_GLUED_CLOSE = re.compile(r"(?<![ \-\n])\}\}")
_STRAY_COMMENT = re.compile(r"\S.*\{#")
_HIDING_FILTERS = ("default", "d")
_HIDING_TESTS = ("defined", "undefined")
_DICT_METHODS = frozenset(("items", "keys", "values", "get", "pop", "update", "copy", "clear"))


def check_template(environment: Environment, source: str, name: str, known: Iterable[str]) -> list[DsvError]:
    """All findings of one template; `known` lists the context names it may use."""
    findings = list(_text_findings(source, name))
    if findings:
        return findings
    tree = environment.parse(source, name)
    findings += _tree_findings(tree, name)
    known = set(known) | set(environment.globals)
    for word in sorted(meta.find_undeclared_variables(tree) - known):
        line = next((node.lineno for node in tree.find_all(nodes.Name) if node.name == word), 1)
        findings.append(_error(f"unknown name {word!r}{did_you_mean(word, known)}", name, line))
    return findings


def _text_findings(source: str, name: str) -> Iterator[DsvError]:
    for number, line in enumerate(source.split("\n"), start=1):
        if _GLUED_OPEN.search(line) or (_GLUED_CLOSE.search(line) and "{{" in line):
            yield _error(
                "'{{' or '}}' glued to text",
                name,
                number,
                "put a blank inside {{ x }}; write a C initialiser as { {1, 2} }",
            )
        if _STRAY_COMMENT.search(line):
            yield _error(
                "'{#' after text starts a template comment",
                name,
                number,
                "start comments on their own line, or write { #",
            )


def _tree_findings(tree: nodes.Template, name: str) -> Iterator[DsvError]:
    for condition in tree.find_all(nodes.CondExpr):
        if condition.expr2 is None:
            yield _error("inline if without else prints nothing", name, condition.lineno, "add an else")
    for filtered in tree.find_all(nodes.Filter):
        if filtered.name in _HIDING_FILTERS:
            yield _error(
                f"filter {filtered.name}() hides misspelt names", name, filtered.lineno, "put the value into the plan"
            )
    for test in tree.find_all(nodes.Test):
        if test.name in _HIDING_TESTS:
            yield _error(f"'is {test.name}' hides misspelt names", name, test.lineno, "put the value into the plan")
    called = {id(call.node) for call in tree.find_all(nodes.Call)}
    for access in tree.find_all(nodes.Getattr):
        if access.attr in _DICT_METHODS and id(access) not in called:
            yield _error(
                f"field .{access.attr} is shadowed by a dict method", name, access.lineno, f"write ['{access.attr}']"
            )


def _error(message: str, name: str, line: int, remedy: str = "") -> DsvError:
    return TemplateError(message, place=Place(f"templates/{name}", line), remedy=remedy)
