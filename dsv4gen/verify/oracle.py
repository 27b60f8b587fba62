"""Run an op of a HIP/CUDA family without a GPU, through the argument checks and the dispatch the runtime uses.

What executes a launch is an oracle's own: the SIMT host build (`simt`) or emulated AMD machine code (`amdgcn`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dsv4gen.base.expression_json import evaluate_json
from dsv4gen.base.params import ParamsLayout
from dsv4gen.emit.manifest import family_json
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.reference.case import Case
from dsv4gen.runtime.arguments import check
from dsv4gen.runtime.call_table import make_table
from dsv4gen.runtime.dispatch import PlannedLaunch, complete_options, decide


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
            every_tile: after the tile that dispatch chooses, run all other tiles of a single-launch path too.

        Raises:
            VerifyError: wrong results.
            EmulationError: the kernel misbehaved.
        """
        options = complete_options(self.entry, case.options)
        bound = check(make_table(self.plan.family, self.entry, case.op, options), case.arguments, on_cuda=False)
        shape = dict(bound.sizes)
        flag = {self.plan.variants.flag: variant} if variant else {}
        decision = decide(self.plan.family, self.entry, self.plan.target.name, case.op, shape, options, flag)
        ways = [decision.launches]
        if every_tile and len(decision.launches) == 1:
            ways += [(launch,) for launch in self._other_tiles(decision.launches[0], options)]
        for number, launches in enumerate(ways):
            current = case if number == 0 else case.fresh()
            values = {**shape, **bound.strides, **current.arguments}
            self._launch(launches, case.op, values, order)
            current.check()
        used = [launch for launches in ways for launch in launches]
        names = {**shape, **options}
        return Call(tuple(launch.symbol for launch in used), frozenset(self._row_paths(used, names, case)))

    def _other_tiles(self, chosen: PlannedLaunch, options: Mapping[str, str]) -> Iterator[PlannedLaunch]:
        """The same launch with each other tile that is emitted for these options."""
        for instance in self.plan.kernel(chosen.kernel).instances:
            same = all(options[name] == value for name, value in instance.options.items())
            if same and instance.symbol != chosen.symbol:
                yield replace(chosen, symbol=instance.symbol, tile=instance.tile, block=instance.threads)

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
