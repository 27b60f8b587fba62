"""Everything that only a CUDA card can show, one part after another; run by hand, not collected by pytest.

    python tests/device/run_all.py [--list] [--only WORD ...] [--minutes 25] [--gpus 0 1 ...] [--out FOLDER]
                                   [--packs FOLDER]

Needs `generated/<target>` and torch, triton and numpy; the generator's packages need not be there. Each part is a
process with a time limit of its own and a log in the folder. With several cards each takes the next part when it is
free; parts that time the host come after the others and have the machine to themselves. Parts that no longer fit into
the minutes are left out and named. Exit status 1 when a part fails or is left out.

Packs of `dsv4gen tune --pack` are measured too, each for `TUNE_SECONDS` at most; one that has not ended by then counts
as failed, and `dsv4gen tune --measure` goes on from the journal in the folder.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
TOPK_CHECKS = ("capture", "results", "empty", "thread", "graph", "streams", "compile", "opcheck", "target", "matrix")
FAMILIES = ("topk", "sparse_decode", "gather_dequant", "compress", "qk_norm_rope", "indexer_logits")


@dataclass(frozen=True)
class Part:
    """One process: what it is for, its command behind the interpreter, the seconds it may take, and whether it times
    the host and so runs alone."""

    name: str
    command: tuple[str, ...]
    seconds: int
    alone: bool = False


#: of one pack's measuring
TUNE_SECONDS = 240


def script(name: str, *words: str) -> tuple[str, ...]:
    """A script of this folder."""
    return (str(Path(__file__).with_name(f"{name}.py")), *words)


def parts(out: Path) -> list[Part]:
    """All of it, what is judged by right or wrong before what is timed."""
    checks = [
        Part("topk-checks", script("run_topk", "--only", *TOPK_CHECKS), 420),
        Part("topk-options", script("run_topk", "--only", "options", "split", "every kernel"), 300),
        Part("topk-race", script("run_topk", "--only", "race"), 300),
        *(Part(f"{name}-checks", script(f"run_{name}"), 240) for name in ("sparse_decode", "compress", "qk_norm_rope")),
        Part("indexer_logits-checks", script("run_indexer_logits", "check"), 240),
        Part("topk-sanitizer", script("run_sanitizer", "--seconds", "280"), 300),
    ]
    benches = [
        Part(f"{name}-bench", ("-m", "dsv4gen", "bench", name, "--json", str(out / f"bench-{name}.json")), 180)
        for name in FAMILIES
    ]
    costs = [
        Part("topk-distributions", script("run_topk", "--only", "distributions", "option times"), 240),
        Part("chain", ("docs/examples/chain.py",), 180),
        Part("topk-start", script("run_topk", "--only", "start", "ranks"), 120, alone=True),
        Part("topk-host", script("run_topk", "--only", "host"), 60, alone=True),
    ]
    return [*checks, *benches, *costs]


def tunings(packs: Path, out: Path) -> list[Part]:
    """One part for each pack of a folder."""
    found = []
    for pack in sorted(packs.glob("*.pack")):
        words = ("--measure", str(pack), "--journal", str(out / f"{pack.stem}.jsonl"), "--seconds", str(TUNE_SECONDS))
        found.append(Part(f"{pack.stem}-tune", ("-m", "dsv4gen", "tune", *words), TUNE_SECONDS + 60))
    return found


def run(part: Part, out: Path, limit: float, gpu: str = "") -> str:
    """`right`, or what went wrong; what it printed goes to its log.

    Args:
        limit: seconds.
        gpu: the card it shall see; those that this process sees when empty.
    """
    places = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "OUT": str(out), "PART": part.name, "PYTHONUNBUFFERED": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(places)
    if gpu:
        environment["CUDA_VISIBLE_DEVICES"] = gpu
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


def run_parts(wanted: Sequence[Part], out: Path, gpus: Sequence[str], end: float) -> int:
    """Run parts on cards, each the next one when it is free, those that run alone last; how many were not right.

    Args:
        gpus: as for `run`; one process at a time for each.
        end: on the clock `time.monotonic`; what has not begun then is left out.
    """
    bad = 0
    lock = threading.Lock()

    def work(gpu: str, waiting: list[Part]) -> None:
        nonlocal bad
        while True:
            with lock:
                if not waiting:
                    return
                part = waiting.pop(0)
            started = time.monotonic()
            limit = min(part.seconds, end - started)
            outcome = run(part, out, limit, gpu) if limit > 0 else "left out: no time"
            with lock:
                bad += outcome != "right"
                where = f"  on {gpu}" if gpu else ""
                print(f"{part.name:24} {time.monotonic() - started:6.1f} s  {outcome}{where}", flush=True)

    together = [part for part in wanted if not part.alone]
    threads = [threading.Thread(target=work, args=(gpu, together)) for gpu in gpus]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work(gpus[0], [part for part in wanted if part.alone])
    return bad


def main() -> int:
    """Run what was asked for and fits."""
    parser = argparse.ArgumentParser(description="Run everything that only a card can show.")
    parser.add_argument("--list", action="store_true", help="print the parts and their limits, run nothing")
    parser.add_argument("--only", nargs="*", default=[""], help="only parts whose name holds one of these words")
    parser.add_argument("--minutes", type=float, default=25.0, help="what all of it may take")
    parser.add_argument("--gpus", nargs="+", default=[""], help="cards that share the parts, as CUDA numbers them")
    parser.add_argument("--packs", type=Path, help="folder of packs to measure as well")
    parser.add_argument("--out", type=Path, default=Path("card"), help="folder of logs and results")
    options = parser.parse_args()
    out = options.out.resolve()
    every = [*parts(out), *(tunings(options.packs.resolve(), out) if options.packs else ())]
    wanted = [part for part in every if any(word in part.name for word in options.only)]
    if options.list:
        print("\n".join(f"{part.name:24} {part.seconds:4} s  {' '.join(part.command)}" for part in wanted))
        return 0
    from tests.device.card import require_card

    require_card()
    out.mkdir(parents=True, exist_ok=True)
    return 1 if run_parts(wanted, out, options.gpus, time.monotonic() + options.minutes * 60) else 0


if __name__ == "__main__":
    sys.exit(main())
