"""Which names an op, its arguments and its numbers may have: they become names in generated Python text."""

from __future__ import annotations

import keyword

#: what the text of a launch function calls or catches; an argument of such a name would hide it
TEXT_READS = frozenset({
    "bytes", "float", "int", "max", "min", "repr",
    "ArithmeticError", "AttributeError", "IndexError", "RuntimeError", "TypeError", "ValueError",
})  # fmt: skip


def why_not_a_name(name: str) -> str:
    """Why a name cannot be used, in words that follow it; nothing where it can be."""
    if not name.isidentifier() or keyword.iskeyword(name):
        return "is no name in Python"
    if name.startswith("_"):
        return "begins with an underscore, as names of launch functions do"
    if name in TEXT_READS:
        return "is a name that launch functions read"
    return ""
