"""Runs HIP/CUDA families through the driver: one function per op, kernels per device loaded on demand."""

from __future__ import annotations

import ctypes
import functools
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dsv4gen.base.choices import with_choices
from dsv4gen.base.errors import LoadError
from dsv4gen.base.manifest import require_intact
from dsv4gen.base.target_id import parse, runs_on
from dsv4gen.runtime import arguments, native, specialise
from dsv4gen.runtime.backend import Function, Sizes, make_outputs
from dsv4gen.runtime.cache import Cache
from dsv4gen.runtime.call_table import CallTable
from dsv4gen.runtime.dispatch import Decision, decide, with_dies, with_facts
from dsv4gen.runtime.driver import Driver
from dsv4gen.runtime.driver_launch import DriverLaunch, packers
from dsv4gen.runtime.launching import DeviceKernels, LaunchCall, Prepared, workspace_bytes
from dsv4gen.runtime.objects import KernelSource
from dsv4gen.runtime.platform import Platform, facts
from dsv4gen.runtime.selection import Accepted, own_architecture

#: shapes and streams remembered per op; beyond that all are forgotten, which costs each one slow call
DECISIONS_MAX = 4096
_SUFFIX = {"cuda": "cu", "hip": "hip"}


@functools.lru_cache(maxsize=2)
def shared_driver(api: str) -> Driver:
    """The process's driver for one API."""
    return Driver.open(api)


@dataclass
class DriverBackend:
    """One HIP/CUDA family with chosen options on every device that its folder, or a sibling of it, serves.

    `choose` finds the folder for a device of another kind than the first; None when the user named a target.
    """

    family: str
    accepted: Accepted
    options: Mapping[str, str]
    platform: Platform
    choose: Callable[[int], Accepted] | None = None
    cache_dir: Path | None = None
    open_driver: Callable[[str], Driver] = shared_driver

    def __post_init__(self) -> None:
        self.target = self.accepted.target
        self.entry = self.accepted.manifest.families[self.family]
        flag = self.entry["variants"]["flag"]
        self._environ = {flag: os.environ[flag]} if flag in os.environ else {}
        self._on_device: dict[int, DeviceKernels] = {}

    @property
    def api(self) -> str:
        """`cuda` or `hip`."""
        return str(self.accepted.manifest.target["api"])

    def decide(self, op: str, sizes: Sizes) -> Decision:
        """The decision on the first device in use, or by the manifest alone while there is none."""
        for kernels in self._on_device.values():
            return kernels.decide(op, sizes)
        here = with_dies(self.accepted.manifest.target, facts(self.platform))
        known = with_facts(self.entry, op, sizes, here)
        return decide(self.family, self.entry, self.target, op, known, self.options, self._environ)

    def workspace_bytes(self, table: CallTable, sizes: Sizes) -> dict[str, int]:
        """Bytes per workspace of the path that these sizes take."""
        needs = workspace_bytes(table, self.decide(table.op, sizes))
        return {rule.name: need for rule, need in zip(table.workspaces, needs, strict=True)}

    def prewarm(self, table: CallTable, shapes: Sequence[Sizes]) -> None:
        """Compile and load on the current device; kernels compile side by side."""
        device = self.platform.current_index()
        with self.platform.on_device(device):
            self.kernels(device).load_all(table.op, shapes)

    def kernels(self, device: int) -> DeviceKernels:
        """The kernels on one device.

        Raises:
            LoadError: the device is of a kind that the target does not serve.
        """
        if device not in self._on_device:
            accepted = self._accepted_for(device)
            require_intact(accepted.manifest, accepted.folder)
            driver = self.open_driver(self.api)
            self._on_device[device] = DeviceKernels(
                source=kernel_source(
                    self.family, accepted, Cache.open(self.cache_dir), driver.version[0], self.options
                ),
                entry=accepted.manifest.families[self.family],
                target=accepted.target,
                options=self.options,
                environ=self._environ,
                device=max(device, 0),
                facts=with_dies(accepted.manifest.target, facts(self.platform, device)),
                driver=driver,
                platform=self.platform,
            )
        return self._on_device[device]

    def function(self, table: CallTable, *, checked: bool) -> Function:
        """The launch function written for the op's tensor table."""
        driver = self.open_driver(self.api)
        call = LaunchCall.of(driver)
        failed = _after_failure(driver, call, table.title)
        on_cuda = self.platform.tensors_are_cuda
        current, stream = self.platform.index_getter(), self.platform.stream_getter()

        def elsewhere(device: int, **values: Any) -> Any:
            with self.platform.on_device(device):
                return function(**values)

        names: dict[str, Any] = {
            **packers(table),
            **self._deciding(table),
            **_slots(table),
            "_stream": stream,
            "_current": current,
            "_recheck": lambda **values: arguments.check(table, values, on_cuda),
            "_make_outputs": lambda **values: function(**make_outputs(table, values)),
            "_elsewhere": elsewhere,
            "_launch": call.call,
            "_failed": failed,
        }
        function = specialise.make_function(
            table,
            DriverLaunch(table),
            checked=checked,
            on_cuda=on_cuda,
            many_devices=current is not None,
            names=names,
            native=native.make_calls(table, call.function, call.extended, checked, stream, current, failed),
        )
        return function

    def _deciding(self, table: CallTable) -> dict[str, Any]:
        """Names of the launch function's text: decisions that are remembered, and how one is made."""
        decisions: dict[tuple[int, ...], Prepared] = {}

        def prepare(stream: int, device: int, key: tuple[int, ...], sizes: Sizes) -> Prepared:
            prepared = self.kernels(device).prepare(table, sizes, stream)
            if len(decisions) >= DECISIONS_MAX:
                decisions.clear()
            decisions[key] = prepared
            return prepared

        return {"_decisions": decisions, "_prepare": prepare}

    def _accepted_for(self, device: int) -> Accepted:
        found = next((entry for entry in self.platform.devices() if entry.index == device), None)
        if found is None:
            raise LoadError(
                f"{self.family} was called with tensors that are on no GPU", remedy=self.platform.why_no_device()
            )
        if found.target is None:
            raise LoadError(f"{found}: {found.problem}")
        code = parse(self.accepted.arch)
        if found.target.arch in {parse(name).arch for name in self.accepted.manifest.target["also"]}:
            return Accepted(
                self.target,
                self.accepted.folder,
                self.accepted.manifest,
                own_architecture(self.accepted.arch, found.target),
            )
        if runs_on(code, found.target):
            return self.accepted
        if self.choose is not None:
            return self.choose(device)
        raise LoadError(
            f"{self.family} was loaded for {self.target}, whose code ({self.accepted.arch}) does not run on {found}",
            remedy="load it without target=..., which takes the device's own",
        )


