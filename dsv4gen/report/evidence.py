"""Files of results -> what they say about each cell; a file that cannot be used is named, never passed over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dsv4gen.base import paths
from dsv4gen.base.errors import DsvError
from dsv4gen.report.benchmarks import Measured, read_measured
from dsv4gen.verify.outcome import Outcome
from dsv4gen.verify.results import kept, read_results

Key = tuple[str, str]


@dataclass
class Evidence:
    """Results by (target, family): the newest outcome of verify, and every benchmark."""

    verified: dict[Key, Outcome] = field(default_factory=dict)
    measured: dict[Key, list[Measured]] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def gather(verify_files: Sequence[Path], bench_files: Sequence[Path]) -> Evidence:
    """Read the named files; where no results of verify are named, those that earlier runs left on this machine."""
    found = Evidence()
    for path in verify_files or tuple(kept()):
        try:
            outcome = read_results(path)
        except DsvError as error:
            found.problems.append(f"results of verify not used: {error}")
            continue
        _add_outcome(found, outcome)
        if verify_files:
            found.inputs.append(f"{paths.display(path)}: verify of {', '.join(outcome.targets)}, {outcome.finished}")
    for path in bench_files:
        try:
            measured = read_measured(path)
        except DsvError as error:
            found.problems.append(f"benchmark not used: {error}")
            continue
        for one in measured:
            found.measured.setdefault((one.target, one.family), []).append(one)
        card = ", ".join(sorted({one.bench.machine.get("device", "?") for one in measured}))
        dates = ", ".join(sorted({one.bench.date for one in measured}))
        found.inputs.append(f"{paths.display(path)}: bench on {card}, {dates}")
    if not verify_files and found.verified:
        newest = max(outcome.finished for outcome in found.verified.values())
        found.inputs.append(f"{len(found.verified)} results of verify kept on this machine, newest {newest}")
    return found


def _add_outcome(found: Evidence, outcome: Outcome) -> None:
    for target, families in outcome.digests.items():
        for family in families:
            part = outcome.part(target, family)
            known = found.verified.get((target, family))
            if known is None or known.finished <= part.finished:
                found.verified[target, family] = part
