"""Windows that leave their row, and rows whose page table does not exist."""

from __future__ import annotations

import torch

from dsv4gen.reference.topk_cases import Case, build_problem
from tests.topk.host import HostTopk

MODE = "packed"
#: first columns relative to the row's end, and how many entries are left of 512
STARTS = (((0, None), (0, 0)), ((-1, -(2**31)), (1, 0)), ((-700, 2**31 - 1), (512, 0)))
TABLES = ((3, 1), (-1, 2), (2**31 - 1, -(2**31)))


def run_windows(host: HostTopk, label: str, mode: str = MODE) -> None:
    """Launch and judge both.

    Raises:
        EmulationError, VerifyError: the kernel misbehaved or selected wrongly.
    """
    problem = build_problem(Case(label, "normal", 3000, 512, mode=mode, page_bits=6, start=4, mapped=True))
    rows, width = problem.rows, problem.scores.shape[1]
    assert rows.row_starts is not None
    lengths = rows.seq_lens.clone()
    rows.seq_lens.fill_(2**31 - 1)
    for (first, second), left in STARTS:
        rows.row_starts.copy_(torch.tensor((width + first, -1 if second is None else second)))
        host.launch(problem)
        problem.check()
        assert [512 - int((row == -1).sum()) for row in problem.out.tensor] == list(left)
    rows.row_starts.fill_(4)
    rows.seq_lens.copy_(lengths)
    for numbers in TABLES if rows.row_to_batch is not None else ():
        assert rows.row_to_batch is not None
        rows.row_to_batch.copy_(torch.tensor(numbers))
        host.launch(problem)
        problem.check()