def kernel_source(
    family: str,
    accepted: Accepted,
    cache: Cache,
    driver_major: int | None,
    options: Mapping[str, str] = MappingProxyType({}),
) -> KernelSource:
    """The family's source file with the chosen options, ready to be compiled.

    Raises:
        LoadError: the file cannot be read.
    """
    api = accepted.manifest.target["api"]
    name = f"{family}.{_SUFFIX[api]}"
    try:
        text = (accepted.folder / name).read_text(encoding="utf-8")
    except OSError as error:
        raise LoadError(f"cannot read {accepted.folder / name}: {error.strerror or error}") from error
    chosen = with_choices(text, options)
    return KernelSource(
        family=family,
        folder=accepted.folder,
        name=name,
        text=chosen,
        digest=accepted.manifest.outputs[name],
        api=api,
        arch=accepted.arch,
        cache=cache,
        newest_major=driver_major,
        ahead=chosen == text,
    )


def _after_failure(driver: Driver, call: LaunchCall, title: str) -> Callable[[int, int, Any, int, int], None]:
    """What to do with a launch's status that is not 0: a second try where only the context was lost, else an error."""

    def failed(status: int, device: int, config: Any, kernel: int, parameters: int) -> None:
        if driver.lost_context(status):
            driver.make_current(max(device, 0))
            status = call.call(config, kernel, parameters, None)
        if status:
            raise driver.error(status, f"launching {title}")

    return failed


def _slots(table: CallTable) -> dict[str, Any]:
    """Names of the launch function's text: memory for calls in flight, and how it is filled."""
    return {
        "_free": [],
        "_new_slot": lambda: _new_slot(bytes(table.size)),
        "_copied_slot": lambda packed: _new_slot(packed[: table.size]),
        "_pack": struct.Struct(table.format).pack_into,
        "_pack_error": struct.error,
    }


def _new_slot(params: bytes) -> tuple[Any, int]:
    """Memory for one call in flight: Params, then the one-entry pointer list that points at it."""
    start = -(-len(params) // 8) * 8
    buffer = ctypes.create_string_buffer(params, start + 8)
    address = ctypes.addressof(buffer)
    struct.pack_into("<Q", buffer, start, address)
    return buffer, address + start
