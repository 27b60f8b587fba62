"""Launches on the SIMT host build."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsv4gen.base.choices import with_choices
from dsv4gen.base.params import ParamsLayout
from dsv4gen.emulate.simt import SimtProgram
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.render import render_source
from dsv4gen.runtime.dispatch import PlannedLaunch
from dsv4gen.runtime.sources import slice_source
from dsv4gen.verify.oracle import FamilyOracle

#: dtypes numpy lacks travel as integers of the same size
_AS_INTEGERS = {"torch.bfloat16": "int16", "torch.bool": "uint8"}


class SimtFamily(FamilyOracle):
    """One family on the host build of one wave size."""

    def __init__(self, plan: FamilyPlan, wave: int, mutations: frozenset[str] = frozenset()) -> None:
        super().__init__(plan)
        self.file = render_source(plan, "simt", wave=wave, mutations=mutations)
        self.program = SimtProgram.build(self.file.text, wave=wave, source_map=self.file.source_map)
        self._chosen: dict[str, SimtProgram] = {}

    @property
    def name(self) -> str:
        """The oracle and its wave."""
        return f"SIMT wave {self.program.wave}"

    def _program(self, symbol: str) -> SimtProgram:
        """The kernel with the case's options: of the whole file, or on its own where it has other choices."""
        text = with_choices(self.file.text, self.options)
        if text == self.file.text:
            return self.program
        part = slice_source(self.file.name, text, [symbol]).text
        if part not in self._chosen:
            self._chosen[part] = SimtProgram.build(part, wave=self.program.wave)
        return self._chosen[part]

    def launch(self, launch: PlannedLaunch, layout: ParamsLayout, values: Mapping[str, Any], order: str) -> None:
        """Execute one launch.

        Raises:
            EmulationError: the kernel misbehaved.
        """
        result = self._program(launch.symbol).launch(
            launch.symbol,
            layout,
            {name: _host_value(value) for name, value in values.items()},
            launch.grid,
            launch.block,
            cluster=launch.cluster,
            order=order,
            shared_limit=int(str(self.plan.target["shared.static"])),
        )
        result.raise_errors()


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
