"""Top-k's kernels under NVIDIA's compute-sanitizer, its tools side by side; run by hand, not collected by pytest.

    python tests/device/run_sanitizer.py [--tool memcheck racecheck] [--seconds 240]

Each tool watches `run_topk.py --only "every kernel"`, with torch's cache of memory off, so that each tensor is an
allocation of its own. Exit status 1 when a tool finds something or did not come to the end, 3 where it does not run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
#: what the tools say where they cannot watch a device at all
REFUSALS = ("Device not supported", "Unable to find", "unrecognised option", "No attachable process")
FOLDERS = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer")


def command(program: str, tool: str) -> list[str]:
    """A tool's command line."""
    words = ["--tool", tool, "--kernel-regex", "kns=topk", "--print-limit", "20", "--error-exitcode", "9"]
    watched = [sys.executable, str(ROOT / "tests" / "device" / "run_topk.py"), "--only", "every kernel"]
    return [program, *words, *watched]


def verdict(text: str, status: int | None) -> tuple[int, str]:
    """Exit status and a line for what a tool printed; no status where it was stopped."""
    refusal = next((words for words in REFUSALS if words in text), None)
    lines = text.splitlines()
    calls = sum(line.startswith("  ") and "/" in line for line in lines)
    summary = next((line for line in reversed(lines) if "SUMMARY" in line), "")
    found = [line for line in lines if line.startswith("========= ") and _is_finding(line)]
    if refusal and not calls:
        return 3, f"does not run here: {refusal}"
    if found or (status or 0) != 0:
        first = found[0].removeprefix("========= ") if found else f"exit status {status}"
        return 1, f"{len(found)} findings in {calls} calls: {first}"
    if status is None:
        return 1, f"stopped after {calls} calls, nothing found in them"
    return (0, f"{calls} calls, {summary.removeprefix('========= ')}") if summary else (1, "printed no summary")


def _is_finding(line: str) -> bool:
    words = ("Invalid", "Error: ", "Warning: ", "hazard", "Barrier error", "Uninitialized", "Program hit", "Misaligned")
    return any(word in line for word in words) and "SUMMARY" not in line


def watch(program: str, tools: list[str], seconds: float, out: Path) -> int:
    """Run the tools at once; the worst exit status."""
    environment = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "PYTHONUNBUFFERED": "1"}
    running, started = {}, time.monotonic()
    for tool in tools:
        with (out / f"sanitizer-{tool}.log").open("wb") as log:
            running[tool] = subprocess.Popen(command(program, tool), env=environment, stdout=log, stderr=log)
    worst = 0
    for tool, process in running.items():
        status: int | None = None
        try:
            status = process.wait(max(1.0, seconds - (time.monotonic() - started)))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        code, line = verdict((out / f"sanitizer-{tool}.log").read_text(errors="replace"), status)
        worst = max(worst, code)
        print(f"{tool:10s} {time.monotonic() - started:6.1f} s  {line}", flush=True)
    return worst


def main() -> int:
    """Find the program and run what was asked for."""
    parser = argparse.ArgumentParser(description="Run top-k's kernels under compute-sanitizer.")
    parser.add_argument("--tool", nargs="+", choices=TOOLS, default=["memcheck", "racecheck"], help="which tools")
    parser.add_argument("--seconds", type=float, default=240.0, help="what all of them may take")
    options = parser.parse_args()
    from tests.device.card import require_card

    require_card()
    found = (shutil.which("compute-sanitizer", path=folder) for folder in (os.environ.get("PATH", ""), *FOLDERS))
    program = next((path for path in found if path), None)
    if program is None:
        print("needs compute-sanitizer, which is part of the CUDA toolkit", file=sys.stderr)
        return 3
    return watch(program, options.tool, options.seconds, Path(os.environ.get("OUT", ".")))


if __name__ == "__main__":
    sys.exit(main())
