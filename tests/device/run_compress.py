"""Check and time the generated compress module on a CUDA card; run by hand, not collected by pytest.

    python tests/device/run_compress.py [check] [bench] [--requests 1,8,32,128,512] [--tiles] [--quick]

Needs `generated/sm_90` (dsv4gen build --target sm_90) and nothing but torch, triton and numpy. `check` runs the
checks of tests/compress on the card, each twice, and compares the bytes of both runs; `bench` times graph replays over
inputs that rotate past the L2, against the bytes that no implementation can avoid. A table goes to the terminal,
`compress.json` to the folder $OUT.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from dsv4gen.base.errors import DsvError, VerifyError  # noqa: E402
from dsv4gen.reference.compress import Geometry  # noqa: E402
from dsv4gen.reference.compress_plan import Extend, RequestRing, decode_plan, prefill_plan  # noqa: E402
from dsv4gen.reference.compress_store import page_bytes  # noqa: E402
from tests.compress.checks import CHECKS  # noqa: E402

#: bytes of inputs that a graph walks through, past twice the L2 of an H200
ROTATE = 160_000_000
COPY_RATE, READ_RATE = 4.2e12, 4.5e12
#: needs memory that is free until touched
NOT_ON_CARD = ("far_rows",)
Call = Callable[[], None]


def generated() -> ModuleType:
    """The module of the card's target."""
    path = ROOT / "generated" / os.environ.get("DSV4GEN_TARGET", "sm_90") / "compress.py"
    spec = importlib.util.spec_from_file_location("generated_compress", path)
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

    def call(self, _: Path, function: str, **keywords: Any) -> None:
        """Run a launch function on copies of the tensors and bring back what it wrote.

        Raises:
            VerifyError: two runs from the same inputs gave different bytes.
        """
        results = []
        for _ in range(2):
            moved = {name: _moved(value) for name, value in keywords.items()}
            getattr(self.module, function)(**moved)
            torch.cuda.synchronize()
            results.append({name: value.cpu() for name, value in moved.items() if isinstance(value, torch.Tensor)})
        for name, value in results[0].items():
            if not torch.equal(_bytes(value), _bytes(results[1][name])):
                raise VerifyError(f"{function}: two runs differ in {name}")
            keywords[name].copy_(value)


