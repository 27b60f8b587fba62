"""The line in front of each kernel of a HIP/CUDA source, by which one kernel is found and compiled alone.

// ---- entry: topk_page_table_t512 ----
"""

from __future__ import annotations

import re

MARK = re.compile(r"^// ---- entry: (\w+) ----$", re.MULTILINE)


def mark(symbol: str) -> str:
    """The line in front of a kernel."""
    return f"// ---- entry: {symbol} ----"


def entry_texts(text: str) -> dict[str, str]:
    """Symbol -> what follows its line, up to the next one."""
    _, *pieces = MARK.split(text)
    return dict(zip(pieces[::2], pieces[1::2], strict=True))
