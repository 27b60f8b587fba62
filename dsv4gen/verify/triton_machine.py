"""Triton families as machine code of an AMD target: the module's own launchers, Triton's JIT, the emulator.

What must have run is what the module states it ships, `AHEAD_OF_TIME`: each kernel with its tile and mode. A launch
is one of these when its function, warps and constants are, whatever strides and numbers it was specialised for.
"""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from dsv4gen.base.errors import EmulationError
from dsv4gen.emulate.triton import EmulatedWorker, Launch
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.reference.case import Case
from dsv4gen.render.render import render_triton
from dsv4gen.target import TargetRecord
from dsv4gen.toolchain import TritonKernel
from dsv4gen.verify.outcome import MACHINE_CODE
from dsv4gen.verify.triton_requests import declared, labels, triton_requests

#: seconds that a call may take, compiles included
TIME_LIMIT_S = 300.0


class TritonMachine:
    """One Triton family on an emulated AMD target; a context that stops its worker.

    Attributes:
        file: the rendered module, with its source map.
        launches: what the last call launched.
        shipped: what the module states it compiles ahead of time.
    """

    name = MACHINE_CODE

    def __init__(
        self,
        plan: FamilyPlan,
        record: TargetRecord,
        mutations: frozenset[str] = frozenset(),
        *,
        lines: bool = False,
    ) -> None:
        self.plan = plan
        self.file = render_triton(plan, mutations)
        self._folder = tempfile.TemporaryDirectory(prefix="dsv4gen-emulate-")
        self._module = Path(self._folder.name) / self.file.name
        self._module.write_text(self.file.text, encoding="utf-8")
        self.shipped: Sequence[TritonKernel] = triton_requests(plan, self.file, self._module)
        target = record.compile.triton
        self._wave = target.wave
        self._worker = EmulatedWorker(str(target.arch), target.wave, lines=lines)

    def __enter__(self) -> TritonMachine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.close()
        self._folder.cleanup()

    @property
    def launches(self) -> tuple[Launch, ...]:
        """What the last call launched, a failed one included."""
        return self._worker.launches

    def run(self, case: Case, order: str = "ascending") -> tuple[Launch, ...]:
        """Execute a case and judge it.

        Raises:
            VerifyError: wrong results.
            EmulationError: a kernel misbehaved; with the template's lines.
            ArgumentError: the launcher refused the call.
        """
        self.call(case.op, case.arguments, order)
        case.check()
        return self.launches

    def call(self, op: str, arguments: Mapping[str, object], order: str = "ascending") -> None:
        """Execute one call of a launch function.

        Raises:
            EmulationError: a kernel misbehaved; with the template's lines.
            ArgumentError: the launcher refused the call.
        """
        self._worker.order = order
        try:
            self._worker.call(self._module, op, timeout_s=TIME_LIMIT_S, **cast(dict[str, Any], dict(arguments)))
        except EmulationError as error:
            raise EmulationError(
                self.file.source_map.with_template_lines(error.message), remedy=error.remedy
            ) from error

    def parameters(self, op: str) -> list[str]:
        """The parameters of a launch function."""
        function = next(f for f in self._functions() if f.name == op)
        return [parameter.arg for parameter in (*function.args.args, *function.args.kwonlyargs)]

    def function_at(self, line: int) -> str:
        """The function of the module that a line belongs to, or an empty string."""
        found = (f.name for f in self._functions() if f.lineno <= line <= (f.end_lineno or 0))
        return next(found, "")

    def _functions(self) -> Iterator[ast.FunctionDef]:
        return (node for node in ast.parse(self.file.text).body if isinstance(node, ast.FunctionDef))

    def labels(self) -> list[str]:
        """A name for each shipped combination."""
        return labels(self.shipped)

    def shipped_among(self, launches: Sequence[Launch]) -> Iterator[tuple[str, Launch]]:
        """The shipped combinations among launches, each with the first launch of it."""
        for kernel, label in zip(self.shipped, self.labels(), strict=True):
            found = next((launch for launch in launches if self._is(kernel, launch)), None)
            if found is not None:
                yield label, found

    def _is(self, kernel: TritonKernel, launch: Launch) -> bool:
        warps = int(kernel.options.get("num_warps", 4))
        return (
            kernel.function == launch.function
            and warps * self._wave == launch.block
            and all(launch.constants.get(name) == value for name, value in declared(kernel).items())
        )
