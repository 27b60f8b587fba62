"""Rank candidates where there is no card: executed instructions of real AMD machine code on the emulator.

Counts are no times. They leave out latency, occupancy and memory, so a journal of them is marked `emulated`, and so is
the tuning file made from it. A candidate with a wrong result, or that spills more than its kernel may, is out.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dsv4gen.base.errors import DsvError, UsageError
from dsv4gen.bench.cells import Cell, least_sizes
from dsv4gen.emit.manifest import family_json
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.plan.make import make_plan
from dsv4gen.runtime.dispatch import PlannedLaunch, decide, with_facts
from dsv4gen.spec import FamilySpec, Loaded
from dsv4gen.target import TargetRecord
from dsv4gen.tune.candidates import Held, predicate_axes, proven_tiles, spec_of, with_tile
from dsv4gen.tune.journal import BASE, Entry, Head, Journal
from dsv4gen.verify.amdgcn import AmdgcnFamily


def emulated_head(family: str, target: str, date: str, axes: Mapping[str, list[str]]) -> Head:
    """The head of a journal of counts."""
    return Head(family, target, "emulated", date, {"device": f"emulated {target}"}, axes)


class Counting:
    """Counts one family's candidates on one AMD target."""

    def __init__(self, family: str, target: str, progress: Callable[[Entry], None] = lambda _: None) -> None:
        """Raises UsageError where the emulator cannot run the family's calls by shape."""
        self.loaded, self.record, _ = spec_of(family, target)
        self.plan = make_plan(self.loaded, self.record)
        self.cases = importlib.import_module(f"dsv4gen.reference.{self.plan.reference}_cases")
        if self.record.detect.api != "hip" or self.plan.language != "hip_cuda" or not hasattr(self.cases, "shape_case"):
            message = f"no card of {target} is here, and {family} has no calls by shape that the emulator counts there"
            raise UsageError(message, remedy="run on a card, or --pack and --measure on a machine with one")
        self.progress = progress
        self.entry = family_json(self.plan)
        self.axes = predicate_axes(self.plan, self.loaded.model)

    def run(self, journal: Journal, cells: Sequence[Cell], kernels: Sequence[str], held: Held, near: int = 0) -> None:
        """Count every candidate of the kernels that the shapes launch."""
        self.journal, entry = journal, self.entry
        for cell in cells:
            facts = {"units": self.plan.target.units, "xcds": 1}
            sizes = with_facts(entry, cell.op, {**least_sizes(entry), **cell.shape}, facts)
            launches = decide(self.plan.family, entry, self.record.name, cell.op, sizes, cell.options).launches
            first = Entry(cell.op, cell.options, cell.shape, BASE, {}, digest=str(entry["digest"]))
            self._count(first, self.loaded, cell)
            for launch in launches:
                for kernel, tile in proven_tiles(self.plan, kernels or (launch.kernel,), held, near):
                    if kernel == launch.kernel:
                        self._candidate(first, launch, tile, cell)

    def _candidate(self, first: Entry, launch: PlannedLaunch, tile: Mapping[str, int], cell: Cell) -> None:
        own = dict(tile) == dict(launch.tile)
        entry = replace(first, kernel=launch.kernel, tile=dict(tile), bucket=launch.bucket)
        self._count(entry, self.loaded if own else with_tile(self.loaded, launch.kernel, tile), cell)

    def _count(self, entry: Entry, loaded: Loaded[FamilySpec], cell: Cell) -> None:
        if self.journal.find(entry) is not None:
            return
        try:
            plan = make_plan(loaded, self.record)
            counted = replace(entry, value=float(executed(plan, self.record, cell, self.cases)), final=True)
        except DsvError as error:
            counted = replace(entry, problem=error.message.splitlines()[0], final=True)
        self.journal.add(counted)
        self.progress(counted)


def executed(plan: FamilyPlan, record: TargetRecord, cell: Cell, cases: object) -> int:
    """Instructions of all waves of a call.

    Raises:
        VerifyError: a wrong result. EmulationError: a fault. CompileError: it does not compile.
    """
    case = cases.shape_case(cell.op, cell.shape, cell.options)  # type: ignore[attr-defined]
    oracle = AmdgcnFamily(plan, record)
    oracle.run(case, like=cell.shape)
    return sum(result.instructions for _, result in oracle.results)