def _moved(value: Any) -> Any:
    """A tensor with its strides on the card; anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    copy = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda")
    return copy.copy_(value)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint8)


def far_rows(module: ModuleType) -> None:
    """State rows behind 2^31 elements and a cache slot behind 2^31 bytes, decode at ratio 128.

    Raises:
        VerifyError: the row was not written where it belongs.
    """
    page = 16384 + 3
    state = torch.empty((page + 1) * 128, 1024, device="cuda")
    state[page * 128 :].normal_()
    pages = (1 << 31) // page_bytes("v4_584", 512, 2) + 3
    cache = torch.zeros(pages, page_bytes("v4_584", 512, 2), dtype=torch.uint8, device="cuda")
    near = torch.zeros(1, cache.shape[1], dtype=torch.uint8, device="cuda")
    source = torch.randn(1, 1024, device="cuda")
    common = {
        "source": source, "bias": torch.randn(128, 512, device="cuda"), "weight": torch.ones(512, device="cuda"),
        "cosines": torch.randn(4, 64, device="cuda"), "page_size": 2, "ratio": 128,
    }  # fmt: skip
    plan = torch.tensor([[128, page * 128 + 127, page, page]], dtype=torch.int32, device="cuda")
    small = torch.tensor([[128, 127, 0, 0]], dtype=torch.int32, device="cuda")
    last = torch.tensor([2 * pages - 1], device="cuda")
    module.decode(state=state[page * 128 :].clone(), plan=small, out_loc=torch.ones_like(last), cache=near, **common)
    module.decode(state=state, plan=plan, out_loc=last, cache=cache, **common)
    if not torch.equal(cache[-1], near[0]) or not torch.equal(state[-1], source[0]):
        raise VerifyError("far rows: not where they belong")


def check(module: ModuleType) -> bool:
    """All checks; prints the failures."""
    todo: dict[str, Callable[[], None]] = {"far_rows": lambda: far_rows(module)}
    for name, one in CHECKS.items():
        if name not in NOT_ON_CARD:
            todo[name] = lambda one=one: one(Card(module), Path())  # type: ignore[arg-type, misc]
    failed = 0
    for name, run in todo.items():
        try:
            run()
        except DsvError as error:
            failed += 1
            print(f"FAILED {name}: {error}", flush=True)
    print(f"check: {len(todo) - failed} of {len(todo)} passed", flush=True)
    return failed == 0


# ---------------------------------------------------------------- bench


def timed(calls: Sequence[Call], repeats: int) -> float:
    """Microseconds per call: median of graph replays that walk through all calls."""
    for call in calls[:3]:
        call()
    torch.cuda.synchronize()
    rounds = max(1, min(400, 2 * repeats) // len(calls))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(rounds):
            for call in calls:
                call()
    graph.replay()
    torch.cuda.synchronize()
    times = []
    for _ in range(15):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / (rounds * len(calls)))
    return statistics.median(times)


def parameters(ratio: int) -> dict[str, Any]:
    """Weights and tables of a layer."""
    window = Geometry(ratio, 512).window
    return {
        "bias": torch.randn(window, 512, device="cuda"), "weight": torch.rand(512, device="cuda") + 0.5,
        "cosines": torch.rand(65536, 64, device="cuda"), "page_size": 256 // ratio, "ratio": ratio,
    }  # fmt: skip


def decode_calls(module: ModuleType, ratio: int, batch: int, kind: str, split: bool, dtype: torch.dtype) -> Any:
    """Calls over rotated pools, and the bytes that one must move."""
    geometry = Geometry(ratio, 512)
    base = 4096 + 128 * torch.randint(0, 64, (batch,))
    lengths = base if kind == "boundary" else base + torch.randint(0, ratio, (batch,))
    ring = RequestRing(geometry.window)
    plan = decode_plan(range(batch), lengths.tolist(), ring, geometry).cuda()
    complete = int((lengths % ratio == 0).sum())
    size = torch.empty((), dtype=dtype).element_size()
    row = geometry.width * size
    moved = 2 * batch * row + complete * ((geometry.window - 1) * 2 * 512 * size + 584)
    sets = max(1, min(64, ROTATE // (batch * geometry.window * row) + 1))
    page_size = 256 // ratio
    cache = torch.zeros(batch // page_size + 2, page_bytes("v4_584", 512, page_size), dtype=torch.uint8, device="cuda")
    common = {**parameters(ratio), "plan": plan, "cache": cache, "out_loc": torch.arange(batch, device="cuda")}
    if split:
        common["pooled"] = torch.empty(batch, 512, device="cuda")
    calls = []
    for _ in range(sets):
        state = torch.randn(batch * geometry.window, geometry.width, device="cuda").to(dtype)
        source = torch.randn(batch, geometry.width, device="cuda").to(dtype)
        calls.append(lambda state=state, source=source: module.decode(state=state, source=source, **common))
    return calls, moved


def prefill_calls(module: ModuleType, ratio: int, tokens: int, split: bool, dtype: torch.dtype) -> Any:
    """Calls over rotated inputs, one request from position 0; prefill and write."""
    geometry = Geometry(ratio, 512)
    plans = prefill_plan([Extend(0, 0, tokens)], RequestRing(geometry.window), geometry)
    plan, write = plans.compress.cuda(), plans.write.cuda()
    size = torch.empty((), dtype=dtype).element_size()
    moved = tokens * geometry.width * size + len(plan) * 584 + 2 * len(write) * geometry.width * size
    page_size = 256 // ratio
    pages = tokens // ratio // page_size + 2
    cache = torch.zeros(pages, page_bytes("v4_584", 512, page_size), dtype=torch.uint8, device="cuda")
    out_loc = torch.arange(tokens, device="cuda") // ratio
    common = {**parameters(ratio), "cache": cache, "out_loc": out_loc}
    if split:
        common["pooled"] = torch.empty(len(plan), 512, device="cuda")
    state = torch.randn(geometry.window, geometry.width, device="cuda").to(dtype)
    bias = common["bias"]

    def both(source: torch.Tensor) -> None:
        module.prefill(state=state, source=source, plan=plan, **common)
        if len(write):
            module.write(state=state, source=source, plan=write, bias=bias, ratio=ratio)

    sets = max(1, min(64, ROTATE // (tokens * geometry.width * size) + 1))
    inputs = [torch.randn(tokens, geometry.width, device="cuda").to(dtype) for _ in range(sets)]
    return [lambda source=source: both(source) for source in inputs], moved


def online_calls(module: ModuleType, batch: int, kind: str) -> Any:
    """Online c128 decode over rotated partials."""
    base = 4096 + 128 * torch.randint(0, 64, (batch,))
    lengths = base if kind == "boundary" else base + torch.randint(1, 128, (batch,))
    requests = torch.arange(batch)
    plan = torch.stack([lengths, requests, requests, -torch.ones_like(requests)], 1).to(torch.int32).cuda()
    cache = torch.zeros(batch // 2 + 2, page_bytes("v4_584", 512, 2), dtype=torch.uint8, device="cuda")
    common = {**parameters(128), "plan": plan, "cache": cache, "out_loc": requests.cuda()}
    del common["ratio"]
    sets = max(1, min(64, ROTATE // (batch * 2560 * 4) + 1))
    calls = []
    for _ in range(sets):
        state, source = torch.rand(batch, 1536, device="cuda") + 0.1, torch.randn(batch, 1024, device="cuda")
        calls.append(lambda state=state, source=source: module.online_decode(state=state, source=source, **common))
    kept = 0 if kind == "boundary" else 1536 * 4
    return calls, batch * (1024 * 4 + 1536 * 4 + kept + (584 if kind == "boundary" else 0))


def workloads(module: ModuleType, requests: Sequence[int], quick: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Names and builders of everything that is timed."""
    types = (torch.float32,) if quick else (torch.float32, torch.bfloat16)
    for ratio in (4, 128):
        for batch in requests:
            for kind in ("boundary", "mixed"):
                for dtype in types:
                    label = f"c{ratio} decode {batch} {kind} {str(dtype)[6:]}"
                    args = (module, ratio, batch, kind)
                    yield f"{label}", lambda a=args, d=dtype: decode_calls(*a, False, d)
                    if ratio == 128 and batch <= 64:
                        yield f"{label} split", lambda a=args, d=dtype: decode_calls(*a, True, d)
        for tokens in (1024, 8192):
            for dtype in types:
                label = f"c{ratio} prefill {tokens} {str(dtype)[6:]}"
                yield label, lambda r=ratio, t=tokens, d=dtype: prefill_calls(module, r, t, False, d)
                if ratio == 128:
                    yield f"{label} split", lambda t=tokens, d=dtype: prefill_calls(module, 128, t, True, d)
    for batch in requests:
        for kind in ("boundary", "mixed"):
            yield f"online decode {batch} {kind} float32", lambda b=batch, k=kind: online_calls(module, b, k)


