"""Checks of a sparse_decode module; each raises on the first difference. The tests pass a shipped module, the
mutation tests one with a planted defect."""

from __future__ import annotations

import torch


def ramp_rows(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A query and rows whose scores at scale 1 are 0, 1, 2, ... and equal the last value of the row (BL-18)."""
    rows = torch.zeros(1, count, 512, dtype=torch.bfloat16)
    rows[0, :, -1] = torch.arange(count)
    q = torch.zeros(1, 1, 512, dtype=torch.bfloat16)
    q[..., -1] = 1.0
    return q, rows
