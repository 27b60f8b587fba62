"""What a cell may say of itself: five stages, each with a state, a few words and its reasons.

A stage never borrows from another: results about something older are `stale`, results that are missing are `no` with
the command that makes them, and what this project cannot do is `never`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dsv4gen.report.benchmarks import Measured
from dsv4gen.report.model import Stage, State
from dsv4gen.verify.outcome import MACHINE_CODE, Gap, Outcome

#: what a cell is called after the oracle that ran its source
_ORACLES = {"SIMT": "host build", "interpreter": "interpreted"}
_OLDER = "these results are about an older generation of this family"


def built(target: str, expected: str, on_disk: str, damaged: Sequence[str], errors: Sequence[str]) -> Stage:
    """From digests: what the specs make now, what the folder holds (empty: nothing), and files that do not match."""
    command = f"run: dsv4gen build --target {target}"
    if damaged:
        return Stage("built", "failed", "damaged", (*damaged, command))
    if not expected:
        kept = ("the folder holds an earlier build",) if on_disk else ()
        why = errors or ("its specs have mistakes or do not prove",)
        return Stage("built", "failed", "cannot be built", (*why, *kept))
    if not on_disk:
        return Stage("built", "no", "not built", (command,))
    if expected != on_disk:
        return Stage("built", "stale", "out of date", ("specs or templates changed since the build", command))
    return Stage("built", "yes", "built", (f"generated/{target} matches its specs and its manifest",))


def proven(proofs: int, refused: int, rejected: Sequence[str], errors: Sequence[tuple[str, str]]) -> Stage:
    """From the plan, or from the mistakes that kept it from being made: (kind, text) each."""
    if errors:
        kinds = {kind for kind, _ in errors}
        unfit = "does not fit" if any("does not fit" in text for _, text in errors) else "not proven"
        text = unfit if "proof" in kinds else "stale tuning" if kinds == {"tuning"} else "spec has mistakes"
        return Stage("proven", "failed", text, tuple(text for _, text in errors))
    reasons = [f"{refused} tiles refused: they do not fit"] if refused else []
    reasons += [f"path rejected: {text}" for text in rejected]
    return Stage("proven", "yes", f"{proofs} proofs", tuple(reasons))


def compiled(outcome: Outcome | None, expected: str) -> Stage:
    """From verify: kernels, spills, what the compiler or a budget refused."""
    missing = _missing("compiled", outcome, expected)
    if outcome is None or missing:
        return missing or _never("compiled")
    wrong = [finding.text for finding in outcome.findings if finding.stage == "compile"]
    spilled = [row for row in outcome.kernels if row.spills]
    spills = [f"{row.symbol} on {row.device}: {row.spills} registers spilled" for row in spilled]
    if wrong:
        return Stage("compiled", "failed", "spills" if spilled else "refused", (*wrong, *spills))
    if not outcome.kernels:
        notes = [note for note in outcome.notes if "compiled" in note] or ["no kernel was compiled"]
        return Stage("compiled", "no", "not compiled", tuple(notes))
    devices = dict.fromkeys(row.device for row in outcome.kernels)
    count = f"{len(outcome.kernels)} kernel{'s' if len(outcome.kernels) > 1 else ''}"
    where = f"{count} for {', '.join(devices)}"
    if spilled:
        return Stage("compiled", "part", "spills allowed", (where, *spills, "the spec allows these spills"))
    return Stage("compiled", "yes", count, (f"{where}, no spills",))


def executed(outcome: Outcome | None, expected: str, evidence: str) -> Stage:
    """From verify: oracles, cases, findings and what no case reached."""
    missing = _missing("executed", outcome, expected)
    if outcome is None or missing:
        return missing or _never("executed")
    cases: dict[str, int] = {}
    for row in outcome.executed:
        cases[row.oracle] = cases.get(row.oracle, 0) + row.cases
    ran = {oracle: count for oracle, count in cases.items() if count}
    reasons = [f"{oracle}: {count:,} cases agree with the reference" for oracle, count in ran.items()]
    wrong = [finding.text for finding in outcome.findings if finding.stage == "run"]
    if wrong:
        return Stage("executed", "failed", "wrong results", (*wrong, *reasons))
    gaps = [f"not executed: {gap}" for gap in outcome.unreached]
    reasons += _impossible(outcome.not_executed)
    if gaps:
        text = f"{len(gaps)} not executed" if ran else "not executed"
        return Stage("executed", "failed", text, (*gaps, *reasons))
    if not ran:
        return Stage("executed", "no", "not executed", ("verify ran nothing of it",))
    words = dict.fromkeys(_ORACLES.get(oracle.split(" wave")[0], oracle) for oracle in ran)
    if MACHINE_CODE in ran:
        return Stage("executed", "yes", "emulated", (*reasons, "emulated on the CPU, not measured on hardware"))
    if evidence == "compiled":
        reasons.append("nothing here executes this target's machine code, only its source")
        return Stage("executed", "part", " + ".join(words), tuple(reasons))
    return Stage("executed", "yes", " + ".join(words), tuple(reasons))


def _impossible(gaps: Sequence[Gap]) -> list[str]:
    """What could not be executed, by oracle and reason."""
    kernels = Counter((gap.oracle, gap.reason) for gap in gaps if gap.reason)
    return [f"{oracle}: {count} kernels not executed: {reason}" for (oracle, reason), count in kernels.items()]


def measured(found: Sequence[Measured], expected: str, evidence: str) -> Stage:
    """From files of times: the card, shapes, and what could not be timed."""
    if not found:
        if evidence == "device":
            return Stage("measured", "no", "not measured", ("no measurement was given: --bench FILE",))
        if evidence == "compiled":
            return Stage("measured", "never", "compile-only", ("no card of this kind was at hand",))
        why = "no AMD card was at hand: results are emulated, and nothing here claims AMD speed"
        return Stage("measured", "never", "emulated, not measured", (why,))
    newest = max(found, key=lambda one: one.bench.date)
    rows = newest.bench.rows
    card = newest.bench.machine.get("device", "a card")
    timed = [row for row in rows if row.times]
    reasons = [f"{len(timed)} of {len(rows)} shapes on {card}, {newest.bench.date}, {newest.bench.file}"]
    reasons += [
        f"{row.op} {' '.join(f'{k}={v}' for k, v in row.shape.items())}: {row.problem}" for row in rows if row.problem
    ]
    if newest.digest and newest.digest != expected:
        return Stage("measured", "stale", "older times", (*reasons, "these times are about an older generation"))
    wrong = len(reasons) - 1
    if wrong:
        return Stage("measured", "failed", f"{wrong}/{len(rows)} shapes fail", (*reasons[1:], reasons[0]))
    if not newest.digest:
        return Stage("measured", "part", _short(card), (*reasons, "the file does not say which generation was timed"))
    return Stage("measured", "yes", _short(card), tuple(reasons))


def headline(stages: Sequence[Stage]) -> tuple[str, State]:
    """The words and the state a cell is known by: the first thing wrong, else how far it came.

    The state is `yes` only where every stage is done or needs hardware that was not at hand.
    """
    wrong = [stage for wanted in ("failed", "stale") for stage in stages if stage.state == wanted]
    if wrong:  # what does not prove cannot be built: name the cause
        first = wrong[1] if wrong[0].text == "cannot be built" and wrong[1:] and wrong[1].name == "proven" else wrong[0]
        return first.text, first.state
    reached = [stage for stage in stages if stage.state in ("yes", "part")]
    if not reached:
        return stages[0].text, stages[0].state
    if any(stage.state == "no" for stage in stages):
        state: State = "no"
    else:
        state = "part" if any(stage.state == "part" for stage in stages) else "yes"
    return _furthest(stages, reached[-1]), state


def _furthest(stages: Sequence[Stage], last: Stage) -> str:
    if last.name == "measured":
        return f"measured, {last.text}"
    if last.name == "executed":
        return "compile-only" if stages[-1].text == "compile-only" else last.text
    return "not built" if last.name == "proven" and stages[0].state == "no" else last.name


def _missing(name: str, outcome: Outcome | None, expected: str) -> Stage | None:
    """The stage where there are no results for what is generated now."""
    if outcome is None:
        return _never(name)
    digest = next(iter(next(iter(outcome.digests.values())).values()))
    if digest != expected:
        return Stage(name, "stale", "older results", (f"{_OLDER} ({outcome.finished})", "run: dsv4gen verify"))
    return None


def _never(name: str) -> Stage:
    return Stage(name, "no", "not verified", ("not verified here; run: dsv4gen verify",))


def _short(card: str) -> str:
    return card.replace("NVIDIA ", "").replace("AMD ", "")
