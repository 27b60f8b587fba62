"""Check and time the generated indexer_logits module on a CUDA card; run by hand, not collected by pytest.

    python tests/device/run_indexer_logits.py [check|bench] [--batches 1,16,64,128] [--widths 4096,16384]

Needs `generated/sm_90` (dsv4gen build --target sm_90) and nothing but torch and triton. `check` compares with the
reference; `bench` times both ways to sum, and torch in eager mode, over keys that rotate past the L2. A table goes to
the terminal, `indexer_logits.json` to the folder $OUT.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from dsv4gen.base.errors import DsvError  # noqa: E402
from dsv4gen.bench.stopwatch import CudaStopwatch  # noqa: E402
from dsv4gen.reference.compare import check_exact  # noqa: E402
from dsv4gen.reference.indexer_logits import decode as reference_decode  # noqa: E402
from dsv4gen.reference.indexer_logits_cases import (  # noqa: E402
    GARBAGE,
    Case,
    build_case,
    check_logits,
    quantised_queries,
    store_keys,
)
from tests.device.card import require_card  # noqa: E402
from tests.device.run_sparse_decode import generated, on_card  # noqa: E402

READ_RATE = 4.55e12
#: dense peaks of the card, flops per second
F16_RATE, FP8_RATE = 989e12, 1979e12
#: bytes of inputs that a graph walks through, past twice the L2 of an H200
ROTATE = 160_000_000
PAGE, HEADS, POOL_PAGES = 64, 64, 270_336
#: error that FP8 instructions of Hopper may add to logits of about 1
FAST_SLACK = 2e-3
#: requests, rows of each, keys that the last row sees, keys a row adds a quarter of
PREFILLS = ((1, 2048, 16384), (1, 8192, 2048), (4, 1024, 8192), (1, 4096, 32768))


# ---------------------------------------------------------------- check


def run_case(module: ModuleType, case: Case, repeat: int = 2) -> None:
    """Call, compare with the reference, and compare repeated calls bit by bit.

    Raises:
        VerifyError: a difference.
    """
    arguments = {name: on_card(value) for name, value in case.arguments.items()}
    results = []
    for _ in range(repeat):
        arguments["out"].copy_(case.out.tensor)
        getattr(module, case.op)(**arguments)
        results.append(arguments["out"].cpu())
    case.out.tensor.copy_(results[0])
    case.check()
    for out in results[1:]:
        check_exact(out, results[0], name=f"{case.name}: repeated")


def cases() -> list[Case]:
    """Shapes and hazards of the contract, over heads, page sizes, dialects and both ways to sum."""
    found = []
    lengths = ("length_zero", "length_negative", "length_above_width")
    for heads in (1, 5, 64, 65, 130):
        for page_size in (64, 32, 5) if heads == 64 else (64,):
            shape = {"batch": 3, "heads": heads, "width": 300, "page_size": page_size, "pages": 70}
            for more in ({"queries": 1}, {"queries": 3}, {"rows": 9}):
                for names, tail in (
                    ((*GARBAGE, *lengths), "minus_inf"),
                    (("strided",), "untouched"),
                    (("misaligned_base",), "minus_inf"),
                ):
                    found.append(build_case({**shape, **more}, names=names, tail=tail, seed=heads))
    for dialect, other in (("e4m3fn", "e4m3fnuz"), ("e4m3fnuz", "e4m3fn"), ("e4m3fnuz", "e4m3fnuz")):
        shape = {"batch": 2, "queries": 2, "heads": 64, "width": 300, "page_size": 64}
        found.append(build_case(shape, dialect=dialect, query_dialect=other, names=GARBAGE))
    found.append(build_case(shape, names=("empty",)))
    wide = {"batch": 2, "heads": 64, "width": 1000, "page_size": 64, "pages": 40}
    fast = [build_case({**wide, **more}, sums="fast") for more in ({"queries": 2}, {"rows": 7})]
    return found + [replace(case, slack=FAST_SLACK) for case in fast]


def far_offsets(module: ModuleType) -> None:
    """Pages behind 2^31 bytes of pool, rows behind 2^31 elements of out.

    Raises:
        VerifyError: a difference.
    """
    pages, width, stride = 260_000, 100, 2_200_000_000
    near = torch.zeros(3, PAGE * 132, dtype=torch.uint8)
    store_keys(near, PAGE, torch.arange(3 * PAGE), "e4m3fn", torch.Generator().manual_seed(1))
    pool = torch.full((pages, PAGE * 132), 255, dtype=torch.uint8, device="cuda")
    pool[pages - 3 :] = near.cuda()
    codes, scales = quantised_queries((2, 1, HEADS), "e4m3fn", torch.Generator().manual_seed(2))
    weights = scales[:, 0] * 0.01
    table = torch.tensor([[0, 1], [2, 0]], dtype=torch.int32)
    lens = torch.tensor([100, 70], dtype=torch.int32)
    expected = torch.zeros(2, width, dtype=torch.float64)
    reference_decode(codes, weights, near, table, expected, page_size=PAGE, seq_lens=lens, tail="minus_inf")
    home = torch.empty(stride + width, device="cuda")
    out = home.as_strided((2, width), (stride, 1))
    named = {"page_table": (table + pages - 3).cuda(), "seq_lens": lens.cuda(), "out": out, "page_size": PAGE}
    module.decode(q=codes.cuda(), weights=weights.cuda(), cache=pool, tail="minus_inf", **named)
    check_logits(out.cpu(), expected, torch.ones_like(expected, dtype=torch.bool), name="far offsets")


def print_error(module: ModuleType, sums: str) -> None:
    """Errors of 8192 logits of two requests against exact ones."""
    case = build_case({"batch": 2, "heads": 64, "width": 8192, "page_size": 64, "pages": 256}, sums=sums, seed=5)
    arguments = {name: on_card(value) for name, value in case.arguments.items()}
    module.decode(**arguments)
    error = (arguments["out"].cpu().double() - case.expected)[case.written].abs()
    size = case.expected[case.written].square().mean().sqrt()
    spread = error.square().mean().sqrt()
    print(f"sums={sums}: error at most {error.max():.2e}, rms {spread:.2e}, logits rms {size:.2e}", flush=True)


def check(module: ModuleType) -> bool:
    """All checks; prints the failures and the errors of both ways to sum."""
    failed = 0
    todo: list[tuple[str, Callable[[], None]]] = [("2^31", lambda: far_offsets(module))]
    todo += [(case.name, lambda case=case: run_case(module, case)) for case in cases()]  # type: ignore[misc]
    for name, run in todo:
        try:
            run()
        except DsvError as error:
            failed += 1
            print(f"FAILED {name}: {error}", flush=True)
    print(f"check: {len(todo) - failed} of {len(todo)} passed", flush=True)
    for sums in ("f32", "fast"):
        print_error(module, sums)
    return failed == 0


# ---------------------------------------------------------------- bench


def card_pool(pages: int = POOL_PAGES) -> torch.Tensor:
    """Finite random keys: pages of 64 tokens."""
    pool = torch.empty(pages, PAGE * 132, dtype=torch.uint8, device="cuda")
    for first in range(0, pages, 16384):
        part = pool[first : first + 16384]
        codes = torch.randn(len(part), PAGE * 128, device="cuda").mul_(100).to(torch.float8_e4m3fn)
        part[:, : PAGE * 128] = codes.view(torch.uint8)
        part[:, PAGE * 128 :] = (torch.rand(len(part), PAGE, device="cuda") * 0.01).view(torch.uint8)
    return pool


def queries_of(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Codes and weights of random rows."""
    codes = torch.randn(rows, HEADS, 128, device="cuda").mul_(100).to(torch.float8_e4m3fn).view(torch.uint8)
    return codes, torch.randn(rows, HEADS, device="cuda") * 1e-4


