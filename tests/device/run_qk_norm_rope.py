"""Check and time the generated qk_norm_rope module on a CUDA card; run by hand, not collected by pytest.

    python tests/device/run_qk_norm_rope.py [check] [bench] [--heads 16,64,128] [--tokens 1,64,512,4096,16384] [--tiles]

Needs `generated/sm_90` (dsv4gen build --target sm_90) and nothing but torch, triton and numpy. `check` runs the
checks of tests/qk_norm_rope on the card, each twice, and compares the bytes of both runs, then large in-place calls
with calls that are not; `bench` times graph replays over inputs that rotate past the L2, against the bytes that no
implementation can avoid. A table goes to the terminal, `qk_norm_rope.json` to the folder $OUT.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from dsv4gen.base.errors import DsvError, VerifyError  # noqa: E402
from dsv4gen.reference.compress_store import page_bytes  # noqa: E402
from dsv4gen.reference.qk_norm_rope import RotaryTable, query_heads  # noqa: E402
from dsv4gen.reference.qk_norm_rope_case import check_rounded  # noqa: E402
from tests.qk_norm_rope.checks import CHECKS  # noqa: E402

#: bytes of inputs and outputs that a graph walks through, past twice the L2 of an H200
ROTATE = 160_000_000
COPY_RATE = 4.24e12
#: storages up to this size travel whole, so that strays show
WHOLE = 1 << 26
POSITIONS, PAGE_SIZE, D = 65536, 256, 512
Call = Callable[[], None]


def generated() -> ModuleType:
    """The module of the card's target."""
    path = ROOT / "generated" / os.environ.get("DSV4GEN_TARGET", "sm_90") / "qk_norm_rope.py"
    spec = importlib.util.spec_from_file_location("generated_qk_norm_rope", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


# ---------------------------------------------------------------- check


class Card:
    """Stands in for the interpreter worker: the same calls, on the card, each made twice from the same inputs."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def allocate(self, size: int) -> Tensor:
        """Host memory that costs nothing until it is touched."""
        return torch.empty(size, dtype=torch.uint8)

    def call(self, _: Path, function: str, **keywords: Any) -> None:
        """Run a launch function on copies of the tensors and bring back what it wrote.

        Raises:
            VerifyError: two runs from the same inputs gave different bytes.
        """
        first, second = (self._run(function, keywords) for _ in range(2))
        for name, value in first.items():
            if not torch.equal(_bytes(value), _bytes(second[name])):
                raise VerifyError(f"{function}: two runs differ in {name}")
            _home(keywords[name]).copy_(value)

    def _run(self, function: str, keywords: Mapping[str, Any]) -> dict[str, Tensor]:
        homes: dict[int, Tensor] = {}
        moved = {name: _moved(value, homes) for name, value in keywords.items()}
        getattr(self.module, function)(**moved)
        torch.cuda.synchronize()
        return {name: _home(value).cpu() for name, value in moved.items() if isinstance(value, Tensor)}


def _home(tensor: Tensor) -> Tensor:
    """All bytes of a small tensor's storage, so that its surroundings are compared too; else the tensor."""
    storage = tensor.untyped_storage()
    if storage.nbytes() > WHOLE:
        return tensor
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)


def _moved(value: Any, homes: dict[int, Tensor]) -> Any:
    """A tensor on the card, as far off its storage's start as it was; tensors that share memory still do."""
    if not isinstance(value, Tensor):
        return value
    storage = value.untyped_storage()
    key = storage.data_ptr()
    if storage.nbytes() > WHOLE:
        if key not in homes:
            homes[key] = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda").copy_(value)
        return homes[key]
    if key not in homes:
        homes[key] = _home(value).cuda()
    whole = torch.empty(0, dtype=value.dtype, device="cuda").set_(homes[key].untyped_storage())
    return whole.as_strided(value.shape, value.stride(), value.storage_offset())


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.contiguous().view(torch.uint8)


