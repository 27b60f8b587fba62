"""Run an op of a HIP/CUDA family on the SIMT host build, through the dispatch the runtime uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dsv4gen.base.errors import EmulationError, VerifyError
from dsv4gen.base.expression_json import evaluate_json
from dsv4gen.base.params import ParamsLayout
from dsv4gen.emit.manifest import family_json
from dsv4gen.emulate.simt import SimtProgram
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.reference.case import Case
from dsv4gen.render import render_source
from dsv4gen.runtime.arguments import check
from dsv4gen.runtime.call_table import make_table
from dsv4gen.runtime.dispatch import Decision, complete_options, decide

#: dtypes numpy lacks travel as integers of the same size
_AS_INTEGERS = {"torch.bfloat16": "int16", "torch.bool": "uint8"}


@dataclass(frozen=True)
class Call:
    """What one executed case touched: the symbols it launched and the row paths its rows took."""

    symbols: tuple[str, ...]
    row_paths: frozenset[tuple[str, str]]


class SimtFamily:
    """One family on the host build of one wave size."""

    def __init__(self, plan: FamilyPlan, wave: int, mutations: frozenset[str] = frozenset()) -> None:
        self.plan = plan
        self.entry = family_json(plan)
        file = render_source(plan, "simt", wave=wave, mutations=mutations)
        self.program = SimtProgram.build(file.text, wave=wave, source_map=file.source_map)

    def run(self, case: Case, *, variant: str = "", order: str = "ascending") -> Call:
        """Execute a case and judge it.

        Raises:
            VerifyError: wrong results.
            EmulationError: the kernel misbehaved.
        """
        options = complete_options(self.entry, case.options)
        table = make_table(self.plan.family, self.entry, case.op, options)
        bound = check(table, case.arguments, on_cuda=False)
        flag = {self.plan.variants.flag: variant} if variant else {}
        shape = dict(bound.sizes)
        decision = decide(self.plan.family, self.entry, self.plan.target.name, case.op, shape, options, flag)
        values = {**shape, **bound.strides, **case.arguments}
        self._launch(decision, case.op, values, order)
        case.check()
        return Call(tuple(launch.symbol for launch in decision.launches), frozenset(self._row_paths(decision, case)))

    def _launch(self, decision: Decision, op: str, values: Mapping[str, Any], order: str) -> None:
        layout: ParamsLayout = self.plan.op(op).params
        packed = {field.name: _host_value(values.get(field.name, 0)) for field in layout.fields}
        for launch in decision.launches:
            if 0 in launch.grid:
                continue
            result = self.program.launch(
                launch.symbol,
                layout,
                packed,
                launch.grid,
                launch.block,
                cluster=launch.cluster,
                order=order,
                shared_limit=int(str(self.plan.target["shared.static"])),
            )
            result.raise_errors()

    def _row_paths(self, decision: Decision, case: Case) -> Iterator[tuple[str, str]]:
        """Which branch each row took, from the predicates the kernel evaluates."""
        for launch in decision.launches:
            kernel = self.entry["kernels"][launch.kernel]
            for row in case.rows:
                names = {**self.plan.constants, **launch.tile, **decision.shape, **row}
                taken = next(path for path in kernel["row_paths"] if evaluate_json(path["prefer"]["tree"], names))
                yield launch.symbol, taken["name"]


def _host_value(value: Any) -> Any:
    if value is None:
        return 0
    if not hasattr(value, "numpy"):
        return value
    integers = _AS_INTEGERS.get(str(value.dtype))
    if integers is not None:
        import torch

        value = value.view(getattr(torch, integers))
    return value.numpy()


def problem_of(family: SimtFamily, case: Case, *, variant: str = "", order: str = "ascending") -> str:
    """Why a case fails, or an empty string."""
    try:
        family.run(case, variant=variant, order=order)
    except (VerifyError, EmulationError) as error:
        return f"{case.name}: {error}"
    return ""
