"""The text form of an instruction table.

One line per mnemonic:

    v_add_co_u32     u32 mask = u32 u32      : a + b ; static_cast<u64>(a) + b >> 32
    name             results  = sources      : first result ; second result

Types: u32 i32 f32 u64 i64 f64, u16 i16 f16 bf16 (low half of a dword; f16 and bf16 are read as float and rounded
on the way out), `mask` (one bit per lane in scalar registers), `scc` (the scalar condition), `s16` (a signed
16-bit constant). In an expression a, b, c, e are the sources in order, d the old value of the first result,
r the new one, `lane` the lane number. Expressions are C++ over these names and the functions of
runtime/arithmetic.h.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

SOURCE_NAMES = "abce"


@dataclass(frozen=True)
class Row:
    """One instruction: types of results and sources, C++ expressions of the results."""

    name: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    expression: str
    second: str = ""

    @property
    def reads_result(self) -> bool:
        """True when the old value of the first result is a source (`d` in an expression)."""
        return re.search(r"\bd\b", f"{self.expression} {self.second}") is not None


def parse_rows(text: str) -> dict[str, Row]:
    """All rows of a table; a name that occurs twice is a mistake of the table's author."""
    table: dict[str, Row] = {}
    for row in _rows(text):
        if row.name in table:
            raise ValueError(f"instruction {row.name} has two rows")
        table[row.name] = row
    return table


def _rows(text: str) -> Iterator[Row]:
    for line in text.splitlines():
        code = line.split("#")[0].strip()
        if not code:
            continue
        head, _, body = code.partition(":")
        names, _, sources = head.partition("=")
        name, *results = names.split()
        expression, _, second = body.partition(";")
        yield Row(name, tuple(results), tuple(sources.split()), expression.strip(), second.strip())