#: num_warps and num_stages to try per tile function
TILE_CHOICES = {
    "decode_four": ((2, 1), (4, 1), (8, 1)),
    "prefill_four": ((2, 1), (4, 1), (8, 1)),
    "decode_many": ((4, 1), (8, 1), (16, 1), (8, 2), (16, 2), (8, 3)),
    "prefill_many": ((4, 1), (8, 1), (16, 1), (8, 2), (16, 2), (8, 3)),
    "decode_split": ((4, 1), (8, 1), (8, 2), (8, 3)),
    "prefill_split": ((4, 1), (8, 1), (8, 2), (8, 3)),
}


def bench(module: ModuleType, requests: Sequence[int], *, quick: bool, tiles: bool) -> list[dict[str, Any]]:
    """Time everything; prints one line each."""
    found = []
    print(f"{'workload':44} {'us':>8} {'MB':>8} {'TB/s':>6} {'floor us':>8} {'x floor':>7}", flush=True)
    for label, build in workloads(module, requests, quick):
        torch.manual_seed(0)
        calls, moved = build()
        rate = READ_RATE if "boundary" in label or "prefill" in label else COPY_RATE
        for choice, used in _tiled(module, label, tiles):
            with used:
                time = timed(calls, 20 if quick else 100)
            floor = moved / rate * 1e6
            speed = moved / time * 1e-6
            name = f"{label}{choice}"
            print(f"{name:44} {time:8.2f} {moved / 1e6:8.2f} {speed:6.2f} {floor:8.2f} {time / floor:7.2f}", flush=True)
            found.append({"name": name, "us": time, "bytes": moved, "floor_us": floor})
        del calls
    return found


class Tile:
    """A tile function of the module replaced for a while."""

    def __init__(self, module: ModuleType, kernel: str, warps: int, stages: int) -> None:
        self.module, self.name = module, f"{kernel}_tile" if kernel else ""
        self.change = {"num_warps": warps, "num_stages": stages}

    def __enter__(self) -> None:
        if self.name:
            self.plain = getattr(self.module, self.name)
            setattr(self.module, self.name, lambda head_dim: {**self.plain(head_dim), **self.change})

    def __exit__(self, *_: object) -> None:
        if self.name:
            setattr(self.module, self.name, self.plain)


def _tiled(module: ModuleType, label: str, tiles: bool) -> Iterator[tuple[str, Tile]]:
    """The shipped tile, or each of those worth trying."""
    phase = "decode" if "decode" in label else "prefill"
    form = "four" if label.startswith("c4") else "split" if "split" in label else "many"
    if not tiles or label.startswith("online"):
        yield "", Tile(module, "", 0, 0)
        return
    for warps, stages in TILE_CHOICES[f"{phase}_{form}"]:
        yield f" w{warps} s{stages}", Tile(module, f"{phase}_{form}", warps, stages)


def main() -> int:
    """Parse the command line and run; 1 when a check failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["check", "bench"], choices=["check", "bench"])
    parser.add_argument("--requests", default="1,8,32,128,512")
    parser.add_argument("--tiles", action="store_true", help="time other numbers of warps and stages")
    parser.add_argument("--quick", action="store_true", help="float32 only, shorter replays")
    options = parser.parse_args()
    module = generated()
    right = check(module) if "check" in options.what else True
    if "bench" in options.what:
        requests = [int(word) for word in options.requests.split(",")]
        found = bench(module, requests, quick=options.quick, tiles=options.tiles)
        Path(os.environ.get("OUT", "."), "compress.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
