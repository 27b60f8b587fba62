"""`dsv4gen tune` without the command line: pack, measure, apply, or all three."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from dsv4gen.base import paths
from dsv4gen.base.errors import DsvError, LoadError, Place, UsageError
from dsv4gen.bench.cells import Wanted, cells_of
from dsv4gen.tune.choose import Choice, choose
from dsv4gen.tune.journal import Entry, Head, Journal, read_journal
from dsv4gen.tune.pack import Pack, read_pack

POLICY = "graph replays over inputs that rotate past the L2, median of 15; spec's tile kept unless 3 % faster"
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Sweeping:
    """How to measure.

    Attributes:
        wanted: shapes, as for bench.
        devices: numbers of the cards, all of one kind.
        seconds: stop then; the journal goes on from there.
        processes: that compile ahead; 0 takes as many as cores repay.
    """

    wanted: Wanted = field(default_factory=lambda: Wanted((), {}, {}))
    devices: Sequence[int] = (0,)
    seconds: float = float("inf")
    processes: int = 0


@dataclass(frozen=True)
class Outcome:
    """What was chosen: rows by kernel, entries they come from, and problems that candidates had."""

    head: Head
    choices: Mapping[str, Sequence[Choice]]
    entries: Sequence[Entry]

    @property
    def rejected(self) -> list[Entry]:
        """Candidates that were wrong or failed."""
        return [entry for entry in self.entries if entry.problem]


@dataclass(frozen=True)
class Asked:
    """The words of the command line; at most one of `pack`, `measure` and `apply`, and then nothing else is done."""

    family: str | None
    target: str | None = None
    kernels: Sequence[str] = ()
    held: Mapping[str, int] = field(default_factory=dict)
    journal: Path | None = None
    pack: Path | None = None
    measure: Path | None = None
    apply: Path | None = None


@dataclass(frozen=True)
class Done:
    """The file that was written, whether all was done, and the choices where it is a tuning file."""

    file: Path
    complete: bool
    outcome: Outcome | None = None


def run(asked: Asked, how: Sweeping, progress: Progress = lambda _: None) -> Done:
    """All that the command does.

    Raises:
        UsageError: words that exclude each other or fit nothing. LoadError: no card.
    """
    steps = [step for step in ("pack", "measure", "apply") if getattr(asked, step)]
    if len(steps) > 1:
        raise UsageError(f"--{steps[0]} and --{steps[1]} exclude each other")
    if asked.apply:
        return Done(*apply(asked.apply))
    if asked.measure:
        journal = asked.journal or asked.measure.with_suffix(".jsonl")
        return Done(journal, measure(asked.measure, journal, how, progress))
    if not asked.family:
        raise UsageError("no family given", remedy="name one, e.g. dsv4gen tune sparse_decode")
    from dsv4gen.tune.candidates import make_pack

    target = asked.target or _card_target(how.devices[0])
    if asked.target and not asked.pack and not _card_runs(target, how.devices[0]):
        return _counted(asked.family, target, asked, how, progress)
    pack_file = asked.pack or _kept(asked.family, target, "pack")
    make_pack(asked.family, target, asked.kernels, asked.held, progress).write(pack_file)
    if asked.pack:
        return Done(pack_file, True)
    journal = asked.journal or _kept(asked.family, target, "jsonl")
    if not measure(pack_file, journal, how, progress):
        return Done(journal, False)
    return Done(*apply(journal))


def _counted(family: str, target: str, asked: Asked, how: Sweeping, progress: Progress) -> Done:
    """Rank by the emulator's counts; the file says so."""
    from dsv4gen.tune.counts import Counting, emulated_head

    file = asked.journal or _kept(family, target, "emulated.jsonl")
    counting = Counting(family, target, lambda entry: progress(entry_line(entry)))
    journal = Journal.open(file, emulated_head(family, target, _today(), counting.axes))
    counting.run(journal, cells_of(family, counting.entry, how.wanted), asked.kernels, asked.held)
    return Done(*apply(file))


def _card_runs(target: str, device: int) -> bool:
    from dsv4gen.bench import machine

    try:
        machine.card(device)
    except LoadError:
        return False
    return _card_target(device) == target


def _card_target(device: int) -> str:
    """The target whose code the card runs: that of the card's name, or the one that lists it."""
    from dsv4gen.base import extensions
    from dsv4gen.bench import machine
    from dsv4gen.spec import load_specs
    from dsv4gen.target import list_targets, resolve_target

    card = machine.card(device)
    specs = load_specs(*extensions.spec_folders())
    for name in list_targets(specs):
        record = resolve_target(specs, name)
        if str(card.target) in (name, *(entry.device for entry in record.also)):
            return name
    raise UsageError(f"{card} has no target", remedy="name one with --target")


