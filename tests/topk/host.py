"""Top-k kernels rendered from their spec and built for this machine's CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dsv4gen.base import paths
from dsv4gen.base.choices import with_choices
from dsv4gen.base.errors import DsvError
from dsv4gen.base.params import ParamsLayout
from dsv4gen.emulate.simt import SimtProgram
from dsv4gen.emulate.simt.program import Value
from dsv4gen.plan.ir import FamilyPlan, Instance, Kernel
from dsv4gen.plan.make import make_plan
from dsv4gen.reference.topk_cases import Case, Problem, build_problem
from dsv4gen.render import render_source
from dsv4gen.runtime.sources import slice_source
from dsv4gen.spec import FamilySpec, Loaded, Specs, load_specs
from dsv4gen.spec.models import Table
from dsv4gen.target import resolve_target

WAVES = (32, 64)
#: blocks and threads of the clusters that are built; several bins for a thread, and one
SMALL_CLUSTERS = ((2, 128), (8, 64))


@lru_cache(maxsize=1)
def topk_specs() -> Specs:
    """The specs, loaded once."""
    return load_specs(paths.specs())


@lru_cache(maxsize=1)
def topk_plan() -> FamilyPlan:
    """The plan for a target with clusters, their blocks made small: thousands of fibers would take minutes.

    Bodies are the same bytes for every target of equal tiles, but for clusters, which only some have. Rows split in
    two launches have tests of their own.
    """
    plan = make_plan(_with_long_rows(topk_specs().families["topk"]), resolve_target(topk_specs(), "sm_90"))
    single_launches = (kernel for kernel in plan.kernels if not kernel.name.startswith("split_"))
    return replace(plan, kernels=tuple(map(_small_clusters, single_launches)))


def _with_long_rows(loaded: Loaded[FamilySpec]) -> Loaded[FamilySpec]:
    """The spec with kernels of short rows launched in every mode and for rows that they do not hold, which they stream.

    A tuned tile may make that so; what ships has neither (tests/topk/test_short.py).
    """
    op = loaded.model.ops["select"]
    paths = tuple(
        path.model_copy(update={"domain": "true", "prefer": "width <= 300000"}) if path.name == "short" else path
        for path in op.launch_paths
    )
    changed = {**loaded.model.ops, "select": op.model_copy(update={"launch_paths": paths})}
    return Loaded(loaded.model.model_copy(update={"ops": Table(changed)}), loaded.file, loaded.document)


def _small_clusters(kernel: Kernel) -> Kernel:
    if kernel.name != "cluster":
        return kernel
    modes = {instance.options["mode"]: instance for instance in kernel.instances}
    small = [_small(instance, blocks, threads) for instance in modes.values() for blocks, threads in SMALL_CLUSTERS]
    return replace(kernel, instances=tuple(small))


def _small(instance: Instance, blocks: int, threads: int) -> Instance:
    symbol = f"topk_cluster{blocks}_{instance.options['mode']}_t{threads}"
    tile = {**instance.tile, "block_threads": threads, "cluster_blocks": blocks}
    return replace(instance, symbol=symbol, tile=tile, threads=threads, shared_bytes=128 * 1024)


def instances(plan: FamilyPlan) -> dict[tuple[str, str], Instance]:
    """(label, mode) -> instance; a label is a symbol without its mode."""
    found = [instance for kernel in plan.kernels for instance in kernel.instances]
    return {(label_of(instance), instance.options["mode"]): instance for instance in found}


def label_of(instance: Instance) -> str:
    """The symbol without the mode: what a case calls a kernel."""
    return instance.symbol.replace(f"_{instance.options['mode']}", "")


def labels(plan: FamilyPlan) -> list[str]:
    """Labels of all instances, in the plan's order."""
    return list(dict.fromkeys(label for label, _ in instances(plan)))


