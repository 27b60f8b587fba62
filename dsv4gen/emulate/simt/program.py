"""Generated C++ text as a program for this machine: built once, launched as often as wanted.

    program = SimtProgram.build(text, wave=64)
    result = program.launch("topk_indices_t512", layout, {"scores": scores, "out": out, "k": 512}, grid=2, block=512)
    assert not result.errors

Arrays are copied to the launch's own memory and back (see `memory_file`), so a wild kernel cannot reach the
caller's process.
"""

from __future__ import annotations

import re
import signal
import struct
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dsv4gen.base.errors import EmulationError, UsageError
from dsv4gen.base.params import ParamsLayout
from dsv4gen.emulate.simt import memory_file
from dsv4gen.emulate.simt.findings import FINDING, Finding
from dsv4gen.emulate.simt.memory_file import Array, Placed
from dsv4gen.emulate.simt.worker import Worker, build_worker
from dsv4gen.toolchain.diagnostics import SourceMap
from dsv4gen.toolchain.host import HostCompiler, compile_shared, host_compiler

Value = Array | int | float
Shape = int | tuple[int, ...]

#: Optimisation, but none that copies code: a vote in two places would look divergent.
PROGRAM_FLAGS = (
    "-O1",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-strict-aliasing",
    "-ffp-contract=off",
    "-fvisibility=hidden",
    "-Wno-attributes",
)
GCC_FLAGS = ("-fno-thread-jumps", "-fno-tree-dominator-opts", "-fno-reorder-blocks", "-fno-tree-ch")

_SYMBOL_BYTES, _PARAMS_BYTES, _MAX_REGIONS, _MAX_FINDINGS = 256, 4096, 128, 32
_HEAD = struct.Struct(f"<{_SYMBOL_BYTES}s12IQ{_PARAMS_BYTES}s")
_REGION = struct.Struct("<3Q2I")
_REQUEST_BYTES = _HEAD.size + _MAX_REGIONS * _REGION.size
_REPORT_HEAD = struct.Struct("<2I6Q")
_REPORT_BYTES = _REPORT_HEAD.size + _MAX_FINDINGS * FINDING.size
_COUNTERS = ("blocks", "switches", "collectives", "block_barriers", "cluster_barriers", "shared_bytes")
_ORDERS = {"ascending": 0, "descending": 1, "random": 2}
_ORDER = re.compile(r"(ascending|descending|random):?(\d*)")
_LARGEST_SHARED = (1 << 20) - 8192
_LARGEST_CLUSTER = 16


@dataclass(frozen=True)
class SimtResult:
    """What a launch did wrong, one line each, and what it did, in numbers."""

    errors: tuple[str, ...]
    counters: dict[str, int]

    def raise_errors(self) -> None:
        """Raise what was found.

        Raises:
            EmulationError: any finding.
        """
        if self.errors:
            raise EmulationError("\n".join(self.errors))


