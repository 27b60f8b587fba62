"""The rows of a top-k call: where each one's scores lie, and what a selected position becomes in each mode.

    indices      the position itself
    page_table   `table[row][position >> page_bits] << page_bits | low bits`: its slot in a paged cache
    dual         the slot, and in a second output the position
    ragged       the position plus `out_offsets[row]`; the row is a window that begins at column `row_starts[row]`
    packed       such a window, and slots through row `row_to_batch[row]` of the page table

Positions count from the window's first column. A window that begins outside of the row, and one whose row of the page
table does not exist, has no columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4gen.base.errors import ArgumentError, VerifyError

MODES = ("indices", "page_table", "dual", "ragged", "packed")
#: modes that map positions through a page table, and modes whose rows are windows
PAGED = ("page_table", "dual", "packed")
WINDOWED = ("ragged", "packed")
#: entries past min(k, seq_len)
NOTHING = -1


def page_slots(positions: Tensor, table_row: Tensor, page_bits: int) -> Tensor:
    """Slots of positions through one row's page table, int64: `table[p >> bits] << bits | low bits of p`."""
    pages = table_row.to(torch.int64)[positions >> page_bits]
    return (pages << page_bits) | (positions & ((1 << page_bits) - 1))


@dataclass(frozen=True)
class Rows:
    """The inputs of a call, as the op takes them.

    Attributes:
        scores: float32 or bfloat16 [batch, width].
        seq_lens: int32 [batch], any value.
        mode: one of MODES.
        page_table: int32 [batch, pages], in mode `packed` int32 [tables, pages]; for the modes in PAGED.
        page_bits: log2 of the page size in positions.
        row_starts: int32 [batch], first column of each window; 0 when None. For the modes in WINDOWED.
        out_offsets: int32 [batch], added to the positions in mode `ragged`.
        row_to_batch: int32 [batch], row of the page table in mode `packed`; the row's own number when None.

    Raises:
        ArgumentError: an unknown mode, a tensor it needs missing, or one it does not take.
    """

    scores: Tensor
    seq_lens: Tensor
    mode: str = "indices"
    page_table: Tensor | None = None
    page_bits: int = 0
    row_starts: Tensor | None = None
    out_offsets: Tensor | None = None
    row_to_batch: Tensor | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ArgumentError(f"unknown mode {self.mode!r}", remedy=f"one of {', '.join(MODES)}")
        self._require("page_table", self.mode in PAGED)
        self._require("out_offsets", self.mode == "ragged")
        for name, modes in (("row_starts", WINDOWED), ("row_to_batch", ("packed",))):
            if getattr(self, name) is not None and self.mode not in modes:
                raise ArgumentError(f"mode {self.mode!r} takes no {name}")

    def __len__(self) -> int:
        return int(self.scores.shape[0])

    def start(self, row: int) -> int:
        """The row's first column, as given."""
        return 0 if self.row_starts is None else int(self.row_starts[row])

    def length(self, row: int) -> int:
        """Valid columns: what is asked for, within the row's width and what its pages hold."""
        start, width = self.start(row), int(self.scores.shape[1])
        limit = width - start if 0 <= start <= width else 0
        if self.mode in PAGED:
            table = self._table_row(row)
            limit = min(limit, 0 if table is None else len(table) << self.page_bits)
        return min(max(int(self.seq_lens[row]), 0), limit)

    def valid(self, row: int) -> Tensor:
        """The row's valid scores, float32: a view unless they are bfloat16."""
        start = self.start(row) if self.length(row) else 0
        return self.scores[row, start : start + self.length(row)].float()

    def entries(self, row: int, positions: Tensor) -> Tensor:
        """What the mode writes for positions, int64; NOTHING stays."""
        empty = positions == NOTHING
        if self.out_offsets is not None:
            return torch.where(empty, NOTHING, positions + int(self.out_offsets[row]))
        table = self._table_row(row) if self.mode in PAGED else None
        if table is None:
            return positions
        return torch.where(empty, NOTHING, page_slots(positions.clamp(min=0), table, self.page_bits))

    def positions(self, row: int, entries: Tensor, name: str) -> Tensor:
        """Positions that a row's entries (int64 [k]) stand for; past the selection they stay as they are.

        Raises:
            VerifyError: an entry that is no valid position's.
            ArgumentError: the page table names a page twice, so that slots do not tell positions apart.
        """
        length = self.length(row)
        if self.out_offsets is not None:
            positions = entries - int(self.out_offsets[row])
            empty = (entries == NOTHING) & ((positions < 0) | (positions >= length))
            return torch.where(empty | (torch.arange(len(entries)) >= length), entries, positions)
        table = self._table_row(row) if self.mode in PAGED else None
        if table is None or length == 0:
            return entries
        slots, positions = page_slots(torch.arange(length), table, self.page_bits).sort()
        if bool((slots[1:] == slots[:-1]).any()):
            raise ArgumentError(f"{name}: the page table names a page twice, so slots do not tell positions apart")
        empty = entries == NOTHING
        place = torch.searchsorted(slots, entries).clamp(max=length - 1)
        if not bool(((slots[place] == entries) | empty).all()):
            raise VerifyError(f"{name}: an entry is no slot of a valid position")
        return torch.where(empty, NOTHING, positions[place])

    def _table_row(self, row: int) -> Tensor | None:
        """The row's page table, or None where it does not exist."""
        assert self.page_table is not None
        number = row if self.row_to_batch is None else int(self.row_to_batch[row])
        return self.page_table[number] if 0 <= number < len(self.page_table) else None

    def _require(self, name: str, needed: bool) -> None:
        if (getattr(self, name) is not None) is not needed:
            words = name.replace("_", " ") if name == "page_table" else name
            raise ArgumentError(f"mode {self.mode!r} {'needs a' if needed else 'takes no'} {words}")
