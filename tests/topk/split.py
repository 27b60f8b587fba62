"""Rows split in two launches, on every row whatever its length, with a number of blocks that a test chooses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from dsv4gen.base.errors import EmulationError, VerifyError
from dsv4gen.plan.ir import FamilyPlan, LaunchPath, Op
from dsv4gen.plan.make import make_plan
from dsv4gen.prove import Expr
from dsv4gen.reference.topk_cases import Call, Case, build_problem
from dsv4gen.runtime.dispatch import PlannedLaunch
from dsv4gen.target import resolve_target
from dsv4gen.verify.oracle import FamilyOracle
from dsv4gen.verify.simt import SimtFamily
from tests.topk.host import only, topk_specs

PATH = "split"


@lru_cache(maxsize=8)
def split_plan(target: str) -> FamilyPlan:
    """The target's plan with the split path alone, taken for every shape, and no other kernel's instances."""
    plan = make_plan(topk_specs().families["topk"], resolve_target(topk_specs(), target))
    symbols = [i.symbol for kernel in plan.kernels if kernel.name.startswith("split_") for i in kernel.instances]
    return replace(only(plan, symbols), ops=tuple(map(_split_only, plan.ops)))


def _split_only(op: Op) -> Op:
    return replace(op, launch_paths=tuple(_always(path) for path in op.launch_paths if path.name == PATH))


def _always(path: LaunchPath) -> LaunchPath:
    return replace(path, prefer=Expr.parse("true"))


class SplitHost(SimtFamily):
    """The split path on the host build; `blocks` per row, or as many as the spec says, and so many padded rows."""

    blocks: int | None = None
    padding: int = 0

    def _launch(self, launches: Sequence[PlannedLaunch], op: str, values: Mapping[str, object], order: str) -> None:
        super()._launch([self._resized(launch) for launch in launches], op, values, order)

    def _resized(self, launch: PlannedLaunch) -> PlannedLaunch:
        x, y, z = launch.grid
        return replace(launch, grid=(x + self.padding, self.blocks or y, z))


@lru_cache(maxsize=16)
def split_host(wave: int, *mutations: str) -> SplitHost:
    """The host build of one wave size."""
    return SplitHost(split_plan("gfx950" if wave == 64 else "gfx1201"), wave, frozenset(mutations))


def failures(family: FamilyOracle, cases: Iterable[Case], orders: Sequence[str]) -> list[str]:
    """What went wrong, one text per failing case and order."""
    found = []
    for case in cases:
        for order in orders:
            try:
                family.run(Call(case, build_problem(case)), order=order)
            except (VerifyError, EmulationError) as error:
                found.append(f"{case} ({order}): {error.message}")
    return found
