"""C++ text without comments and string contents; line numbers stay."""

from __future__ import annotations

import re

_NOISE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


def code_only(text: str) -> str:
    """The text with comments blanked and string literals emptied, line by line as before.

    Inline assembly is code: strings are kept when they follow `asm`.
    """
    out = []
    end = 0
    for found in _NOISE.finditer(text):
        out.append(text[end : found.start()])
        out.append(_replacement(found.group(), text[max(0, found.start() - 400) : found.start()]))
        end = found.end()
    return "".join(out) + text[end:]


def _replacement(noise: str, before: str) -> str:
    if noise.startswith(("//", "/*")):
        return "\n" * noise.count("\n")
    return noise if _in_asm(before) else noise[0] * 2


def _in_asm(before: str) -> bool:
    start = max(before.rfind("asm"), before.rfind("asm volatile"))
    return start >= 0 and ";" not in re.sub(r"\"[^\"]*\"", "", before[start:])
