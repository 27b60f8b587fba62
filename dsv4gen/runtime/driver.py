"""The GPU driver through ctypes: CUDA's `cu*` and HIP's `hip*` calls, which map one to one for what is needed here.

A `Driver` belongs to one API; modules and functions are handles (plain integers). Launches do not go through this
class: a call takes `launcher()`, a C function with fixed argument types, and calls that.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from dsv4gen.base.errors import DriverError, ToolMissing
from dsv4gen.runtime import libraries

MAX_DYNAMIC_SHARED = 8
NON_PORTABLE_CLUSTER = 14
#: shared memory a CUDA kernel may use without opting in, and a cluster size every device takes
STATIC_SHARED_LIMIT = 48 * 1024
PORTABLE_CLUSTER = 8
_INVALID_CONTEXT = (201, 709)

_TOO_NEW = "the code object was made by a newer toolkit than the driver knows; install an older NVRTC or a newer driver"
_NO_MEMORY = "free GPU memory, or load the kernel before the memory pool takes everything (dsv4gen.prewarm)"

_BAD_MEMORY = "a kernel before this one, or this one, touched memory it may not; run with {}_LAUNCH_BLOCKING=1"
_STOPPED = "a kernel before this one, or this one, stopped with an error; run with {}_LAUNCH_BLOCKING=1 to see which"

#: what a status usually means to someone who did not write the kernel
_ADVICE = {
    "cuda": {
        2: _NO_MEMORY,
        98: "the code object holds no code for this device; rebuild it for the device's own architecture",
        200: _TOO_NEW,
        209: "the code object was built for another architecture; rebuild it for the device's own architecture",
        222: _TOO_NEW,
        700: _BAD_MEMORY.format("CUDA"),
        701: "the kernel needs more registers or shared memory than the device has; report the target and the shape",
        716: _BAD_MEMORY.format("CUDA"),
        719: _STOPPED.format("CUDA"),
    },
    "hip": {
        2: _NO_MEMORY,
        200: "the code object was built for another architecture, or by a compiler the runtime does not know",
        209: "the code object was built for another architecture; rebuild it for the device's own architecture",
        98: "the code object holds no code for this device; rebuild it for the device's own architecture",
        700: _BAD_MEMORY.format("HIP"),
        719: _STOPPED.format("HIP"),
    },
}


class Names(NamedTuple):
    """How one vendor spells the calls."""

    kind: libraries.Kind
    init: str
    version: str
    load: str
    function: str
    attribute: str
    launch: str
    launch_extended: str
    clusters: str
    error_name: str
    error_text: str


NAMES = {
    "cuda": Names(
        kind=libraries.CUDA,
        init="cuInit",
        version="cuDriverGetVersion",
        load="cuModuleLoadData",
        function="cuModuleGetFunction",
        attribute="cuFuncSetAttribute",
        launch="cuLaunchKernel",
        launch_extended="cuLaunchKernelEx",
        clusters="cuOccupancyMaxActiveClusters",
        error_name="cuGetErrorName",
        error_text="cuGetErrorString",
    ),
    "hip": Names(
        kind=libraries.HIP,
        init="hipInit",
        version="hipDriverGetVersion",
        load="hipModuleLoadData",
        function="hipModuleGetFunction",
        attribute="hipFuncSetAttribute",
        launch="hipModuleLaunchKernel",
        launch_extended="hipDrvLaunchKernelEx",
        clusters="hipOccupancyMaxActiveClusters",
        error_name="hipGetErrorName",
        error_text="hipGetErrorString",
    ),
}


class Driver:
    """One loaded driver library."""

    def __init__(self, api: str, library: ctypes.CDLL) -> None:
        self.api = api
        self._names = NAMES[api]
        self._library = library
        self._modules: dict[tuple[int, bytes], int] = {}
        self._contexts: dict[int, ctypes.c_void_p] = {}
        self._check(self._call(self._names.init, ctypes.c_uint(0)), self._names.init)

    @classmethod
    def open(cls, api: str) -> Driver:
        """Load and initialise the driver of one API.

        Raises:
            ToolMissing: no driver library can be loaded.
            DriverError: it is there but refuses, for want of a device for example.
        """
        kind = NAMES[api].kind
        library, _ = libraries.open_first(kind, libraries.find(kind))
        return cls(api, library)

    @property
    def version(self) -> tuple[int, int]:
        """CUDA: the newest toolkit it serves. HIP: the runtime's own version."""
        number = ctypes.c_int()
        self._check(self._call(self._names.version, ctypes.byref(number)), self._names.version)
        if self.api == "cuda":
            return number.value // 1000, number.value % 1000 // 10
        return number.value // 10_000_000, number.value // 100_000 % 100

    def load_module(self, device: int, binary: bytes, what: str) -> int:
        """Load machine code in the device's primary context, which torch uses as well.

        Modules stay loaded as long as the process lives; the same code on the same device is found again.

        Raises:
            DriverError: refused; the message says what that status usually means.
        """
        key = (device, hashlib.sha256(binary).digest())
        if key not in self._modules:
            module = ctypes.c_void_p()
            with self.context(device):
                self._check(self._call(self._names.load, ctypes.byref(module), binary), f"loading {what}")
            self._modules[key] = module.value or 0
        return self._modules[key]

    def function(self, module: int, symbol: str) -> int:
        """A kernel of a module.

        Raises:
            DriverError: the module has no such kernel.
        """
        found = ctypes.c_void_p()
        status = self._call(self._names.function, ctypes.byref(found), ctypes.c_void_p(module), symbol.encode())
        self._check(status, f"looking up {symbol}")
        return found.value or 0

    def allow(self, device: int, function: int, *, shared_bytes: int, cluster: int) -> None:
        """Opt in to dynamic shared memory and cluster sizes beyond what every CUDA device grants.

        AMD devices grant a block all its shared memory without being asked.
        """
        if self.api != "cuda":
            return
        with self.context(device):
            if shared_bytes > STATIC_SHARED_LIMIT:
                self._set(function, MAX_DYNAMIC_SHARED, shared_bytes, f"{shared_bytes} bytes of dynamic shared memory")
            if cluster > PORTABLE_CLUSTER:
                self._set(function, NON_PORTABLE_CLUSTER, 1, f"clusters of {cluster} blocks")

    def active_clusters(self, device: int, function: int, config: int) -> int:
        """How many clusters of a launch configuration fit the device at once; 0 when that shape never fits.

        Raises:
            DriverError: the query failed for another reason than the shape.
        """
        count = ctypes.c_int()
        name = self._names.clusters
        with self.context(device):
            self._check(self._call(name, ctypes.byref(count), ctypes.c_void_p(function), ctypes.c_void_p(config)), name)
        return count.value

    def launcher(self) -> tuple[Callable[..., int], bool]:
        """The launch function and whether it is the extended one, which takes its configuration as a struct.

        The extended call is preferred: four arguments instead of eleven save a microsecond in ctypes.
        """
        extended = self._optional(self._names.launch_extended)
        if extended is not None:
            extended.argtypes = [ctypes.c_void_p] * 4
            return extended, True
        plain = self._function(self._names.launch)
        plain.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
        return plain, False

    @contextmanager
    def context(self, device: int) -> Iterator[None]:
        """Make the device's primary context current, and restore what was before."""
        if self.api == "hip":
            before = ctypes.c_int()
            self._check(self._call("hipGetDevice", ctypes.byref(before)), "hipGetDevice")
            self._check(self._call("hipSetDevice", ctypes.c_int(device)), f"device {device}")
            try:
                yield
            finally:
                self._call("hipSetDevice", before)
            return
        previous = ctypes.c_void_p()
        self._check(self._call("cuCtxGetCurrent", ctypes.byref(previous)), "cuCtxGetCurrent")
        self.make_current(device)
        try:
            yield
        finally:
            self._call("cuCtxSetCurrent", previous)

    def make_current(self, device: int) -> None:
        """Bind the calling thread to a device. Threads start without one, and torch binds them lazily."""
        if self.api == "hip":
            self._check(self._call("hipSetDevice", ctypes.c_int(device)), f"device {device}")
            return
        self._check(self._call("cuCtxSetCurrent", self._primary_context(device)), f"context of device {device}")

    def lost_context(self, status: int) -> bool:
        """Whether a status says that the calling thread has no context yet."""
        return self.api == "cuda" and status in _INVALID_CONTEXT

    def error(self, status: int, doing: str) -> DriverError:
        """A status as an error: its name, the driver's sentence, and advice where there is some."""
        name, text = self._error_texts(status)
        return DriverError(f"{doing}: {name} ({status}): {text}", remedy=_ADVICE[self.api].get(status, ""))

    def _error_texts(self, status: int) -> tuple[str, str]:
        texts = []
        for name in (self._names.error_name, self._names.error_text):
            function = self._function(name)
            if self.api == "hip":
                function.restype = ctypes.c_char_p
                raw = function(ctypes.c_int(status))
            else:
                pointer = ctypes.c_char_p()
                function.restype = ctypes.c_int
                function(ctypes.c_int(status), ctypes.byref(pointer))
                raw = pointer.value
            texts.append((raw or b"unknown error").decode("utf-8", "replace"))
        return texts[0], texts[1]

    def _primary_context(self, device: int) -> ctypes.c_void_p:
        if device not in self._contexts:
            handle, context = ctypes.c_int(), ctypes.c_void_p()
            self._check(self._call("cuDeviceGet", ctypes.byref(handle), ctypes.c_int(device)), f"device {device}")
            status = self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
            self._check(status, f"context of device {device}")
            self._contexts[device] = context
        return self._contexts[device]

    def _set(self, function: int, attribute: int, value: int, what: str) -> None:
        arguments = (ctypes.c_void_p(function), ctypes.c_int(attribute), ctypes.c_int(value))
        self._check(self._call(self._names.attribute, *arguments), what)

    def _check(self, status: int, doing: str) -> None:
        if status != 0:
            raise self.error(status, doing)

    def _call(self, name: str, *arguments: object) -> int:
        return int(self._function(name)(*arguments))

    def _function(self, name: str) -> ctypes._NamedFuncPointer:
        found = self._optional(name)
        if found is None:
            raise ToolMissing(f"{self._names.kind.name} lacks {name}", remedy="update the driver")
        return found

    def _optional(self, name: str) -> ctypes._NamedFuncPointer | None:
        return getattr(self._library, name, None)
