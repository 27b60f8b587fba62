"""Check the generated sparse_decode module on a CUDA card; run by hand, not collected by pytest.

    python tests/device/run_sparse_decode.py

Needs `generated/sm_90` (dsv4gen build --target sm_90) and nothing but torch and triton. Compares with the reference,
and repeated calls bit by bit; `dsv4gen bench sparse_decode` times. Exit status 1 when a check fails.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
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
from tests.device.card import require_card  # noqa: E402


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


if __name__ == "__main__":
    require_card()
    sys.exit(0 if check(generated("sparse_decode")) else 1)
