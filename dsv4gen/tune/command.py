"""`dsv4gen tune` without the command line: pack, measure, apply, or all three."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dsv4gen.base import paths
from dsv4gen.base.errors import LoadError, UsageError
from dsv4gen.base.outputs import require_file
from dsv4gen.bench.cells import cells_of
from dsv4gen.tune.apply import Outcome, apply, tuning_file
from dsv4gen.tune.asked import Asked, Sweeping, refuse_contradictions
from dsv4gen.tune.journal import Entry, Head, Journal
from dsv4gen.tune.pack import Pack, read_pack

Progress = Callable[[str], None]


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
    refuse_contradictions(asked, how.wanted)
    if asked.apply:
        return Done(*apply(asked.apply))
    if asked.measure:
        journal = asked.journal or asked.measure.with_suffix(".jsonl")
        return Done(journal, measure(asked.measure, journal, how, progress))
    if not asked.family:
        raise UsageError("no family given", remedy="name one, e.g. dsv4gen tune sparse_decode")
    from dsv4gen.tune.candidates import make_pack, require_family, require_words

    require_family(asked.family)
    target = asked.target or _card_target(how.devices[0])
    target = require_words(asked.family, target, asked.kernels, asked.held, how.wanted, asked.near)
    if not asked.pack:
        require_file(tuning_file(asked.family, target), "the tuning file", parents=True)
    if asked.target and not asked.pack and not _card_runs(target, how.devices[0]):
        return _counted(asked.family, target, asked, how, progress)
    pack_file = asked.pack or _kept(asked.family, target, "pack")
    make_pack(asked.family, target, asked.kernels, asked.held, progress, asked.near).write(pack_file)
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
    cells = cells_of(family, counting.entry, how.wanted)
    journal = Journal.open(file, emulated_head(family, target, _today(), counting.axes))
    counting.run(journal, cells, asked.kernels, asked.held, asked.near)
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