@dataclass
class SimtProgram:
    """A compiled text; `wave` is the hardware wave it was rendered for. Launches of one program take turns."""

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
        flags = (*PROGRAM_FLAGS, *(GCC_FLAGS if chosen.kind == "g++" else ()))
        library = compile_shared(text, flags, name="program", compiler=chosen, source_map=source_map)
        program = cls(library, build_worker(chosen, extra_flags=worker_flags), wave)
        if program._running().wave != wave:
            raise UsageError(f"the text was rendered for a wave of {program._running().wave} lanes, not {wave}")
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
            values: one per member of `layout`; pointers as numpy arrays (or 0 for null), else numbers. An array
                that is not writeable is read-only memory for the kernel.
            grid: blocks, as x or (x, y) or (x, y, z); `cluster` likewise, it must divide the grid.
            block: threads per block.
            order: of lanes, waves and blocks: `ascending`, `descending`, `random:SEED`.
            shared_limit: bytes of shared memory a block may declare.

        Raises:
            EmulationError: the kernel crashed or did not end in time; arrays hold what it had written by then.
            UsageError, ArgumentError: a launch that cannot be made.
        """
        with self._lock:
            worker = self._running()
            arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
            regions = memory_file.place(arrays, -(-(_REQUEST_BYTES + _REPORT_BYTES) // memory_file.PAGE) * memory_file.PAGE)
            head = _request(symbol, grid, block, cluster, order, shared_limit, len(regions))
            params = layout.pack({name: _pack_value(value, regions) for name, value in values.items()})
            _write_request(worker, head, params, regions)
            ended_by = worker.launch(timeout_s)
            result = self._collect(worker, symbol, regions)
            if ended_by is not None or result.errors:
                self._drop_worker()
        if ended_by is not None:
            name = signal.Signals(ended_by).name
            what = f"did not end within {timeout_s:g} s" if ended_by == signal.SIGTERM else f"was killed by {name}"
            raise EmulationError("\n".join((f"kernel {symbol} {what}", *result.errors)))
        return result

    def close(self) -> None:
        """End the worker; a later launch starts another."""
        with self._lock:
            self._drop_worker()

    def _running(self) -> Worker:
        if self._worker is None:
            self._worker = Worker(self.executable, self.library, _REQUEST_BYTES, _REPORT_BYTES)
            weakref.finalize(self, self._worker.close)
        return self._worker

    def _drop_worker(self) -> None:
        """A kernel that misbehaved may have left anything behind in its worker."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def _collect(self, worker: Worker, symbol: str, regions: tuple[Placed, ...]) -> SimtResult:
        raw = worker.memory[_REQUEST_BYTES : _REQUEST_BYTES + _REPORT_BYTES].tobytes()
        count, _, *numbers = _REPORT_HEAD.unpack_from(raw)
        starts = (_REPORT_HEAD.size + index * FINDING.size for index in range(count))
        findings = [Finding.read(raw[start : start + FINDING.size]) for start in starts]
        errors = [finding.text(symbol, regions) for finding in findings]
        for region in regions:
            offset = memory_file.overwritten_poison(region, worker.memory)
            if offset is not None:
                name = " / ".join(region.names)
                errors.append(f"kernel {symbol}: wrote outside of array {name}, at byte {offset} of {region.size}")
            memory_file.copy_out(region, worker.memory)
        return SimtResult(tuple(errors), dict(zip(_COUNTERS, numbers, strict=True)))


def _request(
    symbol: str, grid: Shape, block: int, cluster: Shape, order: str, shared_limit: int, region_count: int
) -> tuple[object, ...]:
    """The request's head up to the parameters, checked."""
    blocks, cluster_shape = _three(grid), _three(cluster)
    matched = _ORDER.fullmatch(order)
    cluster_blocks = cluster_shape[0] * cluster_shape[1] * cluster_shape[2]
    if matched is None:
        raise UsageError(f"order {order!r} is not ascending, descending or random:SEED")
    if not 1 <= block <= 1024:
        raise UsageError(f"a block has 1 to 1024 threads, not {block}")
    if cluster_blocks > _LARGEST_CLUSTER or any(b % c for b, c in zip(blocks, cluster_shape, strict=True)):
        raise UsageError(f"clusters of {cluster_shape} blocks (at most {_LARGEST_CLUSTER}) must divide the grid {blocks}")
    if not 0 <= shared_limit <= _LARGEST_SHARED:
        raise UsageError(f"a shared memory limit of {shared_limit} bytes is above what is emulated")
    if region_count > _MAX_REGIONS or len(symbol.encode()) >= _SYMBOL_BYTES:
        raise UsageError("too many arrays, or too long a symbol")
    seed = int(matched[2] or 0) & 0xFFFFFFFF
    return (symbol.encode(), *blocks, block, 1, 1, *cluster_shape, _ORDERS[matched[1]], seed, region_count, shared_limit)


def _write_request(worker: Worker, head: tuple[object, ...], params: bytes, regions: tuple[Placed, ...]) -> None:
    end = max((region.file_offset + region.page_bytes for region in regions), default=0)
    worker.grow(end)
    raw = bytearray(_REQUEST_BYTES)
    _HEAD.pack_into(raw, 0, *head, params)
    for index, region in enumerate(regions):
        start = _HEAD.size + index * _REGION.size
        numbers = (region.page_address, region.file_offset, region.page_bytes, region.writable, 0)
        _REGION.pack_into(raw, start, *numbers)
        memory_file.copy_in(region, worker.memory)
    worker.memory[:_REQUEST_BYTES] = np.frombuffer(raw, np.uint8)


def _pack_value(value: Value, regions: tuple[Placed, ...]) -> int | float:
    if not isinstance(value, np.ndarray):
        return value
    start = int(value.__array_interface__["data"][0])
    low, _ = memory_file.span(value)
    return next(region.translate(start) for region in regions if region.low <= low <= region.high)


def _three(shape: Shape) -> tuple[int, int, int]:
    extents = (shape,) if isinstance(shape, int) else shape
    x, y, z = (*extents, 1, 1, 1)[:3]
    if len(extents) > 3 or min(x, y, z) < 1:
        raise UsageError(f"{shape} is not a shape of blocks")
    return x, y, z
