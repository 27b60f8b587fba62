"""Runs Triton families: the generated module holds kernels and one launcher per op; here it is loaded and guarded.

The module's text is compiled from what is on disk now. Python's own import would trust a byte-code file whose time
stamp and size fit, and so may run the text of before an edit made within the same second.
"""

from __future__ import annotations

import inspect
import linecache
import logging
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from dsv4gen.base.errors import ArgumentError, CaptureError, ExpressionError, LoadError
from dsv4gen.base.expression_json import evaluate_json
from dsv4gen.base.manifest import digest_bytes, require_intact
from dsv4gen.runtime import arguments, specialise
from dsv4gen.runtime.backend import Function, Sizes, make_outputs
from dsv4gen.runtime.call_table import AxisRule, CallTable
from dsv4gen.runtime.dispatch import Decision, decide, host_axes, with_facts
from dsv4gen.runtime.launching import workspace_bytes
from dsv4gen.runtime.platform import Platform, facts
from dsv4gen.runtime.selection import Accepted
from dsv4gen.runtime.triton_launch import TritonLaunch

_log = logging.getLogger("dsv4gen")
_modules: dict[tuple[Path, str], ModuleType] = {}
_modules_lock = threading.Lock()


@dataclass
class TritonBackend:
    """One Triton family with chosen options."""

    family: str
    accepted: Accepted
    options: Mapping[str, str]
    platform: Platform

    def __post_init__(self) -> None:
        self.target = self.accepted.target
        self.entry = self.accepted.manifest.families[self.family]
        self._warm: dict[str, set[tuple[Any, ...]]] = {}
        self._module: ModuleType | None = None

    @property
    def module(self) -> ModuleType:
        """The generated module.

        Raises:
            LoadError: Triton is missing or older than the module needs.
            ManifestError: the file was edited.
        """
        if self._module is None:
            _require_triton(self.family)
            require_intact(self.accepted.manifest, self.accepted.folder)
            self._module = load_module(self.accepted.folder / f"{self.family}.py")
            _check_version(self.family, self._module.TRITON_RANGE)
        return self._module

    def decide(self, op: str, sizes: Sizes) -> Decision:
        """Path and tiles by the manifest; the module holds the same choice as text."""
        known = with_facts(self.entry, op, sizes, facts(self.platform))
        return decide(self.family, self.entry, self.target, op, known, self.options)

    def workspace_bytes(self, table: CallTable, sizes: Sizes) -> dict[str, int]:
        """Bytes per workspace of the path that these sizes take."""
        needs = workspace_bytes(table, self.decide(table.op, sizes))
        return {rule.name: need for rule, need in zip(table.workspaces, needs, strict=True)}

    def function(self, table: CallTable, *, checked: bool) -> Function:
        """Argument checks and the capture guard around the module's launcher."""
        launcher = getattr(self.module, table.op, None)
        if launcher is None:
            raise LoadError(f"the module of {table.family} has no launcher for {table.op}", remedy="run: dsv4gen build")
        parameters = inspect.signature(launcher).parameters
        table = as_launched(table, self.entry, parameters)
        options = {name: value for name, value in self.options.items() if name in parameters}
        amd = self.accepted.manifest.target["api"] == "hip"
        ending = TritonLaunch(table, parameters, options, amd)
        on_cuda, current = self.platform.tensors_are_cuda, self.platform.index_getter()

        def cold() -> None:
            if self.platform.is_capturing():
                raise CaptureError(
                    f"{table.title} would be compiled now, which would break the graph capture in progress",
                    remedy=f"call it once before the capture, or "
                    f"dsv4gen.prewarm({self.family!r}, shapes=[dict({_sizes_text(table)})])",
                )

        def elsewhere(device: int, **values: Any) -> Any:
            with self.platform.on_device(device):
                return function(**values)

        names = {
            **arguments.dtypes(table),
            "_launcher": launcher,
            "_warm": self._warm.setdefault(table.op, set()),
            "_cold": cold,
            "_capturing": self.platform.is_capturing,
            "_current": current,
            "_elsewhere": elsewhere,
            "_recheck": lambda **values: arguments.check(table, _known(values, ending), on_cuda),
            "_make_outputs": lambda **values: function(**make_outputs(table, values)),
        }
        function = specialise.make_function(
            table, ending, checked=checked, on_cuda=on_cuda, many_devices=current is not None, names=names
        )
        return function

    def misuse(self, table: CallTable, args: Sequence[Any], named: Mapping[str, Any]) -> ArgumentError | None:
        """What is wrong with the names of a call's arguments."""
        parameters = inspect.signature(getattr(self.module, table.op)).parameters
        launched = as_launched(table, self.entry, parameters)
        ending = TritonLaunch(launched, parameters, {}, amd=False)
        return arguments.misuse(launched, args, _known({**ending.defaults, **named}, ending))

    def prewarm(self, table: CallTable, shapes: Sequence[Sizes]) -> None:
        """Call the op once per shape on tensors of zeros, so that Triton has compiled what such calls need.

        Raises:
            ArgumentError: no shapes; Triton compiles per shape class, so there is nothing else to go by.
        """
        if not shapes:
            raise ArgumentError(f"prewarming {table.title} needs shapes", remedy=f"shapes=[dict({_sizes_text(table)})]")
        function = self.function(table, checked=True)
        index = self.platform.current_index()
        with self.platform.on_device(index):
            for sizes in shapes:
                function(**_zeros(table, sizes, f"cuda:{index}" if self.platform.tensors_are_cuda else "cpu"))


