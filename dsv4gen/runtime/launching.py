"""From a decision to launches a driver takes: kernels loaded on a device, configurations per shape and stream.

A `DeviceKernels` is one family on one device. It loads a kernel when a shape first needs it, unless a graph is
being captured: then it says what to prewarm, before anything touches the device.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from dsv4gen.base.errors import ArgumentError, CaptureError
from dsv4gen.base.expression_json import evaluate_json
from dsv4gen.base.runtime_facts import RUNTIME_FACTS
from dsv4gen.runtime.call_table import CallTable
from dsv4gen.runtime.dispatch import Decision, PlannedLaunch, choose_variant, decide, with_facts
from dsv4gen.runtime.driver import Driver
from dsv4gen.runtime.launch_config import LaunchConfig, Shape
from dsv4gen.runtime.objects import CodeObject, KernelSource
from dsv4gen.runtime.platform import Platform

_log = logging.getLogger("dsv4gen")


class Prepared(NamedTuple):
    """What a call with known sizes on a known stream does: `launches` holds (configuration, function handle) pairs.

    A configuration is what the launch call takes: an address, or a tuple for drivers without the extended call.
    `keep` holds the memory behind the addresses; `needs` is bytes per workspace.
    """

    launches: tuple[tuple[Any, int], ...]
    needs: tuple[int, ...]
    names: tuple[str, ...]
    path: str
    keep: tuple[LaunchConfig, ...]

    def refuse_workspaces(self, *given: int) -> None:
        """Raise for workspaces that are too small or missing.

        Raises:
            ArgumentError: names each with its size and the size needed.
        """
        short = [
            f"{name} has {size} bytes, {need} are needed"
            for name, size, need in zip(self.names, given, self.needs, strict=True)
            if need > size
        ]
        raise ArgumentError(
            f"path {self.path} works in memory of the caller: {'; '.join(short)}",
            remedy="workspace_bytes(...) of the loaded op gives the size for a shape, make_workspaces(...) the memory, "
            "zeroed; pass one to every call on the same stream",
        )


class LaunchCall(NamedTuple):
    """The driver's launch function in one form, `(configuration, function, parameters, None) -> status`; `function` is
    the C function itself."""

    call: Callable[[Any, int, int, None], int]
    function: Callable[..., int]
    extended: bool

    @classmethod
    def of(cls, driver: Driver) -> LaunchCall:
        """The extended call where the driver has it, else the plain one behind the same arguments."""
        function, extended = driver.launcher()
        if extended:
            return cls(function, function, True)
        return cls(
            lambda config, kernel, parameters, extra: function(kernel, *config, parameters, extra), function, False
        )


class DeviceKernels:
    """The kernels of one family, with chosen options, on one device."""

    def __init__(
        self,
        source: KernelSource,
        entry: Mapping[str, Any],
        target: str,
        options: Mapping[str, str],
        environ: Mapping[str, str],
        device: int,
        facts: Mapping[str, int],
        driver: Driver,
        platform: Platform,
    ) -> None:
        self.target = target
        self._source = source
        self._entry = entry
        self._options = options
        self._environ = environ
        self._device = device
        self._facts = facts
        self._driver = driver
        self._platform = platform
        self._functions: dict[str, int] = {}
        self._disabled: dict[str, str] = {}
        self._allowed: set[tuple[str, int, int]] = set()
        self._probed: dict[tuple[str, int], int] = {}
        self._extended = LaunchCall.of(driver).extended

    def decide(self, op: str, sizes: Mapping[str, int]) -> Decision:
        """Path, tiles and symbols, with what this device turned out not to take left out."""
        known = with_facts(self._entry, op, sizes, self._facts)
        return decide(
            self._source.family, self._entry, self.target, op, known, self._options, self._environ, self._disabled
        )

    def prepare(self, table: CallTable, sizes: Mapping[str, int], stream: int) -> Prepared:
        """Launches for these sizes; grids without blocks are left out, so an empty batch launches nothing.

        Raises:
            CaptureError: a kernel would have to be loaded while a graph is captured.
        """
        decision = self._feasible(table.op, sizes)
        configs: list[LaunchConfig] = []
        launches: list[tuple[Any, int]] = []
        for launch in decision.launches:
            if 0 in launch.grid:
                continue
            function = self._function(launch, decision)
            shape = _shape(launch)
            if self._extended:
                configs.append(LaunchConfig(shape, stream))
                launches.append((configs[-1].address, function))
            else:
                launches.append(((*shape.grid, *shape.block, shape.shared_bytes, stream), function))
        return Prepared(
            launches=tuple(launches),
            needs=workspace_bytes(table, decision),
            names=tuple(rule.name for rule in table.workspaces),
            path=decision.path,
            keep=tuple(configs),
        )

    def load_all(self, op: str, shapes: Sequence[Mapping[str, int]]) -> None:
        """Load what calls with these sizes need, or, without sizes, every kernel the options reach.

        Kernels that are not cached compile side by side; the compiler does not hold Python's lock.
        """
        decisions = [self.decide(op, sizes) for sizes in shapes]
        symbols = [launch.symbol for decision in decisions for launch in decision.launches]
        missing = [name for name in dict.fromkeys(symbols or self._reachable(op)) if name not in self._functions]
        if missing:
            self._refuse_capture(missing[0], decisions[0] if decisions else None)
            workers = min(len(missing), os.cpu_count() or 1)
            with ThreadPoolExecutor(workers, thread_name_prefix="dsv4gen-compile") as pool:
                for symbol, code in zip(missing, pool.map(self._source.get, missing), strict=True):
                    self._functions[symbol] = self._loaded(symbol, code)
        for sizes in shapes:
            self._feasible(op, sizes)

    def _reachable(self, op: str) -> Iterator[str]:
        variant, _ = choose_variant(self._entry, self._environ)
        for path in self._entry["ops"][op]["paths"]:
            if path["rejected"] is None and path["variant"] in ("", variant):
                for launch in path["launches"]:
                    for instance in self._entry["kernels"][launch["kernel"]]["instances"]:
                        if all(self._options[name] == value for name, value in instance["options"].items()):
                            yield str(instance["symbol"])

    def _feasible(self, op: str, sizes: Mapping[str, int]) -> Decision:
        """The first decision whose clusters this device can hold at all."""
        while True:
            decision = self.decide(op, sizes)
            misfit = next((launch for launch in decision.launches if not self._fits(launch, decision)), None)
            if misfit is None:
                return decision
            reason = f"no cluster of {misfit.cluster} blocks of {misfit.symbol} fits, by the driver's count"
            _log.warning("%s: path %s is switched off: %s", self._source.family, decision.path, reason)
            self._disabled[decision.path] = f"not on this device: {reason}"

    def _fits(self, launch: PlannedLaunch, decision: Decision) -> bool:
        if launch.cluster == 1 or 0 in launch.grid:
            return True
        if not self._extended:
            return False
        key = (launch.symbol, launch.cluster)
        if key not in self._probed:
            function = self._function(launch, decision)
            config = LaunchConfig(_shape(launch), 0)
            self._probed[key] = self._driver.active_clusters(self._device, function, config.address)
        return self._probed[key] > 0

    def _function(self, launch: PlannedLaunch, decision: Decision) -> int:
        """The kernel's handle, loaded and allowed what this launch needs."""
        symbol = launch.symbol
        if symbol not in self._functions:
            self._refuse_capture(symbol, decision)
            self._functions[symbol] = self._loaded(symbol, self._source.get(symbol))
        function = self._functions[symbol]
        if (symbol, launch.shared_bytes, launch.cluster) not in self._allowed:
            self._driver.allow(self._device, function, shared_bytes=launch.shared_bytes, cluster=launch.cluster)
            self._allowed.add((symbol, launch.shared_bytes, launch.cluster))
        return function

    def _loaded(self, symbol: str, code: CodeObject) -> int:
        what = f"{symbol} ({code.origin}, for {self._source.arch})"
        _log.info("%s in %.1f ms", what, code.seconds * 1e3)
        return self._driver.function(self._driver.load_module(self._device, code.binary, what), symbol)

    def _refuse_capture(self, symbol: str, decision: Decision | None) -> None:
        if self._platform.is_capturing():
            raise CaptureError(
                f"{symbol} is not loaded yet, and loading would break the graph capture in progress",
                remedy=f"before the capture, call {_prewarm_call(self._source.family, self._device, decision)}",
            )


def workspace_bytes(table: CallTable, decision: Decision) -> tuple[int, ...]:
    """Bytes of each workspace that a decision's path needs; 0 for those it does not use."""
    names = {**table.constants, **decision.shape}
    return tuple(
        int(evaluate_json(rule.bytes, names)) if decision.path in rule.paths else 0 for rule in table.workspaces
    )


def _shape(launch: PlannedLaunch) -> Shape:
    return Shape(launch.grid, (launch.block, 1, 1), launch.shared_bytes, launch.cluster, launch.dependent)


def _prewarm_call(family: str, device: int, decision: Decision | None) -> str:
    """The call that would have prevented a CaptureError, ready to paste."""
    options = "".join(f", {name}={value!r}" for name, value in (decision.options if decision else {}).items())
    sizes = decision.shape if decision else {}
    shape = ", ".join(f"{name}={value}" for name, value in sizes.items() if name not in RUNTIME_FACTS)
    return f"dsv4gen.prewarm({family!r}, device={device}{options}, shapes=[dict({shape})])"