def row_path_edges(kernel: Kernel, instance: Instance, *, k: int, head: int = 0) -> list[int]:
    """Values of head + seq_len at which a row path is taken for the last time, the trivial path's aside."""

    def path_of(seq_len: int) -> str:
        shape = {"seq_len": seq_len, "k": k, "head": head, **instance.tile}
        return next(path.name for path in kernel.row_paths if path.prefer.evaluate(shape))

    found, low = [], k + 1
    while path_of(low) != kernel.row_paths[-1].name:
        edge = _last_of(path_of, low)
        found.append(head + edge)
        low = edge + 1
    return found


def _last_of(path_of: Callable[[int], str], low: int) -> int:
    """The largest length that takes the same path as `low`."""
    high = low
    while path_of(high) == path_of(low):
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if path_of(middle) == path_of(low) else (low, middle)
    return low


def only(plan: FamilyPlan, symbols: Iterable[str]) -> FamilyPlan:
    """The plan with these instances alone, which compiles in a fraction of the time."""
    wanted = set(symbols)
    kernels = tuple(
        replace(kernel, instances=tuple(instance for instance in kernel.instances if instance.symbol in wanted))
        for kernel in plan.kernels
    )
    return replace(plan, kernels=kernels)


class HostTopk:
    """All or some instances of a plan, built for one wave size."""

    def __init__(self, plan: FamilyPlan, wave: int, mutations: frozenset[str] = frozenset()) -> None:
        self.text = render_source(plan, "simt", wave=wave, mutations=mutations).text
        self.program = SimtProgram.build(self.text, wave=wave)
        self._chosen: dict[str, SimtProgram] = {}
        self.instances = instances(plan)
        self.layout: ParamsLayout = plan.op("select").params

    def launch(self, problem: Problem) -> dict[str, int]:
        """Run a problem's case; the counters of the launch.

        Raises:
            EmulationError: the kernel misbehaved.
        """
        case = problem.case
        instance = self.instances[case.kernel, case.mode]
        values = {name: _argument(name, value) for name, value in problem.values().items()}
        program = self.with_choices(instance, case)
        return self.launch_values(instance, values, problem.scores.shape[0], case.order, program)

    def with_choices(self, instance: Instance, case: Case) -> SimtProgram:
        """The program; one of the instance alone where the case has other choices than the text."""
        text = with_choices(self.text, case.options)
        if text == self.text:
            return self.program
        part = slice_source("topk", text, [instance.symbol]).text
        if part not in self._chosen:
            self._chosen[part] = SimtProgram.build(part, wave=self.program.wave)
        return self._chosen[part]

    def launch_values(
        self,
        instance: Instance,
        values: Mapping[str, Value],
        rows: int,
        order: str = "ascending",
        program: SimtProgram | None = None,
    ) -> dict[str, int]:
        """Run an instance on arrays and numbers; the counters of the launch.

        Raises:
            EmulationError: the kernel misbehaved.
        """
        blocks = instance.tile.get("cluster_blocks", 1)
        result = (program or self.program).launch(
            instance.symbol, self.layout, values, rows * blocks, instance.threads, cluster=blocks, order=order
        )
        result.raise_errors()
        return result.counters

    def run(self, case: Case) -> dict[str, int]:
        """Build, launch and judge one case.

        Raises:
            EmulationError, VerifyError: the kernel misbehaved or selected wrongly.
        """
        problem = build_problem(case)
        counters = self.launch(problem)
        problem.check()
        return counters

    def failures(self, cases: Iterable[Case]) -> list[str]:
        """What went wrong, one text per failing case."""
        found = []
        for case in cases:
            try:
                self.run(case)
            except DsvError as error:
                found.append(f"{case}: {error.message}")
        return found


def _argument(name: str, value: Tensor | int) -> np.ndarray[Any, Any] | int:
    """Inputs are read-only for the kernel, so that a write to them is caught where it happens."""
    if isinstance(value, int):
        return value
    array = (value.view(torch.int16) if value.dtype is torch.bfloat16 else value).numpy()
    if name not in ("out", "raw_out"):
        array.flags.writeable = False
    return array