def _kept(family: str, target: str, ending: str) -> Path:
    folder = paths.cache() / "tune"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{target}-{family}.{ending}"


def measure(pack_file: Path, journal: Path, how: Sweeping, progress: Progress = lambda _: None) -> bool:
    """Measure a pack's candidates on the cards; whether it came to the end.

    Raises:
        LoadError: no card. UsageError: a card of another target, cards that differ, or words that fit nothing.
    """
    from dsv4gen.bench import machine
    from dsv4gen.tune import workers

    pack = read_pack(pack_file)
    cells = cells_of(pack.family, pack.base.entry, how.wanted)
    cards = [machine.card(number) for number in how.devices]
    for card in cards:
        _require_target(pack, card)
        if card.name != cards[0].name:
            raise UsageError(f"{card} and {cards[0]} differ", remedy="tune on cards of one kind")
    described = machine.describe(how.devices[0])
    head = Head(pack.family, pack.target, "time", _today(), described, {k: list(v) for k, v in pack.axes.items()})
    root, deadline = workers.scratch(), time.monotonic() + how.seconds
    jobs = [workers.Job(pack_file, journal, head, root, number, deadline) for number in how.devices]
    Journal.open(journal, head)
    if pack.base.entry["language"] == "triton":
        workers.compile_ahead(jobs[0], cells, how.processes or workers.compilers_here(), progress)
    return workers.sweep_on_all(jobs, cells, lambda entry: progress(entry_line(entry)))


def apply(journal: Path, out: Path | None = None) -> tuple[Path, bool, Outcome]:
    """Write the tuning file of a journal; the target's folder of the specs is its home.

    Raises:
        UsageError: no journal, one whose family or kernels are gone, or tiles that the specs no longer allow.
    """
    from dsv4gen.tune.candidates import spec_of
    from dsv4gen.tune.write import write_tuning

    outcome = decide(journal)
    head = outcome.head
    spec_of(head.family, head.target)
    path = out or paths.specs() / "tuning" / head.target / f"{head.family}.yaml"
    policy = POLICY if head.kind == "time" else "executed wave instructions, not time: no card was there"
    before = path.read_bytes() if path.is_file() else None
    write_tuning(path, head, policy, outcome.choices)
    try:
        _require_plan(head)
    except DsvError as error:
        path.unlink() if before is None else path.write_bytes(before)
        message = f"the specs do not take what was measured, so {paths.display(path)} is as it was:\n{error}"
        raise UsageError(message, place=Place(str(journal)), remedy="measure again with the specs of today") from error
    return path, True, outcome


def _require_plan(head: Head) -> None:
    """The specs with the tuning file that was just written make a plan; rows of a journal may be older than they."""
    from dsv4gen.base import extensions
    from dsv4gen.emit.build import make_plans
    from dsv4gen.spec import load_specs

    make_plans(load_specs(*extensions.spec_folders()), head.target, [head.family])


def decide(journal: Path) -> Outcome:
    """Rows for every kernel that was measured; none where they would only repeat the spec's."""
    from dsv4gen.plan.make import make_plan
    from dsv4gen.spec.kernel_references import visible_tile
    from dsv4gen.tune.candidates import spec_of

    head, entries = read_journal(journal)
    loaded, record, _ = spec_of(head.family, head.target)
    plan = make_plan(loaded, record)
    choices: dict[str, Sequence[Choice]] = {}
    for kernel in plan.kernels:
        mine = [entry for entry in entries if entry.kernel == kernel.name]
        if mine:
            buckets = [(str(bucket.when), bucket.tile) for bucket in kernel.buckets]
            spec = loaded.model.kernels[kernel.name]
            symbol = partial(visible_tile, spec)
            rows = choose(kernel.name, buckets, head.axes.get(kernel.name, ()), mine, symbol)
            same = [(row.when, dict(row.tile)) for row in rows] == [(when, dict(tile)) for when, tile in buckets]
            choices[kernel.name] = [] if same else rows
    return Outcome(head, choices, entries)


def entry_line(entry: Entry) -> str:
    """A measurement in a line."""
    shape = " ".join(f"{name}={value}" for name, value in entry.shape.items())
    tile = " ".join(f"{name}={value}" for name, value in entry.tile.items())
    what = entry.problem or f"{entry.value:.2f}" + (" (at length)" if entry.final else "")
    return f"{entry.op} {shape}: {entry.kernel or 'as it is'} {tile}: {what}"


def _require_target(pack: Pack, card: object) -> None:
    from dsv4gen.base.target_id import parse, runs_on

    target = getattr(card, "target", None)
    if target is None or not runs_on(parse(str(pack.manifest["target"]["arch"])), target):
        raise UsageError(f"a pack of {pack.target} cannot be measured on {card}", remedy="pack for the card's target")


def _today() -> str:
    return datetime.date.today().isoformat()
