"""gather_dequant on an NVIDIA card: the checks of the interpreter tests, then tiles and decodings timed.

    python -m tests.triton.on_device FOLDER

FOLDER holds `gather_dequant.py` rendered for the card (`python -m tests.triton.on_device --render sm_90 FOLDER`
writes it where the generator's requirements are installed; the rest needs torch and Triton only).
Times are medians of CUDA graph replays over inputs that rotate through more than twice the L2.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from dsv4gen.bench.stopwatch import CudaStopwatch
from dsv4gen.reference.gather_dequant import V4, gather_dequant
from dsv4gen.reference.gather_dequant_cases import Case, build_case

SIZES = [(1, 128), (1, 640), (16, 640), (64, 640), (128, 640), (512, 640), (512, 2048)]
ROWS = (2, 4, 8)
PAGE_SIZE, PAGES = 64, 8192
ROTATED_BYTES = 200_000_000
ROW_BYTES = V4.data_row + V4.scale_row + 4 + 1 + 2 * V4.width


def load(folder: Path) -> ModuleType:
    """The rendered module."""
    spec = spec_from_file_location("gather_dequant_under_test", folder / "gather_dequant.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_card(value: object) -> object:
    """A tensor's copy on the card: same strides, and as far off its allocation's alignment."""
    if not isinstance(value, Tensor):
        return value
    raw = torch.uint8 if value.dtype == torch.bool else value.dtype  # poison is no truth value
    whole = torch.empty(0, dtype=raw).set_(value.untyped_storage())
    return whole.cuda().view(value.dtype).as_strided(value.shape, value.stride(), value.storage_offset())


def run_case(module: ModuleType, case: Case) -> None:
    """Launch on the card, bring the outputs back, compare."""
    moved = {name: on_card(value) for name, value in case.arguments.items()}
    getattr(module, case.op)(**moved)
    for name, home in (("out", case.out), ("mask", case.mask)):
        result = moved[name]
        assert isinstance(result, Tensor)
        raw = torch.uint8 if name == "mask" else torch.int16
        home.tensor.view(raw).copy_(result.view(raw).cpu())
    case.check()


def check(module: ModuleType) -> int:
    """The interpreter's cases on the card; returns how many ran."""
    shape = {"tokens": 37, "width": 65, "page_size": 53, "pages": 40, "queries": 3}
    dual = {**shape, "extra_width": 130, "extra_page_size": 2, "extra_pages": 600}
    names = ("index_minus_one", "index_past_end", "index_garbage", "length_zero", "length_above_width")
    count = 0
    for base in (shape, dual, {**dual, "tokens": 900}):
        for layout in ((), ("strided",), ("misaligned_base",)):
            for dialect in ("e4m3fn", "e4m3fnuz"):
                case = build_case(base, names=(*names, *layout), dialect=dialect, extra_lengths=dialect == "e4m3fn")
                run_case(module, case)
                count += 1
    return count


def inputs(tokens: int, width: int, pool: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Index, output and mask tensors whose outputs together exceed the L2."""
    copies = max(2, min(128, ROTATED_BYTES // (tokens * width * ROW_BYTES) + 1))
    for seed in range(copies):
        generator = torch.Generator("cuda").manual_seed(seed)
        indices = torch.randint(0, PAGES * PAGE_SIZE, (tokens, width), generator=generator, device="cuda")
        out = torch.empty(tokens, width, V4.width, dtype=torch.bfloat16, device=pool.device)
        yield indices.int(), out, torch.empty(tokens, width, dtype=torch.bool, device=pool.device)


def kernel_call(
    module: ModuleType, pool: Tensor, sets: tuple[Tensor, Tensor, Tensor], rows: int, native: bool
) -> Callable[[], None]:
    """One launch of the single-scope kernel with a tile of one's choice."""
    indices, out, mask = sets
    tokens, width = indices.shape
    grid = (tokens * -(-width // rows),)
    numbers = (width, PAGES, PAGE_SIZE, 1, 0, pool.stride(0), *indices.stride(), 0, *out.stride()[:2], *mask.stride())
    constants: dict[str, Any] = {"DIALECT": "e4m3fn", "HAS_LENGTHS": False, "NATIVE": native, "ROWS": rows}
    constants |= {"num_warps": 1, "num_stages": 1, "enable_fp_fusion": False, "launch_pdl": True}
    return lambda: module.gather_scope[grid](pool, indices, indices, out, mask, *numbers, **constants)


def sweep(module: ModuleType) -> None:
    """A line per size and tile: microseconds and share of the memory bandwidth that a copy reaches."""
    pool = torch.randint(0, 256, (PAGES, V4.page_bytes(PAGE_SIZE)), dtype=torch.uint8, device="cuda")
    big = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    watch = CudaStopwatch()
    ceiling = big.numel() / watch.chained([lambda: big[: 1 << 29].copy_(big[1 << 29 :])]).us
    print(f"copy {ceiling / 1e6:.2f} TB/s")
    for tokens, width in SIZES:
        sets = list(inputs(tokens, width, pool))
        found = []
        for rows in ROWS:
            for native in (False, True):
                calls = [kernel_call(module, pool, one, rows, native) for one in sets]
                found.append((watch.chained(calls).us, rows, native))
        found.sort()
        share = tokens * width * ROW_BYTES / ceiling
        shown = "; ".join(f"{us:.2f} r{rows} {'native' if n else 'integer'}" for us, rows, n in found)
        print(f"{tokens}x{width}: floor {share:.2f} us: {shown}", flush=True)
        expected = torch.empty(1, min(width, 256), V4.width, dtype=torch.bfloat16)
        check_mask = torch.empty(expected.shape[:2], dtype=torch.bool)
        sample = sets[0][0][:1, : expected.shape[1]].cpu()
        gather_dequant(pool.cpu(), sample, expected, check_mask, page_size=PAGE_SIZE, dialect="e4m3fn")
        torch.testing.assert_close(sets[0][1][:1, : expected.shape[1]].cpu(), expected, rtol=0, atol=0, equal_nan=True)


def render(target: str, folder: Path) -> None:
    """Write the module for a card's target."""
    from tests.triton.modules import module

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gather_dequant.py").write_bytes(module(target).read_bytes())


if __name__ == "__main__":
    if sys.argv[1] == "--render":
        render(sys.argv[2], Path(sys.argv[3]))
    else:
        under_test = load(Path(sys.argv[1]))
        print(f"{check(under_test)} cases exact")
        sweep(under_test)
