"""Check and time the loaded top-k kernels on a CUDA card; run by hand, not collected by pytest.

    python tests/device/run_topk.py [--quick] [--only WORD ...]

Needs `generated/<target>` (dsv4gen build --target sm_90) and torch; the generator's packages need not be there.
Prints a table and writes `$PART.json`, or `topk.json`, to the folder $OUT, if set. Exit status 1 when a check fails.
$TOPK_PEER may name a compiled module of sglang's top-k v2; the host's cost of a call through tvm-ffi then stands beside
ours.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DSV4GEN_CACHE_DIR", tempfile.mkdtemp(prefix="dsv4gen-"))

import torch  # noqa: E402

from dsv4gen.runtime import compilers, driver_backend  # noqa: E402
from tests.device import (  # noqa: E402
    topk_checks,
    topk_costs,
    topk_distributions,
    topk_kernels,
    topk_matrix,
    topk_split,
)
from tests.device.card import require_card  # noqa: E402


def main() -> int:
    """Run everything that was asked for."""
    parser = argparse.ArgumentParser(description="Check and time the loaded top-k kernels on this card.")
    parser.add_argument("--quick", action="store_true", help="fewer shapes and processes")
    parser.add_argument("--only", nargs="*", default=[""], help="only parts whose name holds one of these words")
    options = parser.parse_args()
    require_card()
    torch.manual_seed(0)
    report: dict[str, Any] = {"machine": machine(), "checks": {}, "costs": {}}
    print("  ".join(f"{name}: {value}" for name, value in report["machine"].items()))
    failed = False
    for name, check in checks(options.quick).items():
        if any(word in name for word in options.only):
            passed, text, seconds = attempt(check)
            failed |= not passed
            report["checks"][name] = {"passed": passed, "text": text, "seconds": round(seconds, 2)}
            print(f"{'ok  ' if passed else 'FAIL'} {name:18s} {seconds:7.2f} s  {text}", flush=True)
    for name, measure in costs(options.quick).items():
        if any(word in name for word in options.only):
            report["costs"][name] = found = measure()
            print(f"\n{name}")
            print("\n".join(f"  {key:72s} {value:9.2f}" for key, value in found.items()), flush=True)
    if os.environ.get("OUT"):
        path = Path(os.environ["OUT"]) / f"{os.environ.get('PART', 'topk')}.json"
        path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


def machine() -> dict[str, str]:
    """What the numbers belong to."""
    driver = driver_backend.shared_driver("cuda")
    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "driver": ".".join(map(str, driver.version)),
        "compiler": compilers.open_compiler("cuda", driver.version[0]).version,
        "python": sys.version.split()[0],
    }


def checks(quick: bool) -> dict[str, Callable[[], str]]:
    """The cold capture comes first: it needs a kernel that nobody has loaded yet."""
    found: dict[str, Callable[[], str]] = {"cold capture": topk_checks.CHECKS["cold capture"]}
    for variant in ("v2", "v1"):
        found[f"results {variant}"] = lambda variant=variant: with_variant(variant, quick)  # type: ignore[misc]
    return {**found, **topk_checks.CHECKS, **topk_matrix.CHECKS, **topk_split.CHECKS, **topk_kernels.CHECKS}


def with_variant(variant: str, quick: bool) -> str:
    """All results with one implementation."""
    os.environ["DSV4GEN_TOPK"] = variant
    try:
        return topk_checks.results(variant, quick)
    finally:
        del os.environ["DSV4GEN_TOPK"]


def costs(quick: bool) -> dict[str, Callable[[], dict[str, float]]]:
    """Milliseconds to start, microseconds per call."""
    times = 2 if quick else 5
    return {
        "cold start, ms": lambda: topk_costs.start(True, times),
        "warm start, ms": lambda: topk_costs.start(False, times),
        "eight cold ranks, ms": topk_costs.eight_cold_ranks,
        "host cost, us per call": topk_costs.host_costs,
        "distributions": topk_distributions.distributions,
        "option times": topk_distributions.options,
    }


def attempt(check: Callable[[], str]) -> tuple[bool, str, float]:
    """Run one check: whether it passed, its line, its seconds."""
    started = time.perf_counter()
    try:
        text = check()
        torch.cuda.synchronize()
        return not text.startswith("WRONG"), text, time.perf_counter() - started
    except Exception as error:
        traceback.print_exc()
        return False, f"{type(error).__name__}: {error}".splitlines()[0], time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
