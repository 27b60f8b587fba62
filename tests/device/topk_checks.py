"""What `run_topk.py` checks on a card: results, graphs, streams, torch.compile, opcheck, refusals."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

import dsv4gen
from dsv4gen.base.errors import CaptureError, LoadError
from dsv4gen.reference.topk import Selection, check_selection
from dsv4gen.reference.topk_rows import MODES, PAGED, WINDOWED, Rows
from dsv4gen.reference.topk_scores import SCORES, make_scores

PAGE_BITS = 6
INPUTS = ("scores", "seq_lens", "page_table", "row_starts", "out_offsets", "row_to_batch")
POISON = 0x5A5A5A5A
#: widths on both sides of the tile buckets, and what a row path needs: (width, k)
SHAPES = ((1, 1), (600, 512), (4096, 512), (4097, 512), (8193, 1024), (16385, 2048), (65537, 2048), (262144, 512))


@dataclass
class Call:
    """Inputs of one call on the card."""

    rows: Rows
    out: torch.Tensor
    raw_out: torch.Tensor | None

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of the loaded op."""
        tensors = {name: getattr(self.rows, name) for name in INPUTS}
        tensors |= {"out": self.out, "raw_out": self.raw_out}
        numbers = {"page_bits": PAGE_BITS} if self.rows.mode in PAGED else {}
        return {**{name: tensor for name, tensor in tensors.items() if tensor is not None}, **numbers}

    def check(self) -> None:
        """Judge what was written, on the host."""
        tensors = {name: getattr(self.rows, name) for name in INPUTS}
        host = {name: None if tensor is None else tensor.cpu() for name, tensor in tensors.items()}
        raw = None if self.raw_out is None else self.raw_out.cpu()
        check_selection(Selection(self.out.cpu(), raw), replace(self.rows, **host))


