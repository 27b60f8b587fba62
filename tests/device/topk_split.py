"""What `run_topk.py` checks on a card about rows that are split in two launches over a workspace."""

from __future__ import annotations

from collections.abc import Callable

import torch

import dsv4gen
from dsv4gen.reference.topk_scores import SCORES, make_scores
from tests.device.topk_checks import MODES, POISON, make_call

#: (batch, width, k) of split rows on a card with clusters and without
SHAPES = ((4, 140_001, 512), (4, 262_149, 2048), (2, 1_000_003, 1024), (24, 110_002, 2048))
_GUARD = 256


def guarded(size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A zero workspace, and the larger tensor that holds it between guard bytes."""
    whole = torch.full((size + 2 * _GUARD,), POISON % 256, dtype=torch.uint8, device="cuda")
    inner = whole[_GUARD : _GUARD + size]
    inner.zero_()
    return inner, whole


def split_rows() -> str:
    """Every mode, ragged lengths, every kind of scores, thrice on one workspace: exact, zero again, guards whole."""
    count, kinds = 0, list(SCORES)
    for number, (batch, width, k) in enumerate(SHAPES):
        mode = MODES[number % len(MODES)]
        loaded = dsv4gen.load("topk", mode=mode)
        decision = loaded.explain(batch=batch, width=width, k=k)
        if decision.path != "split":
            return f"WRONG: {batch} x {width} takes {decision.path}"
        space, whole = guarded(loaded.op().workspace_bytes(batch=batch, width=width, k=k)["workspace"])
        for first in range(0, len(kinds), batch):
            names = [kinds[(first + row) % len(kinds)] for row in range(batch)]
            rows = torch.stack([make_scores(name, width, k, seed) for seed, name in enumerate(names)])
            lengths = torch.tensor([width if row % 3 else width // (1 + row) for row in range(batch)])
            call = make_call(mode, rows, lengths, k, odd=bool(first % 2))
            loaded(**call.arguments(), workspace=space)
            call.check()
            count += batch
        if bool((space != 0).any()):
            return f"WRONG: {int((space != 0).sum())} bytes of the workspace are not zero again"
        space.fill_(POISON % 256)
        if bool((whole != POISON % 256).any()):
            return "WRONG: bytes around the workspace were written"
    return f"{count} rows right"


def split_races(launches: int = 4000) -> str:
    """Distinct scores have one right set; many launches in a graph all give it."""
    loaded = dsv4gen.load("topk", mode="indices")
    wrong = torch.zeros((), dtype=torch.int64, device="cuda")
    rows = 0
    for batch, width, k in ((32, 100_001, 512), (4, 140_001, 2048)):
        scores = torch.stack([torch.randperm(width, device="cuda").float() for _ in range(batch)])
        lengths = torch.full((batch,), width, dtype=torch.int32, device="cuda")
        spaces = loaded.op().make_workspaces("cuda", batch=batch, width=width, k=k)
        wanted = scores.topk(k, dim=1).indices.sort(dim=1).values.int()
        out = torch.empty(batch, k, dtype=torch.int32, device="cuda")
        loaded(scores, lengths, out, **spaces)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            for _ in range(20):
                out.fill_(POISON)
                loaded(scores, lengths, out, **spaces)
                wrong += (out.sort(dim=1).values != wanted).any(dim=1).sum()
        for _ in range(launches // 20):
            captured.replay()
        rows += launches * batch
    return f"WRONG: {int(wrong)} of {rows} rows" if int(wrong) else f"{rows} rows of {2 * launches} launches right"


def split_streams(rounds: int = 200) -> str:
    """Two streams at once, each with a workspace of its own."""
    loaded = dsv4gen.load("topk", mode="indices")
    batch, width, k = 4, 150_001, 2048
    sides = []
    for _ in range(2):
        scores = torch.stack([torch.randperm(width, device="cuda").float() for _ in range(batch)])
        call = make_call("indices", scores, torch.full((batch,), width, dtype=torch.int32), k)
        spaces = loaded.op().make_workspaces("cuda", batch=batch, width=width, k=k)
        sides.append((call, spaces, torch.cuda.Stream()))  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    for _ in range(rounds):
        for call, spaces, stream in sides:
            with torch.cuda.stream(stream):
                loaded(**call.arguments(), **spaces)
    torch.cuda.synchronize()
    for call, _, _ in sides:
        call.check()
    return f"{2 * rounds} calls right"


CHECKS: dict[str, Callable[[], str]] = {
    "split rows": split_rows,
    "split races": split_races,
    "split streams": split_streams,
}
