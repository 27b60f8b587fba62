"""Does the text parse: balanced C++ delimiters, and Python that compiles and binds every name it reads."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator

_PAIRS = {")": "(", "]": "[", "}": "{"}


def unbalanced(code: str) -> Iterator[tuple[int, str]]:
    """Each bracket without a partner as (line, message); `code` is free of comments and strings."""
    stack: list[tuple[str, int]] = []
    for number, line in enumerate(code.split("\n"), start=1):
        for char in line:
            if char in "([{":
                stack.append((char, number))
            elif char in _PAIRS:
                if not stack or stack[-1][0] != _PAIRS[char]:
                    yield number, f"'{char}' closes nothing"
                    return
                stack.pop()
    for char, number in stack:
        yield number, f"'{char}' is never closed"


def empty_initialisers(code: str) -> Iterator[tuple[int, str]]:
    """Assignments that rendered to nothing, such as `constexpr int kW = ;`."""
    for number, line in enumerate(code.split("\n"), start=1):
        squeezed = line.replace(" ", "")
        if "=;" in squeezed or "=," in squeezed or "(," in squeezed or ",)" in squeezed:
            yield number, "an expression rendered to nothing"


def python_findings(text: str, name: str) -> Iterator[tuple[int, str]]:
    """Syntax errors, and global names that are read but bound nowhere."""
    try:
        tree = ast.parse(text, name)
        table = symtable.symtable(text, name, "exec")
    except SyntaxError as error:
        yield error.lineno or 1, f"not Python: {error.msg}"
        return
    bound = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    bound |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_namespace()}
    bound |= set(dir(builtins)) | {"__file__", "__name__"}
    missing = {name for name in _global_reads(table) if name not in bound}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in missing:
            yield node.lineno, f"name {node.id!r} is not defined"


def _global_reads(table: symtable.SymbolTable) -> Iterator[str]:
    for symbol in table.get_symbols():
        top_level = table.get_type() == "module"
        if symbol.is_referenced() and (symbol.is_global() or top_level):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _global_reads(child)