def decode_calls(pool: torch.Tensor, batch: int, width: int) -> list[dict[str, Any]]:
    """Input sets that together read past the L2."""
    columns = width // PAGE
    sets = max(1, min(200, -(-ROTATE // (batch * width * 132))))
    out = torch.empty(batch, width, device="cuda")
    lens = torch.full((batch,), width, dtype=torch.int32, device="cuda")
    found = []
    for _ in range(sets):
        codes, weights = queries_of(batch)
        pages = torch.randint(0, len(pool), (batch, columns), device="cuda", dtype=torch.int32)
        if batch * columns <= len(pool):
            pages = torch.randperm(len(pool), device="cuda")[: batch * columns].int().view(batch, columns)
        found.append(
            {
                "q": codes[:, None],
                "weights": weights,
                "cache": pool,
                "page_table": pages,
                "seq_lens": lens,
                "out": out,
                "page_size": PAGE,
            }
        )
    return found


def prefill_calls(pool: torch.Tensor, batch: int, rows: int, width: int) -> list[dict[str, Any]]:
    """One input set: the last rows of each request, four of which share a key more."""
    codes, weights = queries_of(batch * rows)
    pages = torch.randperm(len(pool), device="cuda")[: batch * width // PAGE].int().view(batch, width // PAGE)
    lens = width - (rows - 1 - torch.arange(rows, device="cuda", dtype=torch.int32)) // 4
    requests = torch.arange(batch, device="cuda", dtype=torch.int32).repeat_interleave(rows)
    out = torch.empty(batch * rows, width, device="cuda")
    named = {"requests": requests, "seq_lens": lens.clamp(min=1).repeat(batch), "out": out, "page_size": PAGE}
    return [{"q": codes, "weights": weights, "cache": pool, "page_table": pages, **named}]


def eager(call: dict[str, Any]) -> None:
    """The same in torch: keys gathered and converted, one matrix product per request, relu, weights, sum."""
    pool, table = call["cache"], call["page_table"]
    pages = pool[table.long().flatten()]
    keys = pages[:, : PAGE * 128].view(torch.float8_e4m3fn).to(torch.bfloat16).view(len(table), -1, 128)
    scales = pages[:, PAGE * 128 :].contiguous().view(torch.float32).view(len(table), -1)
    queries = call["q"].view(torch.float8_e4m3fn).to(torch.bfloat16).view(len(table), -1, 128)
    products = torch.relu(keys @ queries.transpose(1, 2)).view(len(table), keys.shape[1], -1, HEADS)
    sums = torch.einsum("bkrh,brh->brk", products, call["weights"].bfloat16().view(len(table), -1, HEADS))
    call["out"].copy_((sums * scales[:, None]).view(call["out"].shape))


def floors(op: str, call: dict[str, Any]) -> tuple[float, float, float]:
    """Microseconds of the bytes, and of the flops in float16 and FP8; rows read the keys of their request once."""
    lens = call["seq_lens"].long()
    scored = int(lens.sum())
    keys = scored if op == "decode" else int(lens[call["requests"].bincount().cumsum(0) - 1].sum())
    moved = keys * 132 + scored * 4 + call["q"].numel() + 4 * call["weights"].numel()
    work = 2 * scored * HEADS * 128
    return moved / READ_RATE * 1e6, work / F16_RATE * 1e6, work / FP8_RATE * 1e6


def timings(module: ModuleType, op: str, calls: Sequence[dict[str, Any]]) -> Iterator[tuple[str, float]]:
    """Microseconds of a call by what was called: the module with either way to sum, and torch."""
    watch, run = CudaStopwatch(), getattr(module, op)
    for sums in ("f32", "fast"):
        bound = [lambda call=call, sums=sums: run(**call, sums=sums) for call in calls]
        yield sums, watch.chained(bound).us
    yield "eager", watch.eager([lambda: eager(calls[-1])]).us


def bench(module: ModuleType, cells: Sequence[tuple[str, tuple[int, ...]]]) -> list[dict[str, Any]]:
    """Time every cell, beside the longer one of its floors; `eager` has those of `f32`."""
    pool, found = card_pool(), []
    print("op      shape                   what          us   floor  ratio", flush=True)
    for op, shape in cells:
        calls = decode_calls(pool, *shape) if op == "decode" else prefill_calls(pool, *shape)
        read, f16, fp8 = floors(op, calls[0])
        try:
            for what, us in timings(module, op, calls):
                floor = max(read, fp8 if what == "fast" else f16)
                print(f"{op:7} {shape!s:23} {what:5} {us:10.1f} {floor:7.1f} {us / floor:6.2f}", flush=True)
                found.append({"op": op, "shape": shape, "what": what, "us": us, "floor_us": floor})
        except (DsvError, RuntimeError) as error:
            print(f"{op} {shape}: {type(error).__name__}: {str(error)[:120]}", flush=True)
        torch.cuda.empty_cache()
    return found


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("step", nargs="?", choices=["check", "bench"], help="both without it")
    parser.add_argument("--batches", default="1,16,64,128")
    parser.add_argument("--widths", default="4096,16384,65536,131072")
    parser.add_argument("--ops", default="decode,prefill")
    parser.add_argument("--cells", default="", help="BATCHxWIDTH,... instead of all combinations")
    options = parser.parse_args()
    require_card()
    batches, widths = ([int(word) for word in text.split(",")] for text in (options.batches, options.widths))
    decodes = [(batch, width) for batch in batches for width in widths]
    if options.cells:
        decodes = [(int(a), int(b)) for a, b in (cell.split("x") for cell in options.cells.split(","))]
    module = generated("indexer_logits")
    right = check(module) if options.step != "bench" else True
    if options.step != "check":
        cells = [("decode", shape) for shape in decodes] + [("prefill", shape) for shape in PREFILLS]
        rows = bench(module, [(op, shape) for op, shape in cells if op in options.ops.split(",")])
        target = Path(os.environ.get("OUT", "."), "indexer_logits.json")
        target.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()
