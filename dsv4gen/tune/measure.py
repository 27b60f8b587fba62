"""Measure candidates on a card: for each shape, the kernels it launches, each with every tile, all else as it is.

A candidate is called on copies of the outputs and compared before it is timed: over everything with what the untuned
kernel wrote, which was judged by the reference. All are timed in passing first, the fastest few then at length, and
those are judged by the reference themselves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dsv4gen.base.errors import DriverError, DsvError
from dsv4gen.base.tiles import tile_words
from dsv4gen.bench.cells import Cell, changed_options, least_sizes
from dsv4gen.bench.prepare import Prepared, call_on_copies, check, judge, prepare, request_for
from dsv4gen.bench.stopwatch import Stopwatch
from dsv4gen.tune.journal import BASE, Entry, Journal
from dsv4gen.tune.pack import Pack, Variant

#: candidates timed at length per shape and kernel, beside the untuned one
FINALISTS = 4
#: slower ones than that, against the fastest in passing, are no finalists
CLOSE = 1.15
_LINE = 200

#: gives the family of a variant with chosen options
Load = Callable[[Variant, Mapping[str, str]], Any]


@dataclass
class Sweep:
    """Everything a sweep needs.

    Attributes:
        quick: times in passing, `stopwatch` at length.
        deadline: on the clock `time.monotonic`; no candidate is begun after it.
    """

    pack: Pack
    load: Load
    stopwatch: Stopwatch
    quick: Stopwatch
    journal: Journal
    device: str
    deadline: float = float("inf")
    progress: Callable[[Entry], None] = lambda _: None

    def run(self, cells: Sequence[Cell]) -> bool:
        """Measure all; whether it came to the end before the deadline."""
        for cell in cells:
            if time.monotonic() > self.deadline:
                return False
            self._cell(cell)
        return time.monotonic() <= self.deadline

    def _cell(self, cell: Cell) -> None:
        entry = self.pack.base.entry
        first = Entry(cell.op, cell.options, cell.shape, BASE, {}, digest=self.pack.base.digest)
        try:
            kernels = self.load(self.pack.base, changed_options(cell.options, entry))
            launches = kernels.op(cell.op).explain(**{**least_sizes(entry), **cell.shape}).launches
            work = [(launch, self._candidates(launch.kernel, launch.tile)) for launch in launches]
            if self._is_done(first, work):
                return
            prepared = prepare(request_for(cell, entry, self.device), entry["reference"], self.stopwatch.cache_bytes())
            written = check(prepared, kernels)
            base_us = self.stopwatch.chained(prepared.thunks(kernels)).us
            self._add(replace(first, value=base_us, final=True))
        except (DsvError, RuntimeError) as error:
            self._add(replace(first, problem=_line(error)))
            return
        for launch, candidates in work:
            same = replace(first, kernel=launch.kernel, tile=dict(launch.tile), bucket=launch.bucket)
            self._add(replace(same, value=base_us, final=True))
            self._kernel(_Shape(prepared, written, same, changed_options(cell.options, entry)), candidates)
        self._again(first, [launch for launch, _ in work], self.stopwatch.chained(prepared.thunks(kernels)).us, base_us)

    def _again(self, first: Entry, launches: Sequence[Any], us: float, before: float) -> None:
        """The spec's tile timed once more, after everything else: a shape's first timing may come out too slow."""
        if us < before:
            self._add(replace(first, value=us, final=True))
            for launch in launches:
                same = replace(first, kernel=launch.kernel, tile=dict(launch.tile), bucket=launch.bucket)
                self._add(replace(same, value=us, final=True))

    def _is_done(self, first: Entry, work: Sequence[tuple[Any, Sequence[Variant]]]) -> bool:
        """Whether the journal holds everything of a cell, finalists of each kernel timed at length."""
        if self.journal.find(first) is None:
            return False
        for launch, candidates in work:
            found = [self.journal.find(_entry(first, launch, variant)) for variant in candidates]
            known = [entry for entry in found if entry is not None]
            if len(known) < len(found) or finalists(known):
                return False
        return True

    def _candidates(self, kernel: str, tile: Mapping[str, int]) -> list[Variant]:
        return [one for one in self.pack.variants if one.kernel == kernel and dict(one.tile) != dict(tile)]

    def _kernel(self, shape: _Shape, candidates: Sequence[Variant]) -> None:
        """All tiles of one kernel on one shape."""
        by_digest = {variant.digest: variant for variant in candidates}
        timed: list[Entry] = []
        for variant in candidates:
            entry = replace(shape.base, tile=dict(variant.tile), digest=variant.digest)
            known = self.journal.find(entry)
            if known is None:
                if time.monotonic() > self.deadline:
                    return
                known = self._timed(shape, variant, entry, self.quick)
            timed.append(known)
        for entry in finalists(timed):
            if time.monotonic() <= self.deadline:
                self._timed(shape, by_digest[entry.digest], entry, self.stopwatch, final=True)

    def _timed(
        self, shape: _Shape, variant: Variant, entry: Entry, stopwatch: Stopwatch, *, final: bool = False
    ) -> Entry:
        """Check, time, and write it down; a wrong result is the entry's problem, and so is whatever a kernel raises.

        Raises:
            DriverError: the device does not answer any more, so nothing after this could be trusted.
        """
        try:
            kernels = self.load(variant, shape.options)
            _check(shape, kernels, final=final)
            entry = replace(entry, value=stopwatch.chained(shape.prepared.thunks(kernels)).us, final=final)
        except Exception as error:
            entry = replace(entry, problem=_line(error), final=final)
        self._add(entry)
        if entry.problem:
            self._require_device(entry)
        return entry

    def _require_device(self, entry: Entry) -> None:
        try:
            self.stopwatch.synchronize()
        except Exception as error:
            raise DriverError(
                f"{entry.kernel} with {tile_words(entry.tile)} left the device unusable: {_line(error)}",
                remedy="run the same command again: the journal goes on without this candidate",
            ) from error

    def _add(self, entry: Entry) -> None:
        self.journal.add(entry)
        self.progress(entry)


@dataclass(frozen=True)
class _Shape:
    """Inputs of a cell, what the untuned family wrote, and the entry of the kernel's own tile."""

    prepared: Prepared
    written: Mapping[str, Any]
    base: Entry
    options: Mapping[str, str]


def finalists(entries: Sequence[Entry]) -> list[Entry]:
    """Those of the fastest few that are close to the fastest and were only timed in passing."""
    right = sorted((entry for entry in entries if not entry.problem), key=lambda entry: entry.value)
    return [entry for entry in right[:FINALISTS] if not entry.final and entry.value <= CLOSE * right[0].value]


def _entry(first: Entry, launch: Any, variant: Variant) -> Entry:
    return replace(first, kernel=launch.kernel, bucket=launch.bucket, tile=dict(variant.tile), digest=variant.digest)


def _check(shape: _Shape, kernels: Any, *, final: bool) -> None:
    """One call on poisoned copies of the outputs.

    Raises:
        VerifyError: a wrong result.
    """
    fresh = call_on_copies(shape.prepared, kernels)
    agree = shape.prepared.workload.agree
    if agree is not None:
        agree(fresh, shape.written)
    if agree is None or final:
        judge(shape.prepared, fresh)


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {getattr(error, 'message', error)}".splitlines()[0][:_LINE]
