"""Check and time the generated sparse_decode module on a CUDA card; run by hand, not collected by pytest.

    python tests/device/run_sparse_decode.py [check] [bench] [--heads 16,64,128] [--tokens 1,16,64,128,256] [--quick]

Needs `generated/sm_90` (dsv4gen build --target sm_90) and nothing but torch and triton. `check` compares with the
reference; `bench` times graph replays over inputs that rotate past the L2, for several tiles, splits and reducers,
and for the gathered path. A table goes to the terminal, `sparse_decode.json` to the folder $OUT.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import multiprocessing
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from dsv4gen.base.errors import DsvError  # noqa: E402
from dsv4gen.reference.compare import check_attention, check_exact, check_lse  # noqa: E402
from dsv4gen.reference.gather_dequant import V4  # noqa: E402
from dsv4gen.reference.sparse_decode import Scope, attend  # noqa: E402
from dsv4gen.reference.sparse_decode_cases import SCALE, Case, build_case, fill_pool  # noqa: E402

#: bytes of inputs that a graph walks through, past twice the L2 of an H200
ROTATE = 160_000_000
READ_RATE = 4.55e12
MATRIX_RATE = 989e12
MAIN_WIDTH, EXTRA_WIDTH = 128, 512
Tile = tuple[int, int, int, int]
#: block_h, block_n, num_warps, num_stages
TILES: dict[int, tuple[Tile, ...]] = {
    16: ((16, 32, 4, 1), (16, 32, 4, 3), (16, 64, 4, 3), (16, 64, 8, 1), (16, 64, 8, 3)),
    64: ((64, 64, 8, 1), (64, 64, 8, 3), (64, 32, 8, 1), (64, 32, 8, 3), (32, 32, 4, 3), (16, 32, 4, 3)),
}
ROW_TILES: dict[int, tuple[Tile, ...]] = {
    16: ((16, 64, 4, 2), (16, 64, 8, 2)),
    64: ((64, 64, 8, 2), (64, 32, 8, 2), (64, 32, 8, 3), (64, 64, 8, 1)),
}
PARTS = (1, 2, 4, 5, 8, 10, 20)


def generated(family: str) -> ModuleType:
    """A module of the card's target."""
    path = ROOT / "generated" / os.environ.get("DSV4GEN_TARGET", "sm_90") / f"{family}.py"
    spec = importlib.util.spec_from_file_location(f"generated_{family}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# ---------------------------------------------------------------- check


def on_card(value: Any) -> Any:
    """A tensor with its strides on the card; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    moved = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda")
    return moved.copy_(value)


def run_case(module: ModuleType, case: Case, repeat: int = 3) -> None:
    """Call, compare with the reference, and compare repeated calls bit by bit.

    Raises:
        VerifyError: a difference.
    """
    arguments = {name: on_card(value) for name, value in case.arguments.items()}
    results = []
    for _ in range(repeat):
        arguments["out"].fill_(float("nan"))
        arguments["lse"].fill_(float("nan"))
        module.attend(**arguments)
        results.append((arguments["out"].cpu(), arguments["lse"].cpu()))
    case.out.tensor.copy_(results[0][0])
    case.lse.tensor.copy_(results[0][1])
    case.check()
    for out, lse in results[1:]:
        check_exact(out, results[0][0], name=f"{case.name}: repeated out")
        check_exact(lse, results[0][1], name=f"{case.name}: repeated lse")
    if "counters" in arguments and arguments["counters"].any():
        raise DsvError(f"{case.name}: counters are not zero after the call")


def cases() -> list[Case]:
    """Shapes and hazards of the contract, over splits and reducers."""
    garbage = ("index_minus_one", "index_past_end", "index_garbage", "length_zero", "length_above_width")
    found = []
    for heads in (1, 8, 16, 20, 64, 128):
        for width, extra, page_size, extra_page in ((64, 512, 256, 64), (65, 33, 61, 2), (1, 576, 2, 69)):
            shape = {"tokens": 6, "heads": heads, "width": width, "page_size": page_size, "pages": 9, "queries": 3}
            shape |= {"extra_width": extra, "extra_page_size": extra_page, "extra_pages": 300}
            for splits, reduce in ((None, "kernel"), (1, "kernel"), (3, "kernel"), (8, "last_arriver")):
                named: dict[str, Any] = {"splits": splits, "reduce": reduce}
                if reduce == "last_arriver":
                    named["counters"] = torch.zeros(6 * heads, dtype=torch.int32)
                dialect = "e4m3fnuz" if width == 65 else "e4m3fn"
                found.append(build_case(shape, names=garbage, extra_dialect=dialect, seed=heads + width, **named))
    return found


def far_pages(module: ModuleType) -> None:
    """Slots behind 2^31 bytes of pool.

    Raises:
        VerifyError: a difference.
    """
    page_size, far = 256, 14340
    stride = V4.page_bytes(page_size)
    near = torch.full((2, stride), 255, dtype=torch.uint8)
    slots = torch.tensor([0, page_size, page_size + 1, 2 * page_size - 1])
    generator = torch.Generator().manual_seed(2)
    fill_pool(near, page_size, slots, "e4m3fn", generator)
    pool = torch.empty(far + 1, stride, dtype=torch.uint8, device="cuda")
    pool[0], pool[far] = near[0].cuda(), near[1].cuda()
    indices = slots.to(torch.int32)[None]
    moved = torch.where(indices >= page_size, indices + (far - 1) * page_size, indices)
    q = torch.randn(1, 16, 512, generator=generator).bfloat16()
    out, lse = torch.empty(1, 16, 512, dtype=torch.bfloat16, device="cuda"), torch.empty(1, 16, device="cuda")
    module.attend(q=q.cuda(), cache=pool, indices=moved.cuda(), out=out, lse=lse, page_size=page_size, scale=SCALE)
    expected = attend(q, [Scope(near, page_size, indices)], scale=SCALE)
    check_attention(out.cpu(), expected[0])
    check_lse(lse.cpu(), expected[1])


def check(module: ModuleType) -> bool:
    """All checks; prints the failures."""
    failed = 0
    todo: list[tuple[str, Callable[[], None]]] = [("pool above 2 GiB", lambda: far_pages(module))]
    todo += [(case.name, lambda case=case: run_case(module, case)) for case in cases()]  # type: ignore[misc]
    for name, run in todo:
        try:
            run()
        except DsvError as error:
            failed += 1
            print(f"FAILED {name}: {error}", flush=True)
    print(f"check: {len(todo) - failed} of {len(todo)} passed", flush=True)
    return failed == 0


# ---------------------------------------------------------------- bench


class Inputs:
    """Two caches of about 300 MB and index sets that together read past the L2."""

    def __init__(self, heads: int, tokens: int, pools: tuple[torch.Tensor, torch.Tensor]) -> None:
        keys = MAIN_WIDTH + EXTRA_WIDTH
        sets = max(2, min(300, -(-ROTATE // (tokens * keys * 584))))
        self.main, self.extra = pools
        self.calls: list[dict[str, Any]] = []
        queries = [torch.randn(tokens, heads, 512, device="cuda").bfloat16() for _ in range(min(sets, 16))]
        sink = torch.randn(heads, device="cuda")
        out = torch.empty(tokens, heads, 512, dtype=torch.bfloat16, device="cuda")
        lse = torch.empty(tokens, heads, device="cuda")
        counters = torch.zeros(tokens * heads, dtype=torch.int32, device="cuda")
        parts = torch.empty(tokens * heads * 512 * max(PARTS), dtype=torch.float32, device="cuda")
        states = torch.empty(tokens * heads * max(PARTS), dtype=torch.float32, device="cuda")
        for number in range(sets):
            start = torch.randint(0, 2048, (tokens, 1), device="cuda") * 256
            window = start + torch.randint(0, 128, (tokens, 1), device="cuda") + torch.arange(128, device="cuda")
            chosen = torch.randint(0, 8192 * 64, (tokens, EXTRA_WIDTH), device="cuda", dtype=torch.int32)
            self.calls.append(
                {
                    "q": queries[number % len(queries)], "cache": self.main, "indices": window.int(),
                    "extra_cache": self.extra, "extra_indices": chosen, "sink": sink, "out": out, "lse": lse,
                    "page_size": 256, "extra_page_size": 64, "scale": 512**-0.5, "counters": counters,
                    "part_results": parts, "part_lses": states,
                }
            )  # fmt: skip


def card_pools() -> tuple[torch.Tensor, torch.Tensor]:
    """Finite random caches: pages of 256 and of 64 tokens, 512 K tokens each."""
    pools = []
    for pages, page_size in ((2048, 256), (8192, 64)):
        pool = torch.zeros(pages, V4.page_bytes(page_size), dtype=torch.uint8, device="cuda")
        data = pool[:, : page_size * 576].view(pages, page_size, 576)
        for first in range(0, pages, 256):
            part = data[first : first + 256]
            part[..., :448] = torch.randn(*part.shape[:2], 448, device="cuda").to(torch.float8_e4m3fn).view(torch.uint8)
            rope = torch.randn(*part.shape[:2], 64, device="cuda").bfloat16()
            part[..., 448:] = rope.view(torch.uint8).view(*part.shape[:2], 128)
        scales = pool[:, page_size * 576 : page_size * 584]
        scales.copy_(torch.randint(124, 129, scales.shape, device="cuda", dtype=torch.uint8))
        pools.append(pool)
    return pools[0], pools[1]


def graph_us(calls: Sequence[Callable[[], None]]) -> float:
    """Microseconds of a call: the median replay of a graph that walks through all calls, divided by their number."""
    for call in calls[:2]:
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    count = max(len(calls), 20)
    with torch.cuda.graph(graph):
        for number in range(count):
            calls[number % len(calls)]()
    times: list[float] = []
    for replay in range(13):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        if replay > 2:
            times.append(float(start.elapsed_time(end)) * 1e3 / count)
    return float(statistics.median(times))


Choice = tuple[str, Tile | None, int | None, str]


def choices(heads: int, tokens: int) -> list[Choice]:
    """Kind, tile, parts and reducer of what is worth timing; the first is the module's own choice."""
    found: list[Choice] = [("default", None, None, "kernel")]
    blocks = tokens * max(1, heads // 64)
    parts = [count for count in PARTS if count == 1 or blocks * count <= 528]
    for tile in TILES[16 if heads <= 16 else 64]:
        for count in parts:
            if count == 1 and blocks < 64:
                continue
            found += [("paged", tile, count, how) for how in (("kernel", "last_arriver") if count > 1 else ("kernel",))]
    found += [("gathered", tile, 1, "-") for tile in ROW_TILES[16 if heads <= 16 else 64] if tokens >= 64]
    return found


def make_call(modules: Sequence[ModuleType], choice: Choice, call: dict[str, Any], room: Any) -> Callable[[], None]:
    """One call of a choice on one input set."""
    kind, tile, parts, how = choice
    if kind != "gathered":
        return lambda: modules[0].attend(**call, tile=tile, splits=parts, reduce=how)
    rows, mask = room
    scopes = {name: call[name] for name in ("cache", "indices", "extra_cache", "extra_indices")}
    own = {name: call[name] for name in ("q", "out", "lse", "sink", "scale")}

    def run() -> None:
        modules[1].gather_dual(**scopes, out=rows, mask=mask, page_size=256, extra_page_size=64)
        modules[0].attend_rows(**own, rows=rows, mask=mask, tile=tile)

    return run


def warm(work: tuple[int, Choice]) -> str:
    """Compile one choice into Triton's cache, in a process of its own."""
    heads, choice = work
    try:
        modules = (generated("sparse_decode"), generated("gather_dequant"))
        pools = (torch.zeros(2048, V4.page_bytes(256), dtype=torch.uint8, device="cuda"),
                 torch.zeros(8192, V4.page_bytes(64), dtype=torch.uint8, device="cuda"))  # fmt: skip
        inputs = Inputs(heads, 64, pools)
        room = (torch.empty(64, 640, 512, dtype=torch.bfloat16, device="cuda"),
                torch.empty(64, 640, dtype=torch.bool, device="cuda"))  # fmt: skip
        make_call(modules, choice, inputs.calls[0], room)()
        torch.cuda.synchronize()
    except Exception as error:
        return f"{choice}: {type(error).__name__}: {str(error)[:200]}"
    return ""


def warm_all(heads: Sequence[int], quick: bool) -> None:
    """Compile everything that will be timed, several at once."""
    distinct: dict[object, tuple[int, Choice]] = {}
    for count in heads:
        for tokens in (1, 64):
            for choice in [choice for choice in choices(count, tokens) if not quick or choice[0] == "default"]:
                kind, tile, parts, how = choice
                distinct.setdefault((kind, tile, parts == 1, how, count if tile is None else 0), (count, choice))
    with multiprocessing.get_context("spawn").Pool(min(10, os.cpu_count() or 1)) as pool:
        for message in pool.imap_unordered(warm, list(distinct.values())):
            if message:
                print(f"warm: {message}", flush=True)


def bench(heads: Sequence[int], tokens: Sequence[int], quick: bool) -> list[dict[str, Any]]:
    """Time every choice; prints the default, and the best of each kind."""
    warm_all(heads, quick)
    modules = (generated("sparse_decode"), generated("gather_dequant"))
    pools = card_pools()
    found = []
    keys = MAIN_WIDTH + EXTRA_WIDTH
    print("heads tokens choice                                    us    GB/s TFLOP/s x floor", flush=True)
    for head_count in heads:
        for count in tokens:
            inputs = Inputs(head_count, count, pools)
            room = (torch.empty(count, keys, 512, dtype=torch.bfloat16, device="cuda"),
                    torch.empty(count, keys, dtype=torch.bool, device="cuda"))  # fmt: skip
            moved = count * (keys * 588 + head_count * 2052)
            work = 2048 * count * head_count * keys
            floor = max(moved / READ_RATE, work / MATRIX_RATE) * 1e6
            rows: list[dict[str, Any]] = []
            for choice in choices(head_count, count)[: 1 if quick else None]:
                try:
                    us = graph_us([make_call(modules, choice, call, room) for call in inputs.calls])
                except Exception as error:
                    print(f"{head_count} {count} {choice}: {type(error).__name__}: {str(error)[:120]}", flush=True)
                    continue
                rows.append({"heads": head_count, "tokens": count, "choice": choice, "us": round(us, 2),
                             "gb_s": round(moved / us / 1e3, 1), "tflop_s": round(work / us / 1e6, 1),
                             "floor_ratio": round(us / floor, 2)})  # fmt: skip
            found += rows
            ranked = sorted(rows[1:], key=lambda row: row["us"])
            shown = [*rows[:1], *ranked[:4], *[row for row in ranked[4:] if row["choice"][0] == "gathered"][:1]]
            for row in shown:
                print(
                    f"{head_count:5} {count:6} {row['choice']!s:42} {row['us']:7.1f} {row['gb_s']:7.0f} "
                    f"{row['tflop_s']:7.1f} {row['floor_ratio']:7.2f}",
                    flush=True,
                )
    return found


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("steps", nargs="*", default=["check", "bench"])
    parser.add_argument("--heads", default="16,64,128")
    parser.add_argument("--tokens", default="1,16,64,128,256")
    parser.add_argument("--quick", action="store_true", help="time the module's own choices only")
    options = parser.parse_args()
    heads, tokens = ([int(word) for word in text.split(",")] for text in (options.heads, options.tokens))
    right = check(generated("sparse_decode")) if "check" in options.steps else True
    if "bench" in options.steps:
        rows = bench(heads, tokens, options.quick)
        target = Path(os.environ.get("OUT", ".")) / "sparse_decode.json"
        target.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
