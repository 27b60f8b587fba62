"""Checks of `run_topk.py` with many rows, judged on the card: the 278 cases of the first public version of the kernels,
guard words, options, and rows enough to meet a rare race."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import torch

import dsv4gen
from dsv4gen.base.errors import VerifyError
from dsv4gen.reference.topk import CHOICES, Rules, Selection, canonical_keys, check_selection
from dsv4gen.reference.topk_rows import Rows
from dsv4gen.reference.topk_scores import SCORES, make_scores
from tests.device.topk_checks import PAGE_BITS, POISON, Call, make_call, scratch

KS = (512, 1024, 2048)
FIXED = (
    *((8, 256), (16, 1024), (8, 4096), (8, 8192), (128, 8192), (300, 8192), (8, 8193), (64, 16384), (256, 16384)),
    *((8, 16385), (4, 32768), (16, 65535), (4, 65536), (100, 65536), (1, 65537), (2, 131072), (8, 98304), (30, 131072)),
    *((31, 131072), (40, 262144), (64, 196608), (128, 131072), (129, 131072), (200, 262144)),
)
LENGTHS = (4096, 12000, 40000, 65536, 98304, 262144)
#: (first column, columns) of each row
WINDOWS = {
    **{
        f"{name} {length}": tuple((start, length) for start in (0, 1, 2, 3, 4, 7, 4096, 4099))
        for name, length in (("trivial", 1500), ("register", 6000), ("register", 12000), ("streaming", 40000))
    },
    "mixed": ((0, 1000), (1000, 3000), (4000, 9000), (13000, 20000), (33000, 1), (33001, 2047)),
    "boundaries": ((1, 2048), (2049, 2049), (4098, 8192), (12290, 8193), (20483, 16385)),
    "long": ((0, 131072), (131072, 65537), (196609, 100000)),
}
RACE_ROWS = 300_000
#: (batch, width, k) whose rows take every launch path and tile of v2 on a card of 132 units with clusters
PATHS = (
    *((530, 2500, 512), (8, 4000, 512), (100, 12_001, 1024), (34, 40_001, 2048), (16, 40_001, 512)),
    *((8, 40_001, 1024), (8, 140_001, 512), (4, 140_001, 1024), (4, 140_001, 2048), (2, 262_149, 512)),
)
RACES = (
    *((4096, 2048, 512), (2048, 8193, 1024), (512, 40_000, 2048), (100, 20_000, 512), (48, 65_536, 1024)),
    *((32, 65_536, 2048), (16, 65_536, 512), (8, 131_072, 512), (8, 200_000, 1024), (4, 200_000, 512)),
    *((1, 131_072, 2048), (1, 200_000, 512)),
)


def judge(out: torch.Tensor, scores: torch.Tensor, lengths: torch.Tensor) -> int:
    """Rows of positions (int32 [batch, k]) that are wrong, on the card: NaN-free scores, windows from column 0."""
    (batch, k), width = out.shape, scores.shape[1]
    wanted = lengths.clamp(0, width).clamp(max=k).long()
    columns = torch.arange(width, device=out.device)
    keys = canonical_keys(scores).masked_fill(columns >= lengths[:, None], -1)
    best = torch.topk(keys, min(k, width), dim=1).values
    if width < k:
        best = torch.cat([best, best.new_full((batch, k - width), -1)], 1)
    selected = torch.arange(k, device=out.device) < wanted[:, None]
    inside = (out >= 0) & (out < lengths[:, None])
    found = keys.gather(1, out.long().clamp(0, width - 1)).masked_fill(~selected, -1).sort(1, descending=True).values
    apart = torch.where(selected, out.long(), width + torch.arange(k, device=out.device)).sort(1).values
    wrong = (found != best.masked_fill(~selected, -1)).any(1) | (apart[:, 1:] == apart[:, :-1]).any(1)
    wrong |= (selected & ~inside).any(1) | (~selected & (out != -1)).any(1)
    return int(wrong.sum())


class Guarded:
    """An output inside poisoned memory, rows apart from each other."""

    def __init__(self, batch: int, k: int) -> None:
        self.buffer = torch.full((batch + 2, k + 6), POISON, dtype=torch.int32, device="cuda")
        self.out = self.buffer[1:-1, 3 : 3 + k]

    def require_untouched(self, name: str) -> None:
        """Raise if a word outside of the output changed."""
        words = self.buffer.clone()
        words[1:-1, 3 : 3 + self.out.shape[1]] = POISON
        if not bool((words == POISON).all()):
            raise VerifyError(f"{name}: words outside of the output changed")


def spaces(loaded: Any, batch: int, width: int, k: int) -> dict[str, torch.Tensor]:
    """Workspaces of a call."""
    made: dict[str, torch.Tensor] = loaded.op().make_workspaces("cuda", batch=batch, width=width, k=k)
    return made


def normal(batch: int, width: int, seed: int) -> torch.Tensor:
    """N(0, 1) on the card; rows a multiple of four apart, as the indexer lays them out."""
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(batch, -(-width // 4) * 4, device="cuda", generator=generator)


def seed_matrix() -> str:
    """Every case of the matrix at zero tolerance: values, distinctness, entries past the selection, guard words."""
    count = 0
    for name, wrong in (*_paged(), *_lengths(), *_positions(), *_ragged()):
        if wrong:
            return f"WRONG: {wrong} rows of {name}"
        count += 1
    return f"{count} cases right"


def _paged() -> Iterator[tuple[str, int]]:
    for (batch, length), k, shuffled in product(FIXED, KS, (False, True)):
        scores = normal(batch, length, batch + length + k)
        yield f"paged {batch} x {length}, k {k}", _run_paged(scores, [length] * batch, k, shuffled, False)


def _lengths() -> Iterator[tuple[str, int]]:
    for batch, k, per_row in product((20, 64, 128), KS, (False, True)):
        choices = torch.tensor((k // 2, k, *LENGTHS))
        generator = torch.Generator().manual_seed(batch + k)
        lengths = choices[torch.randint(len(choices), (batch,), generator=generator)].tolist()
        lengths[:2] = [k // 2, 262144]
        scores = normal(batch, 262144, batch + k)
        yield f"lengths {batch}, k {k}", _run_paged(scores, lengths, k, True, per_row)


def _run_paged(scores: torch.Tensor, lengths: list[int], k: int, shuffled: bool, per_row: bool) -> int:
    batch, width = scores.shape
    pages = -(-width // (1 << PAGE_BITS))
    order = torch.randperm(pages) if shuffled else torch.arange(pages)
    table = order.to(torch.int32).cuda().expand(batch, pages)
    if per_row:
        table = torch.stack([torch.randperm(pages) for _ in range(batch)]).to(torch.int32).cuda()
    seq_lens, guarded = torch.tensor(lengths, dtype=torch.int32, device="cuda"), Guarded(batch, k)
    loaded = dsv4gen.load("topk")
    space = spaces(loaded, batch, width, k)
    loaded(scores, seq_lens, table.contiguous(), guarded.out, page_bits=PAGE_BITS, **space)
    guarded.require_untouched("paged")
    inverse = torch.argsort(table.long(), dim=1)
    slots = guarded.out.long()
    pages_of = inverse.gather(1, (slots >> PAGE_BITS).clamp(0, pages - 1))
    positions = torch.where(slots < 0, slots, (pages_of << PAGE_BITS) | (slots & ((1 << PAGE_BITS) - 1)))
    return judge(positions.to(torch.int32), scores, seq_lens)


def _positions() -> Iterator[tuple[str, int]]:
    for (batch, length), k in product(FIXED, KS):
        scores, guarded = normal(batch, length, length + k), Guarded(batch, k)
        seq_lens = torch.full((batch,), length, dtype=torch.int32, device="cuda")
        loaded = dsv4gen.load("topk", mode="indices")
        loaded(scores, seq_lens, guarded.out, **spaces(loaded, batch, scores.shape[1], k))
        guarded.require_untouched("positions")
        yield f"positions {batch} x {length}, k {k}", judge(guarded.out, scores, seq_lens)


def _ragged() -> Iterator[tuple[str, int]]:
    for (name, windows), k, shift in product(WINDOWS.items(), KS, (0, 4321)):
        yield f"ragged {name}, k {k}", _run_ragged(windows, k, shift)
    for k in (512, 2048):
        yield f"ragged from column 0, k {k}", _run_ragged(((0, 6000), (0, 20000)), k, 7, starts=False)


def _run_ragged(windows: tuple[tuple[int, int], ...], k: int, shift: int, *, starts: bool = True) -> int:
    """Columns outside of the windows would win; the scores must not change."""
    width = max(start + length for start, length in windows) + 9
    scores = torch.full((len(windows), width), 1e3, device="cuda")
    inner = torch.full((len(windows), max(length for _, length in windows)), -1.0, device="cuda")
    for row, (start, length) in enumerate(windows):
        inner[row, :length] = normal(1, length, start + length + k)[0, :length]
        scores[row, start : start + length] = inner[row, :length]
    first, lengths = torch.tensor(windows, dtype=torch.int32, device="cuda").unbind(1)
    offsets = (torch.arange(len(windows), dtype=torch.int32) * 100_000 + shift).cuda()
    before, guarded = scores.clone(), Guarded(len(windows), k)
    loaded = dsv4gen.load("topk", mode="ragged")
    given = {"row_starts": first.contiguous()} if starts else {}
    given |= spaces(loaded, len(windows), width, k)
    loaded(scores=scores, seq_lens=lengths.contiguous(), out_offsets=offsets, out=guarded.out, **given)
    guarded.require_untouched("ragged")
    if not torch.equal(scores, before):
        raise VerifyError("ragged: scores were written")
    moved = torch.where(guarded.out < 0, guarded.out, guarded.out - offsets[:, None])
    return judge(moved, inner, lengths)


def options() -> str:
    """Every combination of the rules and dtypes of scores, on every kind of scores, judged on the host."""
    count = 0
    combinations = [Rules(*words) for words in product(*CHOICES.values())]
    for number, (rules, dtype) in enumerate(product(combinations, ("f32", "bf16"))):
        width, k = ((3000, 512), (12000, 1024), (40000, 2048))[number % 3]
        mode = ("indices", "page_table", "ragged", "packed")[number % 4]
        rows = torch.stack([make_scores(name, width, k, seed) for seed, name in enumerate(SCORES)])
        call = make_call(mode, rows, torch.full((len(SCORES),), width, dtype=torch.int32), k, odd=number % 2 == 1)
        call = replace(call, rows=_with_dtype(call.rows, dtype))
        loaded = dsv4gen.load("topk", mode=mode, score_dtype=dtype, **vars(rules))
        loaded(**call.arguments(), **scratch(loaded, call))
        check_on_host(call, rules)
        count += len(SCORES)
    return f"{count} rows right with {2 * len(combinations)} combinations"


def _with_dtype(rows: Rows, dtype: str) -> Rows:
    return rows if dtype == "f32" else replace(rows, scores=rows.scores.to(torch.bfloat16))


def check_on_host(call: Call, rules: Rules) -> None:
    """Judge by the reference."""
    moved = {name: value.cpu() for name, value in vars(call.rows).items() if isinstance(value, torch.Tensor)}
    raw = None if call.raw_out is None else call.raw_out.cpu()
    check_selection(Selection(call.out.cpu(), raw), replace(call.rows, **moved), rules)


def path_options() -> str:
    """Every combination of rules and type of scores on every launch path and tile, judged on the host."""
    count, met = 0, set()
    for number, (batch, width, k) in enumerate(PATHS):
        mode, kinds = ("indices", "page_table", "ragged", "packed")[number % 4], list(SCORES)
        rows = torch.stack([make_scores(kinds[(row + 5 * number) % len(kinds)], width, k, row) for row in range(batch)])
        lengths = torch.tensor([width if row % 3 else width - row for row in range(batch)], dtype=torch.int32)
        for words, dtype in product(product(*CHOICES.values()), ("f32", "bf16")):
            rules = Rules(*words)
            call = make_call(mode, rows, lengths, k, odd=number % 2 == 1)
            call = replace(call, rows=_with_dtype(call.rows, dtype))
            loaded = dsv4gen.load("topk", mode=mode, score_dtype=dtype, **vars(rules))
            met.add(taken(loaded, batch, call.rows.scores.shape[1], k))
            loaded(**call.arguments(), **scratch(loaded, call))
            check_on_host(call, rules)
            count += batch
    return f"{count} rows right on {', '.join(sorted(met))}"


def taken(loaded: Any, batch: int, width: int, k: int) -> str:
    """Path and threads of a call."""
    decision = loaded.explain(batch=batch, width=width, k=k)
    tile = decision.launches[0].tile
    return f"{decision.path}{tile.get('cluster_blocks', '')}/{tile['block_threads']}"


def race() -> str:
    """Several hundred thousand rows through every launch path and tile, each with a poisoned output."""
    total, met = 0, set()
    kinds: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (torch.clone, torch.relu, torch.floor)
    loaded = dsv4gen.load("topk", mode="indices")
    for (batch, width, k), kind in product(RACES, kinds):
        scores = kind(normal(batch, width, width))
        keys = canonical_keys(scores[:, :width])
        best = torch.topk(keys, k, dim=1).values
        met.add(taken(loaded, batch, scores.shape[1], k))
        for out in _outputs(loaded, scores, width, k):
            found = keys.gather(1, out.long().clamp(0, width - 1)).sort(1, descending=True).values
            apart = out.sort(1).values
            wrong = (found != best).any(1) | (apart[:, 1:] == apart[:, :-1]).any(1)
            wrong |= (apart[:, 0] < 0) | (apart[:, -1] >= width)
            if bool(wrong.any()):
                return f"WRONG: {int(wrong.sum())} of {batch} rows of {width}, k {k}"
            total += batch
    text = f"{total} rows right on {', '.join(sorted(met))}"
    return text if total >= RACE_ROWS else f"WRONG: only {text}"


def option_race() -> str:
    """As `race`, with rules under which one selection alone is right: equal scores by position, entries in order."""
    total, met = 0, set()
    for (batch, width, k), tie_break, kind in product(RACES, ("low", "high"), (torch.relu, torch.floor)):
        loaded = dsv4gen.load("topk", mode="indices", tie_break=tie_break, sorted="index")
        scores = kind(normal(batch, width, width))
        keys = canonical_keys(scores[:, :width])
        wanted = only_selection(keys, k, tie_break)
        met.add(taken(loaded, batch, scores.shape[1], k))
        for out in _outputs(loaded, scores, width, k):
            wrong = int((out != wanted).any(1).sum())
            if wrong:
                return f"WRONG: {wrong} of {batch} rows of {width}, k {k}, tie_break {tie_break}"
            total += batch
    return f"{total} rows right on {', '.join(sorted(met))}"


def only_selection(keys: torch.Tensor, k: int, tie_break: str) -> torch.Tensor:
    """Positions of the k largest keys, int32 [batch, k] in order; equal ones at the lowest or highest positions."""
    last = keys.shape[1] - 1
    if tie_break == "high":
        keys = keys.flip(1)
    chosen = keys.sort(dim=1, descending=True, stable=True).indices[:, :k]
    return (last - chosen if tie_break == "high" else chosen).sort(dim=1).values.to(torch.int32)


def _outputs(loaded: Any, scores: torch.Tensor, width: int, k: int) -> Iterator[torch.Tensor]:
    """The same rows several times, each into a poisoned output between guard words."""
    batch = scores.shape[0]
    seq_lens, guarded = torch.full((batch,), width, dtype=torch.int32, device=scores.device), Guarded(batch, k)
    space = spaces(loaded, batch, scores.shape[1], k)
    for _ in range(16):
        guarded.out.fill_(POISON)
        loaded(scores, seq_lens, guarded.out, **space)
        yield guarded.out
    guarded.require_untouched("race")


CHECKS: dict[str, Callable[[], str]] = {
    "seed matrix": seed_matrix,
    "options": options,
    "options of paths": path_options,
    "race": race,
    "race of rules": option_race,
}