def as_launched(table: CallTable, entry: Mapping[str, Any], parameters: Mapping[str, Any]) -> CallTable:
    """The table with the sizes that the launcher takes: it may need one only to compile, such as a page's, and it
    finds out by itself what only the manifest's grids read.
    """
    sizes = {name for name, parameter in parameters.items() if parameter.default is not None}
    axes = [axis for axis in table.axes if axis.source != "given" or axis.name in sizes]
    known = {*(axis.name for axis in axes), *(rule.name for rule in table.tensors), *table.absent}
    for name, size in host_axes(entry).items():
        if name in sizes and name not in known:
            axes.append(AxisRule(name, size["min"]["tree"], size["max"]["tree"], "given", size["doc"]))
    return replace(table, axes=tuple(axes))


def _known(values: Mapping[str, Any], ending: TritonLaunch) -> dict[str, Any]:
    """Arguments that the call table knows."""
    return {name: value for name, value in values.items() if name not in ending.choices}


def load_module(path: Path) -> ModuleType:
    """The module of a generated file as it is on disk now; the same text is loaded once per process."""
    data = path.read_bytes()
    key = (path, digest_bytes(data))
    with _modules_lock:
        if key not in _modules:
            _modules[key] = _execute(path, data.decode("utf-8"), key[1])
        return _modules[key]


def _execute(path: Path, text: str, digest: str) -> ModuleType:
    """Run the text under a file name of its own: Triton reads a kernel's source back through that name."""
    name = f"dsv4gen_generated_{path.parent.name}_{path.stem}_{digest[:12]}"
    file = f"<{path}#{digest[:12]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    module = ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module
    try:
        exec(compile(text, file, "exec"), module.__dict__)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _require_triton(family: str) -> None:
    try:
        import triton  # noqa: F401
    except ImportError as error:
        raise LoadError(f"{family} needs Triton: {error}", remedy="pip install triton") from error


def _check_version(family: str, verified: tuple[str, str]) -> None:
    """Refuse a Triton older than the module's range; a newer one only earns a line in the log.

    Raises:
        LoadError: too old.
    """
    import triton

    found, oldest, newest = (_number(text) for text in (triton.__version__, *verified))
    if found < oldest:
        raise LoadError(
            f"{family} needs Triton {verified[0]} or newer, found {triton.__version__}", remedy="pip install -U triton"
        )
    if found > newest:
        _log.info("%s was verified with Triton %s to %s, found %s", family, *verified, triton.__version__)


def _number(text: str) -> tuple[int, int]:
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _zeros(table: CallTable, sizes: Sizes, device: str) -> dict[str, Any]:
    import torch

    values: dict[str, Any] = {name: sizes.get(name, 0) for name in table.required_numbers}
    values |= {name: sizes[name] for name in table.optional_numbers if name in sizes}
    for rule in table.inputs:
        if not rule.optional:
            made = _shape_of(table, rule.name, sizes)
            values[rule.name] = torch.zeros(made, dtype=getattr(torch, rule.dtypes[0]), device=device)
    return values


def _shape_of(table: CallTable, name: str, sizes: Sizes) -> tuple[int, ...]:
    """The shape of one tensor for given sizes.

    Raises:
        ArgumentError: a size is missing.
    """
    rule = next(rule for rule in table.tensors if rule.name == name)
    try:
        return tuple(int(evaluate_json(tree, {**table.constants, **sizes})) for tree in rule.shape)
    except ExpressionError as error:
        raise ArgumentError(f"prewarming {table.title}: {error.message}", remedy=f"give {_sizes_text(table)}") from None


def _sizes_text(table: CallTable) -> str:
    return ", ".join(f"{axis.name}=..." for axis in table.axes if axis.source != "absent")