def in_place(module: ModuleType) -> None:
    """In place and out of place give equal bytes, with any tile, where many programs run at once.

    Raises:
        VerifyError: bytes differ.
    """
    for heads, tokens in ((64, 2048), (5, 4097)):
        inputs = Inputs(heads, tokens, 1)
        for q_norm in ("on", "off"):
            for change in ({}, {"rows": 4, "steps": 4, "num_warps": 4}):
                with Tile(module, change):
                    apart, aliased = (_bytes_of(module, inputs, q_norm, aliased=way) for way in (False, True))
                if not all(torch.equal(*pair) for pair in zip(apart, aliased, strict=True)):
                    raise VerifyError(f"{heads} heads, {tokens} tokens, tile {change}, q_norm {q_norm}")


def _bytes_of(module: ModuleType, inputs: Inputs, q_norm: str, *, aliased: bool) -> list[Tensor]:
    """What a call on fresh copies of the inputs leaves in its three outputs."""
    q, kv = inputs.q[0].clone(), inputs.kv[0].clone()
    q_out, kv_out = (q, kv) if aliased else (torch.empty_like(q), torch.empty_like(kv))
    inputs.cache.zero_()
    module.qk_norm_rope_store(q=q, kv=kv, q_out=q_out, kv_out=kv_out, q_norm=q_norm, **inputs.common)
    return [_bytes(q_out), _bytes(kv_out), inputs.cache.clone()]


def check(module: ModuleType) -> bool:
    """All checks; prints the failures."""
    todo: dict[str, Call] = {"in_place": lambda: in_place(module)}
    for name, one in CHECKS.items():
        todo[name] = lambda one=one: one(Card(module), Path())  # type: ignore[misc]
    failed = 0
    for name, run in todo.items():
        try:
            run()
        except (DsvError, RuntimeError) as error:
            failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}", flush=True)
        torch.cuda.empty_cache()
    print(f"check: {len(todo) - failed} of {len(todo)} passed", flush=True)
    return failed == 0


# ---------------------------------------------------------------- bench