def make_call(mode: str, scores: torch.Tensor, lengths: torch.Tensor, k: int, *, odd: bool = False) -> Call:
    """Put rows on the card; `odd` starts them at 4-byte boundaries, with strides that are no multiple of a vector, and
    in the modes that have windows at columns of their own."""
    batch, width = scores.shape
    seq_lens = torch.zeros(batch, 2 if odd else 1, dtype=torch.int32, device="cuda")[:, 0]
    seq_lens.copy_(lengths)
    moved = odd and mode in WINDOWED
    starts = torch.arange(batch, dtype=torch.int32) * 5 % 13 if moved else torch.zeros(batch, dtype=torch.int32)
    wide = torch.full((batch, width + 7 + int(starts.max()) if batch else width), float("inf"), device="cuda")
    first = 3 if odd else 0
    for row, start in enumerate(starts.tolist()):
        wide[row, first + start : first + start + width] = scores[row].cuda()
    here = wide[:, first : wide.shape[1] - 4] if odd else scores.cuda()
    pages = -(-width // (1 << PAGE_BITS))
    tables = torch.randperm((batch + 1) * pages, dtype=torch.int32).view(batch + 1, pages).cuda()
    rows = Rows(
        here,
        seq_lens,
        mode,
        page_table=(tables if mode == "packed" else tables[:batch]) if mode in PAGED else None,
        page_bits=PAGE_BITS if mode in PAGED else 0,
        row_starts=starts.cuda() if moved else None,
        out_offsets=torch.arange(batch, dtype=torch.int32).cuda() * 1000 - 5 if mode == "ragged" else None,
        row_to_batch=(batch - torch.arange(batch, dtype=torch.int32)).cuda() if mode == "packed" and odd else None,
    )
    out = torch.full((batch, k), POISON, dtype=torch.int32, device="cuda")
    return Call(rows, out, out.clone() if mode == "dual" else None)


def scratch(loaded: Any, call: Call) -> dict[str, torch.Tensor]:
    """Workspaces of a call."""
    batch, width = call.rows.scores.shape
    made: dict[str, torch.Tensor] = loaded.op().make_workspaces("cuda", batch=batch, width=width, k=call.out.shape[1])
    return made


def lengths_for(batch: int, width: int, k: int) -> torch.Tensor:
    """Row lengths around every border that matters: empty, trivial, register rows, streaming, full, too long."""
    wanted = (width, 0, k, k + 1, k - 1, 2048, 2049, 4093, 4096, 8192, 8193, 16384, width - 1, width + 5, -3)
    return torch.tensor([wanted[row % len(wanted)] for row in range(batch)], dtype=torch.int32)


def results(variant: str, quick: bool) -> str:
    """Every mode on every shape, plain and odd layouts, every kind of scores on one shape per row path."""
    kernels = {mode: dsv4gen.load("topk", mode=mode) for mode in MODES}
    count = 0
    for mode, width, k, odd in _cases(quick):
        rows = torch.randn(15, width)
        call = make_call(mode, rows, lengths_for(15, width, k), k, odd=odd)
        kernels[mode](**call.arguments(), **scratch(kernels[mode], call))
        call.check()
        count += 15
    names = list(SCORES)
    for width, k in ((3000, 512), (12000, 1024), (40000, 2048)):
        rows = torch.stack([make_scores(name, width, k, seed) for seed, name in enumerate(names)])
        call = make_call("page_table", rows, torch.full((len(names),), width, dtype=torch.int32), k)
        kernels["page_table"](**call.arguments(), **scratch(kernels["page_table"], call))
        call.check()
        count += len(names)
    return f"{count} rows right with {variant}"


def _cases(quick: bool) -> Iterator[tuple[str, int, int, bool]]:
    for mode in MODES:
        for width, k in SHAPES[:5] if quick else SHAPES:
            for odd in (False, True):
                yield mode, width, min(k, 2048), odd


def empty_batch() -> str:
    """No rows: no launch, no error."""
    call = make_call("page_table", torch.zeros(0, 4096), torch.zeros(0, dtype=torch.int32), 512)
    dsv4gen.load("topk")(**call.arguments())
    torch.cuda.synchronize()
    return "nothing launched"


def graph(replays: int = 100) -> str:
    """One captured call, replayed with other scores and lengths each time."""
    width, k = 20000, 512
    call = make_call("dual", torch.randn(8, width), lengths_for(8, width, k), k)
    loaded = dsv4gen.prewarm("topk", shapes=[{"batch": 8, "width": width, "k": k}], mode="dual")
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        loaded(**call.arguments())
    generator = torch.Generator().manual_seed(1)
    for _ in range(replays):
        call.rows.scores.copy_(torch.randn(8, width, generator=generator))
        call.rows.seq_lens.copy_(torch.randint(-2, width + 2, (8,), generator=generator, dtype=torch.int32))
        call.out.fill_(POISON)
        captured.replay()
        call.check()
    return f"{replays} replays right"


def cold_capture() -> str:
    """A kernel that is not loaded refuses to load inside a capture, and the capture can go on."""
    call = make_call("indices", torch.randn(2, 600), torch.tensor([600, 600]), 512)
    loaded = dsv4gen.load("topk", mode="indices")
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        try:
            loaded(**call.arguments())
            return "WRONG: it loaded"
        except CaptureError as error:
            if "dsv4gen.prewarm" not in str(error):
                return f"WRONG: {error}"
        call.out.fill_(7)
    captured.replay()
    return "refused, and the capture went on" if bool((call.out == 7).all()) else "WRONG: the capture is broken"


def two_streams(rounds: int = 50) -> str:
    """Two threads on two streams, many calls each, at the same time."""
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            with torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
                loaded = dsv4gen.load("topk")
                for turn in range(rounds):
                    width = 5000 + 4000 * (turn % 5)
                    rows = torch.randn(4, width, generator=torch.Generator().manual_seed(seed + turn))
                    call = make_call("page_table", rows, lengths_for(4, width, 512), 512)
                    loaded(**call.arguments())
                    torch.cuda.current_stream().synchronize()
                    call.check()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(1000 * number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return f"{2 * rounds} calls right"


def new_thread() -> str:
    """A thread that never touched the GPU launches an already loaded kernel."""
    call = make_call("page_table", torch.randn(2, 900), lengths_for(2, 900, 512), 512)
    loaded = dsv4gen.load("topk")
    loaded(**call.arguments())
    call.out.fill_(POISON)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            loaded(**call.arguments())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    torch.cuda.synchronize()
    call.check()
    return "launched"


def compiled() -> str:
    """torch.compile(fullgraph=True) around the call, with every backend that is here."""
    loaded = dsv4gen.load("topk")
    done = []
    for backend in ("eager", "aot_eager", "inductor"):
        torch._dynamo.reset()

        def step(scores: torch.Tensor, seq_lens: torch.Tensor, table: Any, out: torch.Tensor) -> torch.Tensor:
            loaded(scores * 1.0, seq_lens, table, out, page_bits=PAGE_BITS)
            return out + 1

        call = make_call("page_table", torch.randn(4, 5000), lengths_for(4, 5000, 512), 512)
        function = torch.compile(step, backend=backend, fullgraph=True)
        result = function(call.rows.scores, call.rows.seq_lens, call.rows.page_table, call.out)
        call.check()
        if not torch.equal(result, call.out + 1):
            return f"WRONG: {backend} returned something else"
        done.append(backend)
    return ", ".join(done)


def opcheck() -> str:
    """torch's own tests of the registered op."""
    dsv4gen.load("topk")
    for mode in MODES:
        call = make_call(mode, torch.randn(3, 700), torch.tensor([700, 3, 0]), 16)
        op = torch.ops.dsv4gen.topk_select
        given = call.arguments()
        args = tuple(given.get(argument.name, 0 if argument.name == "page_bits" else None) for argument in _taken(op))
        torch.library.opcheck(op, args, {"option_mode": mode})
    return f"{len(MODES)} modes"


def _taken(op: Any) -> list[Any]:
    """The op's arguments in front of its options."""
    return [argument for argument in op.default._schema.arguments if not argument.kwarg_only]


def another_target() -> str:
    """Kernels of a target this card is not are refused before anything is loaded."""
    others = [name for name in dsv4gen.targets() if name != dsv4gen.load("topk").target]
    refused = []
    for name in others:
        call = make_call("page_table", torch.randn(1, 600), torch.tensor([600]), 16)
        try:
            dsv4gen.load("topk", target=name)(**call.arguments())
            return f"WRONG: {name} ran"
        except LoadError as error:
            if "does not run on" not in str(error):
                return f"WRONG: {name}: {error}"
            refused.append(name)
        except Exception as error:
            if type(error).__name__ != "ToolMissing":
                return f"WRONG: {name}: {error!r}"
            refused.append(name)
    return f"refused {', '.join(refused)}" if refused else "no other target is generated here"


CHECKS: dict[str, Callable[[], str]] = {
    "cold capture": cold_capture,
    "empty batch": empty_batch,
    "new thread": new_thread,
    "graph": graph,
    "two streams": two_streams,
    "torch.compile": compiled,
    "opcheck": opcheck,
    "another target": another_target,
}
