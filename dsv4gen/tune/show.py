"""What a tuning run did, for people."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from dsv4gen.base import paths
from dsv4gen.base.errors import EXIT_FINDINGS
from dsv4gen.base.tiles import tile_words
from dsv4gen.console import say, table
from dsv4gen.tune.apply import Outcome
from dsv4gen.tune.choose import Choice
from dsv4gen.tune.command import Done
from dsv4gen.tune.journal import BASE, Entry


def show(done: Done) -> None:
    """Rows, gains and rejected candidates."""
    if not done.complete:
        say(f"not finished; {paths.display(done.file)} keeps what was measured, the same command goes on", "bad")
        return
    if done.outcome is not None:
        show_outcome(done.outcome)
    say(f"wrote {paths.display(done.file)}", "good")


def exit_status(done: Done) -> int:
    """1 where a sweep did not come to its end."""
    return 0 if done.complete else EXIT_FINDINGS


def to_json(done: Done) -> dict[str, Any]:
    """For other programs."""
    found: dict[str, Any] = {"file": str(done.file), "complete": done.complete}
    if done.outcome is not None:
        kernels = done.outcome.choices.items()
        found["kernels"] = {kernel: [_row_json(choice) for choice in choices] for kernel, choices in kernels}
        found["gain"] = gain(done.outcome)
        found["rejected"] = [asdict(entry) for entry in done.outcome.rejected]
    return found


def _row_json(choice: Choice) -> dict[str, Any]:
    return {"when": choice.when, "tile": dict(choice.tile), "measured": [asdict(entry) for entry in choice.entries]}


def show_outcome(outcome: Outcome) -> None:
    """The rows, and what they gain where something was measured."""
    rows = []
    for kernel, choices in outcome.choices.items():
        for choice in choices:
            rows.append((kernel, choice.when, tile_words(choice.tile), *_gain_cells(outcome, choice.entry)))
    unit = "us" if outcome.head.kind == "time" else "instructions, emulated"
    table(("kernel", "when", "tile", f"spec {unit}", "tuned", "ratio"), rows)
    unchanged = [kernel for kernel, choices in outcome.choices.items() if not choices]
    if unchanged:
        say(f"the spec's tiles stay: {', '.join(unchanged)}")
    ratio = gain(outcome)
    if ratio is not None:
        say(f"geometric mean of tuned / spec over the shapes of these rows: {ratio:.3f}")
    for entry in outcome.rejected:
        say(f"rejected: {entry.kernel} {tile_words(entry.tile)}: {entry.problem}", "dim")


def base_value(outcome: Outcome, entry: Entry) -> float | None:
    """What the untuned family took on an entry's shape."""
    found = [one for one in outcome.entries if one.kernel == BASE and one.cell == entry.cell and not one.problem]
    return found[-1].value if found else None


def gain(outcome: Outcome) -> float | None:
    """Geometric mean of the rows' times over the spec's, over the measured shapes of every kernel."""
    entries = [entry for choices in outcome.choices.values() for choice in choices for entry in choice.entries]
    pairs = [(entry.value, base_value(outcome, entry)) for entry in entries]
    logs = [math.log(value / before) for value, before in pairs if before]
    return math.exp(sum(logs) / len(logs)) if logs else None


def _gain_cells(outcome: Outcome, entry: Entry | None) -> tuple[str, str, str]:
    before = base_value(outcome, entry) if entry else None
    if entry is None or not before:
        return "-", "-", "-"
    return f"{before:.2f}", f"{entry.value:.2f}", f"{entry.value / before:.2f}"
