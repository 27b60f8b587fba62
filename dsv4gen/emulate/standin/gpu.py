"""The device behind the stand-in driver: modules, kernels, launches. A launch runs to its end before the call returns.

Misbehaviour of a kernel is `hipErrorLaunchFailure`, at the launch that misbehaved, and `hipGetErrorString` tells what
the emulator saw. The real driver says no more than its number, and often only at a later call.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from dsv4gen.base.errors import ArgumentError
from dsv4gen.base.target_id import parse
from dsv4gen.emulate.amdgcn import Kernel, Result
from dsv4gen.emulate.standin import libraries
from dsv4gen.emulate.standin.images import Image, kernel, load_image
from dsv4gen.emulate.standin.memory import buffers_behind, words
from dsv4gen.emulate.standin.status import (
    INVALID_HANDLE,
    INVALID_VALUE,
    LAUNCH_FAILURE,
    NOT_FOUND,
    SUCCESS,
    UNKNOWN,
    HipFailure,
)

Dim = tuple[int, int, int]
#: first handle of modules and of functions; looks like an address, and no two handles are equal
_FIRST_HANDLE = 0x51A0_0000_0000
_HANDLE_STEP = 0x100


@dataclass(frozen=True)
class Launch:
    """One launch as the driver got it, and what the emulator made of it.

    `arguments` has the bytes of each kernel argument; `extended` tells `hipDrvLaunchKernelEx` from
    `hipModuleLaunchKernel`; `buffers` names the memory the kernel was given.
    """

    symbol: str
    grid: Dim
    block: Dim
    shared_bytes: int
    stream: int
    extended: bool
    arguments: tuple[bytes, ...]
    buffers: tuple[str, ...]
    result: Result


class Gpu:
    """One emulated GPU whose memory is this process's. Launches of several threads follow one another.

    Attributes:
        target: its architecture.
        order: of blocks and waves, as for `Kernel.run`; may be changed between launches.
        modules: code objects loaded so far.
        launches: everything launched so far, failed launches included.
        describe: makes the text of a failed launch from the kernel's name and what the emulator saw; whoever knows
            where sources come from may add it.
    """

    def __init__(self, target: str, *, order: str = "ascending") -> None:
        """Describe the device.

        Raises:
            UnknownTarget: not the name of one architecture.
        """
        self.target = parse(target)
        self.order = order
        self.modules: dict[int, Image] = {}
        self.launches: list[Launch] = []
        self.describe: Callable[[str, str], str] = lambda symbol, problems: f"{symbol}: {problems}"
        self._functions: dict[int, tuple[Image, str]] = {}
        self._handles = itertools.count(_FIRST_HANDLE, _HANDLE_STEP)
        self._lock = threading.Lock()
        self._library: ctypes.CDLL | None = None
        # ctypes does not keep what C calls back alive.
        self._device = libraries.DriverDevice(
            libraries.LOAD(self._load), libraries.FIND(self._find), libraries.LAUNCH(self._launch)
        )

    def connect(self, library: ctypes.CDLL) -> None:
        """Be the device of a stand-in driver."""
        self._library = library
        library.standin_connect(ctypes.byref(self._device))

    def disconnect(self) -> None:
        """Leave the driver without a device: every call of it fails from now on."""
        if self._library is not None:
            self._library.standin_connect(None)

    def _load(self, address: int, module: Any) -> int:
        return self._guarded(lambda: self._load_image(address, module))

    def _find(self, module: int, name: bytes, function: Any) -> int:
        return self._guarded(lambda: self._find_kernel(module, name.decode(), function))

    def _launch(self, launch: Any) -> int:
        frame = sys._getframe().f_back
        return self._guarded(lambda: self._run(launch.contents, frame))

    def _guarded(self, call: Callable[[], None]) -> int:
        """The status of a call; no exception may reach C, which would lose it."""
        try:
            call()
        except HipFailure as failure:
            return self._explain(failure.status, failure.text)
        except Exception:
            return self._explain(UNKNOWN, f"the stand-in failed:\n{traceback.format_exc()}")
        return SUCCESS

    def _explain(self, status: int, text: str) -> int:
        if self._library is not None:
            self._library.standin_explain(ctypes.c_int(status), text.encode())
        return status

    def _load_image(self, address: int, module: Any) -> None:
        image = load_image(address, self.target)
        handle = next(self._handles)
        self.modules[handle] = image
        module[0] = handle

    def _find_kernel(self, module: int, name: str, function: Any) -> None:
        image = self.modules.get(module)
        if image is None:
            raise HipFailure(INVALID_HANDLE, f"{module or 0:#x} is no loaded module")
        if name not in image.kernels:
            raise HipFailure(NOT_FOUND, f"no kernel {name!r} in the module; it has {', '.join(image.kernels)}")
        handle = next(self._handles)
        self._functions[handle] = image, name
        function[0] = handle

    def _run(self, launch: libraries.DriverLaunch, frame: FrameType | None) -> None:
        found = self._functions.get(launch.function or 0)
        if found is None:
            raise HipFailure(INVALID_HANDLE, f"{launch.function or 0:#x} is no kernel of a loaded module")
        image, symbol = found
        code = kernel(image.binary, symbol)
        arguments = _arguments(code, launch)
        buffers = buffers_behind(words(arguments), frame)
        grid, block, shared_bytes = _dim(launch.grid), _dim(launch.block), int(launch.shared_bytes)
        try:
            with self._lock:
                result = code.run(grid, block, arguments, buffers=buffers, lds=shared_bytes, order=self.order)
        except ArgumentError as error:
            raise HipFailure(INVALID_VALUE, f"{symbol}: {error}") from error
        names = tuple(buffer.name for buffer in buffers)
        stream, extended = int(launch.stream or 0), bool(launch.extended)
        self.launches.append(
            Launch(symbol, grid, block, shared_bytes, stream, extended, tuple(arguments), names, result)
        )
        if result.problems:
            raise HipFailure(LAUNCH_FAILURE, self.describe(symbol, "\n".join(result.problems)))


def _arguments(code: Kernel, launch: libraries.DriverLaunch) -> list[bytes]:
    """The bytes of each argument, whose sizes the code object's metadata has."""
    explicit = [argument for argument in code.program.descriptor.arguments if not argument.hidden]
    return [ctypes.string_at(launch.params[index] or 0, argument.size) for index, argument in enumerate(explicit)]


def _dim(values: Any) -> Dim:
    x, y, z = values
    return int(x), int(y), int(z)
