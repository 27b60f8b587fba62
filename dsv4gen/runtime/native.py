"""The short way of a driver's launch function in C, where the extension was built (`native_calls.c`, optional).

One call compares tensors, numbers, device and stream with remembered calls, tests and packs addresses, and launches.
It reads tensors through torch's DLPack exchange table, so it fits any torch that has one. Without the extension or the
table, for other classes of tensors and after any error in between, the text of the launch function does the same.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.machinery
import importlib.util
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dsv4gen.base import env
from dsv4gen.runtime import repeat, sharing
from dsv4gen.runtime.call_table import WORKSPACE_ALIGN, CallTable

REBUILD = "python -m dsv4gen.runtime.build_native builds it"
NAME = "_native.abi3.so"
SOURCE = Path(__file__).with_name("native_calls.c")
_log = logging.getLogger("dsv4gen")


class NativeCalls:
    """The extension's part of one launch function.

    `again` takes a call's tensors, then its numbers, and says True where it launched, False where no memory fits, None
    where it did not judge.
    """

    def __init__(self, caller: Any) -> None:
        self.again: Callable[..., bool | None] = caller.again
        self.know: Callable[[tuple[repeat.Twin, ...]], None] = caller.know
        self._memory = caller.memory

    def make(
        self, tensors: Sequence[Any], numbers: tuple[Any, ...], device: int, more: tuple[Any, ...]
    ) -> repeat.Twin | None:
        """A call as the extension keeps it; None where it cannot.

        Args:
            more: stream, launches, parameters, plan, and what `sharing.limits` names.
        """
        stream, launches, packed, plan, *limits = more
        spans, passed = (tuple(limits[: len(tensors)]), limits[-1]) if limits else ((), ())
        values = (tuple(tensors), numbers, device, stream, packed, launches, plan, spans, frozenset(passed))
        try:
            made: repeat.Twin = self._memory(*values)
        except (TypeError, ValueError, OverflowError):
            return None
        return made


class Found(NamedTuple):
    """The extension, or why calls take the Python way."""

    module: Any
    reason: str = ""


def digest(source: bytes) -> str:
    """What the extension says it was built from; a build of other text is not used."""
    return hashlib.sha256(source).hexdigest()[:16]


@functools.cache
def find() -> Found:
    """The extension beside this module, if it may be used with this torch."""
    found = _find()
    _log.info("calls like an earlier one take the %s", f"Python way: {found.reason}" if found.reason else "native way")
    return found


def _find() -> Found:
    if not env.flag(env.NATIVE):
        return Found(None, f"{env.NATIVE.name}=0")
    path = SOURCE.with_name(NAME)
    if not path.is_file():
        return Found(None, f"the extension was not built (no C compiler, or no Python.h); {REBUILD}")
    try:
        module = load(path)
    except ImportError as error:
        return Found(None, f"the extension does not load: {error}")
    if digest(SOURCE.read_bytes()) != module.SOURCE:
        return Found(None, f"the extension was built from another {SOURCE.name}; {REBUILD}")
    if exchange() is None:
        return Found(None, "this torch has no DLPack exchange table; torch 2.10 is the first that does")
    return Found(module)


def load(path: Path) -> Any:
    """The extension in a file.

    Raises:
        ImportError: the file is not one, or for another machine.
    """
    name = f"{__package__}._native"
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise ImportError(f"no module specification for {path}")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def exchange() -> Any:
    """torch's table of DLPack functions; None where it has none."""
    import torch

    return getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)


def make_calls(
    table: CallTable,
    launch: Any,
    extended: bool,
    checked: bool,
    stream: Callable[[int], int],
    current: Callable[[], int] | None,
    failed: Callable[[int, int, Any, int, int], None],
) -> NativeCalls | None:
    """The extension's part of a launch function; None where it cannot take it.

    Args:
        launch: the driver's C function, in its extended form or not.
        stream: device -> the calling thread's current stream.
        current: the calling thread's device, where there are several.
        failed: what a status other than 0 is handed to; it raises unless it launched after all.
    """
    import torch

    module = find().module
    if module is None:
        return None
    tensors = (torch.Tensor, torch.nn.Parameter, exchange())
    call = (ctypes.cast(launch, ctypes.c_void_p).value, extended, checked)
    rules = (table.size, tuple(_rules(table)), tuple(_pairs(table)) if checked else (), len(table.numbers))
    asked = (None if _is_own_stream(stream) else stream, current, failed)
    try:
        return NativeCalls(module.make_caller(*tensors, *call, *rules, *asked))
    except (TypeError, ValueError) as error:
        _log.info("%s takes the Python way: %s", table.title, error)
        return None


def _rules(table: CallTable) -> list[tuple[int, bool, int]]:
    """Alignment, whether it may be left out, and its place in Params, or -1, of all that is memory."""
    optional = repeat.optional_tensors(table)
    aligns = {rule.name: rule.align for rule in table.tensors}
    return [
        (aligns.get(name, WORKSPACE_ALIGN), name in optional, table.pointers.get(name, -1)) for name in table.memory
    ]


def _pairs(table: CallTable) -> list[tuple[int, int, bool]]:
    place = table.memory.index
    return [(place(pair.written), place(pair.other), pair.in_place) for pair in sharing.pairs(table)]


def _is_own_stream(stream: Callable[[int], int]) -> bool:
    """Whether the table's own stream function says the same: on ROCm it is not known to."""
    import torch

    return torch.version.hip is None and stream is getattr(torch._C, "_cuda_getCurrentRawStream", None)
