"""Run an op of a HIP/CUDA family without a GPU, through the argument checks and the dispatch the runtime uses.

What executes a launch is an oracle's own: the SIMT host build (`simt`) or emulated AMD machine code (`amdgcn`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dsv4gen.base.errors import LoadError
from dsv4gen.base.expression_json import evaluate_json
from dsv4gen.base.params import ParamsLayout
from dsv4gen.emit.manifest import family_json
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.reference.case import Case
from dsv4gen.runtime.arguments import check
from dsv4gen.runtime.call_table import make_table
from dsv4gen.runtime.dispatch import Decision, PlannedLaunch, complete_options, decide

#: what a running device would say of itself: compute units, and XCDs with a cache each
DEVICE = {"units": 64, "xcds": 1}


@dataclass(frozen=True)
class Call:
    """What one executed case touched: the symbols it launched and the row paths its rows took."""

    symbols: tuple[str, ...]
    row_paths: frozenset[tuple[str, str]]


class FamilyOracle(ABC):
    """One planned family, ready to run cases."""

    def __init__(self, plan: FamilyPlan) -> None:
        self.plan = plan
        self.entry = family_json(plan)

    @property
    @abstractmethod
    def name(self) -> str:
        """How tables name the oracle."""

    @abstractmethod
    def launch(self, launch: PlannedLaunch, layout: ParamsLayout, values: Mapping[str, Any], order: str) -> None:
        """Execute one launch; `values` has tensors and numbers by parameter name, 0 for what a mode lacks.

        Raises:
            EmulationError: the kernel misbehaved.
        """

    def run(self, case: Case, *, variant: str = "", order: str = "ascending", every_tile: bool = False) -> Call:
        """Execute a case and judge it.

        Args:
            variant: value of the family's flag; the platform's default when empty.
            order: of lanes, waves and blocks.
            every_tile: after what dispatch chooses, run every other path that is right for the shape, and every tile.

        Raises:
            VerifyError: wrong results.
            EmulationError: the kernel misbehaved.
        """
        options = complete_options(self.entry, case.options)
        bound = check(make_table(self.plan.family, self.entry, case.op, options), case.arguments, on_cuda=False)
        shape = {**DEVICE, **bound.sizes}
        ways = list(self._ways(case.op, shape, options, variant, every_tile))
        for number, launches in enumerate(ways):
            current = case if number == 0 else case.fresh()
            self._launch(launches, case.op, {**shape, **bound.strides, **current.arguments}, order)
            current.check()
        used = [launch for launches in ways for launch in launches]
        return Call(
            tuple(launch.symbol for launch in used), frozenset(self._row_paths(used, {**shape, **options}, case))
        )

    def _ways(
        self, op: str, shape: Mapping[str, int], options: Mapping[str, str], variant: str, every: bool
    ) -> Iterator[tuple[PlannedLaunch, ...]]:
        """What dispatch launches; with `every`, then each other path that is right for the shape, and each tile."""
        flag = {self.plan.variants.flag: variant} if variant else {}
        done: dict[str, str] = {}
        while True:
            try:
                decision = decide(
                    self.plan.family, self.entry, self.plan.target.name, op, shape, options, flag, disabled=done
                )
            except LoadError:
                return
            yield decision.launches
            if not every:
                return
            if len(decision.launches) == 1:
                for tile in self._other_tiles(op, decision, {**shape, **options}):
                    yield (tile,)
            done[decision.path] = "it ran already"

    def _other_tiles(self, op: str, decision: Decision, names: Mapping[str, Any]) -> Iterator[PlannedLaunch]:
        """The launch of a single-launch path with each other tile that is emitted for these options."""
        (chosen,) = decision.launches
        path = next(path for path in self.plan.op(op).launch_paths if path.name == decision.path)
        (launch,) = path.launches
        for instance in self.plan.kernel(chosen.kernel).instances:
            if instance.symbol == chosen.symbol or any(names[name] != v for name, v in instance.options.items()):
                continue
            inside = {**names, **self.plan.constants, **instance.tile}
            x, y, z = (int(size.evaluate(inside)) for size in launch.grid)
            yield replace(
                chosen,
                symbol=instance.symbol,
                tile=instance.tile,
                grid=(x, y, z),
                block=instance.threads,
                cluster=int(launch.cluster.evaluate(inside)) if launch.cluster else 1,
            )

    def _launch(self, launches: Sequence[PlannedLaunch], op: str, values: Mapping[str, Any], order: str) -> None:
        layout = self.plan.op(op).params
        members = {field.name: values.get(field.name, 0) for field in layout.fields}
        for launch in launches:
            if 0 not in launch.grid:
                self.launch(launch, layout, members, order)

    def _row_paths(
        self, launches: Sequence[PlannedLaunch], names: Mapping[str, Any], case: Case
    ) -> Iterator[tuple[str, str]]:
        """Which branch each row took, from the predicates the kernel evaluates."""
        for launch in launches:
            paths = self.entry["kernels"][launch.kernel]["row_paths"]
            for row in case.rows:
                known = {**names, **self.plan.constants, **launch.tile, **row}
                yield (
                    launch.symbol,
                    next(path for path in paths if evaluate_json(path["prefer"]["tree"], known))["name"],
                )
