"""Run an op of a HIP/CUDA family without a GPU, through the argument checks and the dispatch the runtime uses.

What executes a launch is an oracle's own: the SIMT host build (`simt`) or emulated AMD machine code (`amdgcn`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from dsv4gen.base.errors import LoadError, VerifyError
from dsv4gen.base.expression_json import evaluate_json
from dsv4gen.base.params import ParamsLayout
from dsv4gen.emit.manifest import family_json
from dsv4gen.plan.ir import FamilyPlan, Instance, Launch
from dsv4gen.reference.case import Case
from dsv4gen.runtime.arguments import check
from dsv4gen.runtime.call_table import CallTable
from dsv4gen.runtime.dispatch import Decision, PlannedLaunch, complete_options, decide
from dsv4gen.runtime.read_table import make_table
from dsv4gen.verify.spaces import Spaces

NO_SIZES: Mapping[str, int] = MappingProxyType({})
#: of cases that no product is named for: compute units, and XCDs with a cache each
DEVICE = {"units": 64, "xcds": 4}


@dataclass(frozen=True)
class Way:
    """One way to make a call: a launch path with tiles chosen."""

    path: str
    launches: tuple[PlannedLaunch, ...]

    def __str__(self) -> str:
        return f"path {self.path}, {' and '.join(launch.symbol for launch in self.launches)}"


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
        #: options of the case that runs
        self.options: Mapping[str, str] = {}
        #: what a running device says of itself, which dispatch depends on
        self.device: Mapping[str, int] = DEVICE

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

    def run(
        self,
        case: Case,
        *,
        variant: str = "",
        path: str = "",
        order: str = "ascending",
        every_tile: bool = False,
        like: Mapping[str, int] = NO_SIZES,
    ) -> Call:
        """Execute a case and judge it.

        Args:
            variant: value of the family's flag; the platform's default when empty.
            path: the launch path to take; what dispatch chooses when empty.
            order: of lanes, waves and blocks.
            every_tile: after what dispatch chooses, run every other path that is right for the shape, and every tile.
            like: sizes of a larger call that this one stands for: paths and tiles are those of that one.

        Raises:
            VerifyError: wrong results.
            EmulationError: the kernel misbehaved.
            LoadError: no path takes the shape, or the kernel that it takes is not there.
        """
        self.options = options = complete_options(self.entry, case.options)
        table = make_table(self.plan.family, self.entry, case.op, options)
        bound = check(table, case.arguments, on_cuda=False)
        shape = {**self.device, **bound.sizes}
        asked = {name: size for name, size in like.items() if name in shape}
        others = {one.name: f"{path} was asked for" for one in self.plan.op(case.op).launch_paths if path != one.name}
        ways = list(self._ways(case, shape, options, variant, every_tile, asked, others if path else {}))
        for number, way in enumerate(ways):
            current = case if number == 0 else case.fresh()
            self._call(way, table, current, {**shape, **bound.strides}, order)
        used = [launch for way in ways for launch in way.launches]
        return Call(
            tuple(launch.symbol for launch in used), frozenset(self._row_paths(used, {**shape, **options}, case))
        )

    def _call(self, way: Way, table: CallTable, case: Case, sizes: Mapping[str, int], order: str) -> None:
        """Make the call one way and judge results and workspaces."""
        spaces = Spaces.of(table, way.path, {**self.plan.constants, **sizes})
        self._launch(way.launches, case.op, {**sizes, **case.arguments, **spaces.arguments}, order)
        try:
            case.check()
        except VerifyError as error:
            raise VerifyError(f"{error.message} ({way})") from None
        spaces.check(f"{case.name}, path {way.path}")

    def _ways(
        self,
        case: Case,
        shape: Mapping[str, int],
        options: Mapping[str, str],
        variant: str,
        every: bool,
        like: Mapping[str, int],
        refused: Mapping[str, str],
    ) -> Iterator[Way]:
        """What dispatch launches; with `every`, then each other path that is right for the shape, and each tile.

        Paths that are `refused`, each with a reason, are not taken.
        """
        op = case.op
        flag = {self.plan.variants.flag: variant} if variant else {}
        done = dict(refused)
        while True:
            try:
                decision = decide(
                    self.plan.family, self.entry, self.plan.target.name, op, {**shape, **like}, options, flag, done
                )
            except LoadError:
                if done.keys() == refused.keys():
                    raise
                return
            launches = decision.launches if not like else self._resized(op, decision, {**shape, **options})
            yield Way(decision.path, launches)
            if not every:
                return
            for launches in self._other_tiles(case, decision, {**shape, **options}):
                yield Way(decision.path, launches)
            done[decision.path] = "it ran already"

    def _other_tiles(
        self, case: Case, decision: Decision, names: Mapping[str, Any]
    ) -> Iterator[tuple[PlannedLaunch, ...]]:
        """The path's launches with, for one of them at a time, each other tile that is emitted for these options.

        A tile without code for the row paths that the case's rows would take there is left out.
        """
        path = next(path for path in self.plan.op(case.op).launch_paths if path.name == decision.path)
        chosen = decision.launches
        for position, launch in enumerate(path.launches):
            for instance in self.plan.kernel(launch.kernel).instances:
                wrong = any(names[name] != value for name, value in instance.options.items())
                if instance.symbol == chosen[position].symbol or wrong:
                    continue
                other = self._with_instance(launch, chosen[position], instance, names)
                if {path for _, path in self._row_paths([other], names, case)} <= set(instance.row_paths):
                    yield (*chosen[:position], other, *chosen[position + 1 :])

    def _resized(self, op: str, decision: Decision, names: Mapping[str, Any]) -> tuple[PlannedLaunch, ...]:
        """The decision's launches with grids of other sizes."""
        path = next(path for path in self.plan.op(op).launch_paths if path.name == decision.path)
        resized = []
        for launch, chosen in zip(path.launches, decision.launches, strict=True):
            instances = self.plan.kernel(launch.kernel).instances
            instance = next(one for one in instances if one.symbol == chosen.symbol)
            resized.append(self._with_instance(launch, chosen, instance, names))
        return tuple(resized)

    def _with_instance(
        self, launch: Launch, chosen: PlannedLaunch, instance: Instance, names: Mapping[str, Any]
    ) -> PlannedLaunch:
        inside = {**names, **self.plan.constants, **instance.tile}
        x, y, z = (int(size.evaluate(inside)) for size in launch.grid)
        return replace(
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
