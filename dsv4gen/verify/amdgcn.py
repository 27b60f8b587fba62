"""Launches of compiled AMD machine code on the emulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsv4gen.base.choices import with_choices
from dsv4gen.base.errors import EmulationError
from dsv4gen.base.params import ParamsLayout
from dsv4gen.emulate.amdgcn import HostBuffer, Kernel, Result
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.render import render_source
from dsv4gen.runtime.dispatch import PlannedLaunch
from dsv4gen.runtime.sources import blank_others
from dsv4gen.target import TargetRecord
from dsv4gen.toolchain import LINE_TABLES, compile_source
from dsv4gen.verify.oracle import FamilyOracle
from dsv4gen.verify.outcome import MACHINE_CODE


class AmdgcnFamily(FamilyOracle):
    """One family compiled for an AMD target and executed instruction by instruction; `results` has every launch."""

    def __init__(
        self,
        plan: FamilyPlan,
        record: TargetRecord,
        mutations: frozenset[str] = frozenset(),
        *,
        together: bool = False,
    ) -> None:
        """Render the family.

        Args:
            together: compile all kernels at once and now, which pays where most of them are run; else each one when it
                is first launched.

        Raises:
            ToolMissing, CompileError: from here or from a launch.
        """
        super().__init__(plan)
        self.file = render_source(plan, mutations=mutations)
        self.record = record
        self.results: list[tuple[PlannedLaunch, Result]] = []
        self._together = together
        self._assembly: dict[str, str] = {}
        self._kernels: dict[tuple[str, str], Kernel] = {}
        if together:
            self._compile(self.file.text)

    @property
    def name(self) -> str:
        """The oracle's name in tables."""
        return MACHINE_CODE

    def launch(self, launch: PlannedLaunch, layout: ParamsLayout, values: Mapping[str, Any], order: str) -> None:
        """Execute one launch.

        Raises:
            EmulationError: out of bounds, a race, a divergent barrier, an exhausted budget; with place and wave.
        """
        text = with_choices(self.file.text, self.options)
        kernel = self._kernels.get((text, launch.symbol))
        if kernel is None:
            part = text if self._together else blank_others(self.file.name, text, [launch.symbol])
            kernel = self._kernels[text, launch.symbol] = Kernel.from_assembly(self._compile(part), launch.symbol)
        packed = layout.pack({name: _number(value) for name, value in values.items()})
        buffers = [_buffer(name, value) for name, value in values.items() if hasattr(value, "data_ptr")]
        result = kernel.run(launch.grid, launch.block, packed, buffers=buffers, lds=launch.shared_bytes, order=order)
        self.results.append((launch, result))
        if result.problems:
            raise EmulationError(
                f"{launch.symbol}: " + "\n".join(map(self.file.source_map.with_template_lines, result.problems))
            )

    def _compile(self, text: str) -> str:
        """The assembly of the file, of one of its kernels or with other choices: lines have the same numbers."""
        if text not in self._assembly:
            flags, origins = (LINE_TABLES,), self.file.source_map
            code = compile_source(text, self.record, name=self.plan.family, source_map=origins, flags=flags)
            self._assembly[text] = code.assembly or ""
        return self._assembly[text]


def _number(value: Any) -> int | float:
    if value is None:
        return 0
    return int(value.data_ptr()) if hasattr(value, "data_ptr") else value


def _buffer(name: str, tensor: Any) -> HostBuffer:
    """The bytes from a tensor's first element to its last, whatever its strides."""
    steps = ((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    elements = 0 if 0 in tensor.shape else 1 + sum(steps)
    return HostBuffer(int(tensor.data_ptr()), elements * tensor.element_size(), True, name)
