"""Generated C++ text as a program for this machine: built once, launched as often as wanted.

    program = SimtProgram.build(text, wave=64)
    result = program.launch("select_t512", layout, {"scores": scores, "out": out, "k": 64}, grid=2, block=512)
    assert not result.errors

Arrays are copied to the launch's own memory and back (see `memory_file`), so a wild kernel cannot reach the
caller's process. A worker whose kernel did anything wrong is replaced, because the kernel may have left
anything behind in it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dsv4gen.base.errors import EmulationError, UsageError
from dsv4gen.base.params import ParamsLayout
from dsv4gen.emulate.simt import memory_file, protocol
from dsv4gen.emulate.simt.memory_file import Array, Placed
from dsv4gen.emulate.simt.protocol import Geometry, Shape
from dsv4gen.emulate.simt.worker import Worker, build_worker
from dsv4gen.toolchain.diagnostics import SourceMap
from dsv4gen.toolchain.host import HostCompiler, compile_shared, host_compiler

Value = Array | int | float

FLAGS = (
    "-O1",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fvisibility=hidden",
    "-Wno-attributes",
)
# A vote compiled into two places would look divergent. Clang keeps it in one because the layer declares it
# convergent; g++ has no such attribute, so the passes that copy code (seen: jump threading) are off.
GCC_FLAGS = ("-fno-thread-jumps", "-fno-tree-dominator-opts", "-fno-reorder-blocks", "-fno-tree-ch")


@dataclass(frozen=True)
class SimtResult:
    """What a launch did wrong, one line each, and what it did, in numbers."""

    errors: tuple[str, ...]
    counters: dict[str, int]

    def raise_errors(self) -> None:
        """Raise what was found.

        Raises:
            EmulationError: the launch did something wrong.
        """
        if self.errors:
            raise EmulationError("\n".join(self.errors))


@dataclass(eq=False)
class SimtProgram:
    """A compiled text; `wave` is the hardware wave it was rendered for. Its launches take turns."""

    library: Path
    executable: Path
    wave: int
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _worker: Worker | None = field(default=None, repr=False)

    @classmethod
    def build(
        cls,
        text: str,
        *,
        wave: int,
        compiler: HostCompiler | None = None,
        source_map: SourceMap | None = None,
        worker_flags: tuple[str, ...] = (),
    ) -> SimtProgram:
        """Compile device layer (simt), body and entries; the same text is compiled once per cache.

        Args:
            text: the rendered file.
            wave: 32 or 64, the wave the text was rendered for.
            worker_flags: for the worker's own compilation; `-DSIMT_UCONTEXT` takes the portable fibers.

        Raises:
            CompileError, Problems: the text does not compile.
            UsageError: the text was rendered for another wave.
            ToolMissing: no host compiler.
        """
        chosen = compiler or host_compiler()
        flags = (*FLAGS, *GCC_FLAGS) if chosen.kind == "g++" else FLAGS
        library = compile_shared(text, flags, name="program", compiler=chosen, source_map=source_map)
        program = cls(library, build_worker(chosen, worker_flags), wave)
        rendered_for = program._running_worker().wave
        if rendered_for != wave:
            program.close()
            raise UsageError(f"the text was rendered for a wave of {rendered_for} lanes, not {wave}")
        return program

    def launch(
        self,
        symbol: str,
        layout: ParamsLayout,
        values: Mapping[str, Value],
        grid: Shape,
        block: int,
        *,
        cluster: Shape = 1,
        order: str = "ascending",
        shared_limit: int = 65536,
        timeout_s: float = 60.0,
    ) -> SimtResult:
        """Run one kernel to its end.

        Args:
            values: one per member of `layout`; pointers as numpy arrays or views (0 for null), else numbers.
                Arrays that are not writeable are read-only memory for the kernel.
            grid: blocks, as x or (x, y) or (x, y, z).
            block: threads per block.
            cluster: blocks per cluster, as `grid`; it must divide the grid.
            order: of lanes, waves and blocks: `ascending`, `descending`, `random:SEED`.
            shared_limit: bytes of shared memory a block may declare.

        Raises:
            EmulationError: the kernel crashed or did not end in time; arrays hold what it wrote until then.
            UsageError, ArgumentError: a launch that cannot be made.
        """
        geometry = Geometry.of(grid, block, cluster, order, shared_limit)
        regions = memory_file.place(_arrays(values), protocol.ARRAYS_OFFSET)
        params = layout.pack({name: _packed(value, regions) for name, value in values.items()})
        request = protocol.pack_request(symbol, geometry, params, regions)
        with self._lock:
            return self._run(symbol, request, regions, timeout_s)

    def close(self) -> None:
        """End the worker; a later launch starts another."""
        with self._lock:
            self._drop_worker()

    def _run(self, symbol: str, request: bytes, regions: tuple[Placed, ...], timeout_s: float) -> SimtResult:
        clean = False
        try:
            worker = self._running_worker()
            worker.write(request, regions)
            ended_by = worker.launch(timeout_s)
            result = _collect(worker, symbol, regions)
            clean = ended_by is None and not result.errors
        finally:
            if not clean:
                self._drop_worker()
        if ended_by is not None:
            raise EmulationError("\n".join((_death(symbol, ended_by, timeout_s), *result.errors)))
        return result

    def _running_worker(self) -> Worker:
        if self._worker is None or not self._worker.is_ours():
            self._worker = Worker(self.executable, self.library)
        return self._worker

    def _drop_worker(self) -> None:
        if self._worker is not None:
            self._worker.close()
            self._worker = None


def _arrays(values: Mapping[str, Value]) -> dict[str, Array]:
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def _packed(value: Value, regions: tuple[Placed, ...]) -> int | float:
    """A parameter's number: an array's first element becomes its address in the launch's memory."""
    if not isinstance(value, np.ndarray):
        return value
    first = memory_file.first_address(value)
    low, high = memory_file.span(value)
    return next(region.translate(first) for region in regions if region.low <= low and high <= region.high)


def _collect(worker: Worker, symbol: str, regions: tuple[Placed, ...]) -> SimtResult:
    """Read the report, look at the poison and bring the arrays back."""
    findings, counters = protocol.read_report(worker.report())
    errors = [finding.text(symbol, regions) for finding in findings]
    for region in regions:
        offset = memory_file.overwritten_poison(region, worker.memory)
        if offset is not None:
            where = f"byte {offset} of array {region.label}, which has {region.size} bytes"
            errors.append(f"kernel {symbol}: wrote at {where}")
        memory_file.copy_out(region, worker.memory)
    return SimtResult(tuple(errors), counters)


def _death(symbol: str, ended_by: int, timeout_s: float) -> str:
    if ended_by == signal.SIGTERM:
        return f"kernel {symbol} did not end within {timeout_s:g} s"
    return f"kernel {symbol} was killed by {signal.Signals(ended_by).name}"
