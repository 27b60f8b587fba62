"""Everything that only a CUDA card can show, one part after another; run by hand, not collected by pytest.

    python tests/device/run_all.py [--list] [--only WORD ...] [--minutes 25] [--out FOLDER]

Needs `generated/<target>` and torch, triton and numpy; the generator's packages need not be there. Each part is a
process with a time limit of its own and a log in the folder; parts that no longer fit into the minutes are left out
and named. Exit status 1 when a part fails or is left out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
TOPK_CHECKS = ("capture", "results", "empty", "thread", "graph", "streams", "compile", "opcheck", "target", "matrix")
FAMILIES = ("topk", "sparse_decode", "gather_dequant", "compress", "qk_norm_rope", "indexer_logits")


@dataclass(frozen=True)
class Part:
    """One process: what it is for, its command behind the interpreter, and the seconds it may take."""

    name: str
    command: tuple[str, ...]
    seconds: int


def script(name: str, *words: str) -> tuple[str, ...]:
    """A script of this folder."""
    return (str(Path(__file__).with_name(f"{name}.py")), *words)


def parts(out: Path) -> list[Part]:
    """All of it, what is judged by right or wrong before what is timed."""
    checks = [
        Part("topk-checks", script("run_topk", "--only", *TOPK_CHECKS), 420),
        Part("topk-options", script("run_topk", "--only", "options", "split rows"), 240),
        Part("topk-race", script("run_topk", "--only", "race"), 300),
        *(Part(f"{name}-checks", script(f"run_{name}"), 240) for name in ("sparse_decode", "compress", "qk_norm_rope")),
        Part("indexer_logits-checks", script("run_indexer_logits", "check"), 240),
    ]
    benches = [
        Part(f"{name}-bench", ("-m", "dsv4gen", "bench", name, "--json", str(out / f"bench-{name}.json")), 180)
        for name in FAMILIES
    ]
    costs = [
        Part("topk-start", script("run_topk", "--only", "start", "ranks"), 120),
        Part("topk-host", script("run_topk", "--only", "host"), 60),
        Part("topk-distributions", script("run_topk", "--only", "distributions", "option times"), 240),
        Part("chain", ("docs/examples/chain.py",), 180),
    ]
    return [*checks, *benches, *costs]


def run(part: Part, out: Path, limit: float) -> str:
    """`right`, or what went wrong; what it printed goes to its log."""
    environment = {**os.environ, "OUT": str(out), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    with (out / f"{part.name}.log").open("w", encoding="utf-8") as log:
        try:
            done = subprocess.run(
                [sys.executable, *part.command],
                cwd=ROOT,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"stopped after {limit:.0f} s"
    return "right" if done.returncode == 0 else f"exit status {done.returncode}"


def main() -> int:
    """Run what was asked for and fits."""
    parser = argparse.ArgumentParser(description="Run everything that only a card can show.")
    parser.add_argument("--list", action="store_true", help="print the parts and their limits, run nothing")
    parser.add_argument("--only", nargs="*", default=[""], help="only parts whose name holds one of these words")
    parser.add_argument("--minutes", type=float, default=25.0, help="what all of it may take")
    parser.add_argument("--out", type=Path, default=Path("card"), help="folder of logs and results")
    options = parser.parse_args()
    wanted = [part for part in parts(options.out) if any(word in part.name for word in options.only)]
    if options.list:
        print("\n".join(f"{part.name:24} {part.seconds:4} s  {' '.join(part.command)}" for part in wanted))
        return 0
    from tests.device.card import require_card

    require_card()
    options.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + options.minutes * 60
    bad = 0
    for part in wanted:
        started = time.monotonic()
        limit = min(part.seconds, end - started)
        outcome = run(part, options.out.resolve(), limit) if limit > 0 else "left out: no time"
        bad += outcome != "right"
        print(f"{part.name:24} {time.monotonic() - started:6.1f} s  {outcome}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