class Inputs:
    """Rotated inputs of one shape: random positions in a table of 65536, one page of 256 slots after the other."""

    def __init__(self, heads: int, tokens: int, most: int = 64) -> None:
        self.heads, self.tokens = heads, tokens
        moved = 4 * tokens * heads * D
        sets = max(1, min(most, ROTATE // moved + 1))
        self.q = [torch.randn(tokens, heads, D, device="cuda", dtype=torch.bfloat16) for _ in range(sets)]
        self.kv = [torch.randn(tokens, D, device="cuda", dtype=torch.bfloat16) for _ in range(sets)]
        self.q_out = [torch.empty_like(q) for q in self.q]
        angles = torch.rand(POSITIONS, 32, device="cuda") * 6.28
        cosines = torch.stack([angles.cos(), angles.sin()], -1).flatten(1)
        pages = tokens // PAGE_SIZE + 2
        self.cache = torch.zeros(pages, page_bytes("v4_584", D, PAGE_SIZE), dtype=torch.uint8, device="cuda")
        self.common: dict[str, Any] = {
            "kv_weight": torch.rand(D, device="cuda") + 0.5, "cosines": cosines,
            "positions": torch.randint(0, POSITIONS, (tokens,), device="cuda"),
            "slots": torch.arange(tokens, dtype=torch.int32, device="cuda"), "cache": self.cache,
            "page_size": PAGE_SIZE,
        }  # fmt: skip

    def fused(self, module: ModuleType) -> list[Call]:
        """One launch per call."""
        sets = zip(self.q, self.kv, self.q_out, strict=True)
        return [
            lambda q=q, kv=kv, out=out: module.qk_norm_rope_store(q=q, kv=kv, q_out=out, **self.common)  # type: ignore[misc]
            for q, kv, out in sets
        ]

    def check(self, module: ModuleType) -> None:
        """A sample of what the first call writes.

        Raises:
            VerifyError: the sample is wrong.
        """
        self.fused(module)[0]()
        chosen = torch.arange(0, self.tokens, max(1, self.tokens // 16))
        table = RotaryTable("interleaved", self.common["cosines"].cpu())
        positions = self.common["positions"].cpu()[chosen]
        expected = query_heads(self.q[0][chosen].cpu(), positions, table, eps=1e-6)
        check_rounded(self.q_out[0][chosen].cpu(), expected, f"{self.heads} heads, {self.tokens} tokens")

    @property
    def bytes(self) -> int:
        """What a call must move."""
        return self.tokens * (self.heads * 4 * D + 2 * D + 584 + 12)


def timed(calls: Sequence[Call]) -> float:
    """Microseconds per call: median of graph replays that last at least 1.5 ms and walk through all calls."""
    for call in calls[:2]:
        call()
    torch.cuda.synchronize()
    rough = _elapsed(lambda: [call() for call in calls[:4]]) / min(4, len(calls))
    count = max(len(calls), min(400, int(1500 / max(rough, 1.0)) + 1))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(count):
            calls[number % len(calls)]()
    graph.replay()
    return statistics.median(_elapsed(graph.replay) / count for _ in range(15))


def _elapsed(run: Callable[[], object]) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) * 1e3


@dataclass
class Tile:
    """A tile of the module replaced for a while; `dependent` turns overlapping launches on or off."""

    module: ModuleType
    change: Mapping[str, int]
    dependent: bool = True

    def __enter__(self) -> None:
        self.plain = self.module.norm_rope_store_tile, getattr(self.module, "DEPENDENT", False)
        if self.change:
            self.module.norm_rope_store_tile = lambda *_: {"num_stages": 1, **self.change}  # type: ignore[attr-defined]
        self.module.DEPENDENT = self.plain[1] and self.dependent  # type: ignore[attr-defined]

    def __exit__(self, *_: object) -> None:
        self.module.norm_rope_store_tile, self.module.DEPENDENT = self.plain  # type: ignore[attr-defined]


#: rows, steps and num_warps to try
TILES = (
    (1, 2, 1), (1, 4, 1), (1, 8, 1), (1, 16, 1), (2, 1, 1), (2, 2, 1), (2, 4, 1), (2, 8, 1), (4, 1, 1), (4, 2, 1),
    (2, 1, 2), (2, 2, 2), (2, 4, 2), (4, 1, 2), (4, 1, 4), (4, 2, 4), (4, 4, 4),
)  # fmt: skip


def tiles(module: ModuleType, *, every: bool) -> Iterator[tuple[str, Tile]]:
    """The shipped tile, or each of those worth trying."""
    yield "shipped", Tile(module, {})
    if every:
        for rows, steps, warps in TILES:
            change = {"rows": rows, "steps": steps, "num_warps": warps}
            yield f"r{rows} s{steps} w{warps}", Tile(module, change)
        yield "r4 s1 w4 alone", Tile(module, {"rows": 4, "steps": 1, "num_warps": 4}, dependent=False)


def bench(module: ModuleType, heads: Sequence[int], tokens: Sequence[int], *, every: bool) -> list[dict[str, Any]]:
    """Time everything; one line per shape, with all tiles in order of their times."""
    found = []
    for count in heads:
        for number in tokens:
            if count * number > 1 << 20:
                continue
            inputs = Inputs(count, number)
            inputs.check(module)
            calls, times = inputs.fused(module), {}
            for name, tile in tiles(module, every=every):
                with tile:
                    times[name] = timed(calls)
            floor = inputs.bytes / COPY_RATE * 1e6
            text = "; ".join(f"{name} {time:.2f}" for name, time in sorted(times.items(), key=lambda item: item[1]))
            best = min(times.values())
            print(
                f"H={count} T={number} floor {floor:.2f} us, {inputs.bytes / best * 1e-6:.2f} TB/s: {text}", flush=True
            )
            found.append({"heads": count, "tokens": number, "floor_us": floor, "us": times})
            del inputs, calls
            torch.cuda.empty_cache()
    return found


def main() -> int:
    """Parse the command line and run; 1 when a check failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["check", "bench"], choices=["check", "bench"])
    parser.add_argument("--heads", default="16,64,128")
    parser.add_argument("--tokens", default="1,64,512,4096,16384")
    parser.add_argument("--tiles", action="store_true", help="time other rows and numbers of warps")
    options = parser.parse_args()
    torch.manual_seed(0)
    module = generated()
    right = check(module) if "check" in options.what else True
    if "bench" in options.what:
        heads, tokens = ([int(word) for word in text.split(",")] for text in (options.heads, options.tokens))
        found = bench(module, heads, tokens, every=options.tiles)
        path = Path(os.environ.get("OUT", "."), "qk_norm_rope.json")
        path.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
