"""The compressor as a state machine driven by plans: rings of projected rows, and the online partial.

What a kernel sees: a pool of state rows full of other requests' data or garbage, one step's input rows, and a
plan. Functions here read and write as the plan says and must give what `compress.compressed_rows` gives from
the whole sequence. A group's rows are read before any row is written.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dsv4gen.reference.compress import Geometry, pool, split_row, window_half
from dsv4gen.reference.compress_plan import INVALID, unpack


@dataclass(frozen=True)
class Step:
    """What all steps of a compressor share.

    Attributes:
        geometry: ratio and head dimension.
        bias: [window, head_dim], in the kernels' layout.
        bias_at: `pool` keeps raw scores in the state; `save` keeps them with their bias.
    """

    geometry: Geometry
    bias: Tensor
    bias_at: str = "pool"

    def saved(self, rows: Tensor, slots: Tensor) -> Tensor:
        """Input rows as they are kept in the state; `slots` are their positions modulo the ratio."""
        if self.bias_at == "pool":
            return rows
        rows = rows.clone()
        geometry = self.geometry
        for half in range(geometry.halves):
            start = (geometry.halves + half) * geometry.head_dim
            rows[:, start : start + geometry.head_dim] += self.bias[half * geometry.ratio + slots].to(rows.dtype)
        return rows


def pooled_decode(step: Step, state: Tensor, rows: Tensor, plan: Tensor) -> tuple[Tensor, Tensor]:
    """Pool the groups that a decode step completes.

    Args:
        state: [state rows, width].
        rows: [batch, width], one new row per request.
        plan: int32 [batch, 4].

    Returns:
        int64 [n], the batch rows that complete a group, and their pooled rows, float64 [n, head_dim].
    """
    ratio = step.geometry.ratio
    done = [b for b, seq_len in enumerate(plan[:, 0].tolist()) if seq_len > 0 and seq_len % ratio == 0]
    buffered = step.geometry.window - 1
    pooled = [_pool_group(step, state, rows, int(plan[b, 0]), b, buffered, plan[b, 2:].tolist()) for b in done]
    return torch.tensor(done, dtype=torch.int64), _stacked(pooled, step)


def pooled_prefill(step: Step, state: Tensor, rows: Tensor, compress: Tensor) -> tuple[Tensor, Tensor]:
    """Pool the groups of a compress plan; as `pooled_decode`, with indices into the plan.

    Invalid plan rows, and those whose token lies outside the step, are left out.
    """
    ragged, buffered = unpack(compress)
    pooled, kept = [], []
    for index, (seq_len, _, *pages) in enumerate(compress.tolist()):
        if seq_len == INVALID or int(ragged[index]) >= rows.shape[0]:
            continue
        kept.append(index)
        pooled.append(_pool_group(step, state, rows, seq_len, int(ragged[index]), int(buffered[index]), pages))
    return torch.tensor(kept, dtype=torch.int64), _stacked(pooled, step)


def write_decode(step: Step, state: Tensor, rows: Tensor, plan: Tensor) -> None:
    """Keep every real row of a decode step."""
    write = torch.stack([torch.arange(len(plan), dtype=torch.int32), plan[:, 1]], dim=1)
    write[plan[:, 0] == 0] = INVALID
    write_rows(step, state, rows, write)


def write_rows(step: Step, state: Tensor, rows: Tensor, write: Tensor) -> None:
    """Keep the rows of a write plan; entries that are invalid or outside are skipped."""
    ragged, target = write[:, 0].to(torch.int64), write[:, 1].to(torch.int64)
    keep = (ragged >= 0) & (ragged < rows.shape[0]) & (target >= 0) & (target < state.shape[0])
    source, target = rows[ragged[keep]], target[keep]
    wide = source.to(torch.promote_types(source.dtype, torch.float32))
    state[target] = step.saved(wide, target % step.geometry.ratio).to(state.dtype)


def _pool_group(
    step: Step, state: Tensor, rows: Tensor, seq_len: int, ragged: int, buffered: int, pages: list[int]
) -> Tensor:
    geometry = step.geometry
    values = torch.zeros(geometry.window, geometry.head_dim, dtype=torch.float64)
    scores = torch.zeros_like(values)
    valid = torch.zeros(geometry.window, dtype=torch.bool)
    for k in range(geometry.window):
        half = window_half(k, geometry)
        biased = False
        if seq_len - geometry.window + k < 0:
            continue
        if k < buffered:
            page = pages[half] if geometry.halves == 2 else pages[1]
            row = page * geometry.ratio + k % geometry.ratio
            if page < 0 or row >= state.shape[0]:
                continue
            source = state[row]
            biased = step.bias_at == "save"
        else:
            source = rows[ragged - geometry.window + 1 + k]
        value, score = split_row(source.double(), half, geometry)
        values[k], valid[k] = value, True
        scores[k] = score if biased else score + step.bias[k].double()
    return pool(values, scores, valid)


def _stacked(rows: list[Tensor], step: Step) -> Tensor:
    return torch.stack(rows) if rows else torch.zeros(0, step.geometry.head_dim, dtype=torch.float64)


@dataclass(frozen=True)
class Partial:
    """The online state of one chunk: maximum, sum and normalised mean per dimension, float64 [head_dim]."""

    largest: Tensor
    total: Tensor
    mean: Tensor

    @staticmethod
    def of(values: Tensor, scores: Tensor) -> Partial:
        """The partial of rows [n, head_dim]."""
        largest = scores.double().amax(0)
        weights = torch.exp(scores.double() - torch.where(largest == -torch.inf, 0.0, largest))
        return Partial(largest, weights.sum(0), pool(values, scores))

    def merged(self, other: Partial) -> Partial:
        """Both together."""
        largest = torch.maximum(self.largest, other.largest)
        shift = torch.where(largest == -torch.inf, 0.0, largest)
        mine, theirs = (p.total * torch.exp(p.largest - shift) for p in (self, other))
        total = mine + theirs
        mean = (self.mean * mine + other.mean * theirs) / total
        return Partial(largest, total, torch.where(total == 0, 0.0, mean))


def online_segment(
    step: Step, state: Tensor, rows: Tensor, seq_len: int, ragged: int, length: int, read_row: int
) -> Partial:
    """The partial of a chunk up to `seq_len`, of which `length` tokens end at input row `ragged`.

    Args:
        state: [requests, 3 * head_dim]: maximum, sum, mean; read unless the segment starts its chunk.
    """
    geometry = step.geometry
    source = rows[ragged - length + 1 : ragged + 1].double()
    values, scores = split_row(source, 0, geometry)
    first = (seq_len - length) % geometry.ratio
    partial = Partial.of(values, scores + step.bias[first : first + length].double())
    if first == 0:
        return partial
    stored = state[read_row].double().view(3, geometry.head_dim)
    return Partial(stored[0], stored[1], stored[2]).merged(partial)
