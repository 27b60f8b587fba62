"""Runs Triton families: the generated module holds kernels and one launcher per op; here it is loaded and guarded.

The module's text is compiled from what is on disk now. Python's own import would trust a byte-code file whose time
stamp and size fit, and so may run the text of before an edit made within the same second.
"""

from __future__ import annotations

import linecache
import logging
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from dsv4gen.base.errors import ArgumentError, CaptureError, ExpressionError, LoadError
from dsv4gen.base.expression_json import evaluate_json
from dsv4gen.base.manifest import digest_bytes, require_intact
from dsv4gen.runtime import arguments, call_names, specialise
from dsv4gen.runtime.backend import Function, Sizes, make_outputs
from dsv4gen.runtime.call_table import CallTable
from dsv4gen.runtime.dispatch import Decision, decide, with_facts
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
        amd = self.accepted.manifest.target["api"] == "hip"
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
            "_launcher": launcher,
            "_warm": self._warm.setdefault(table.op, set()),
            "_cold": cold,
            "_capturing": self.platform.is_capturing,
            "_current": current,
            "_elsewhere": elsewhere,
            "_recheck": lambda **values: arguments.check(table, values, on_cuda),
            "_make_outputs": lambda **values: function(**make_outputs(table, values)),
        }
        ending = TritonLaunch(table, amd=amd)
        function = specialise.make_function(
            table, ending, checked=checked, on_cuda=on_cuda, many_devices=current is not None, names=names
        )
        return function

    def prewarm(self, table: CallTable, shapes: Sequence[Sizes]) -> None:
        """Call the op once per shape on tensors of zeros, so that Triton has compiled what such calls need.

        Raises:
            ArgumentError: no shapes; Triton compiles per shape class, so there is nothing else to go by. Or a size or a
                choice without a default is missing.
        """
        if not shapes:
            raise ArgumentError(f"prewarming {table.title} needs shapes", remedy=f"shapes=[dict({_sizes_text(table)})]")
        function = self.function(table, checked=True)
        index = self.platform.current_index()
        with self.platform.on_device(index):
            for sizes in shapes:
                values = _zeros(table, sizes, f"cuda:{index}" if self.platform.tensors_are_cuda else "cpu")
                function(**call_names.by_name(table, (), values))


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

    values: dict[str, Any] = {name: 1.0 if name in table.floats else 0 for name in table.required_numbers}
    values |= table.defaults
    named = (*table.required_numbers, *table.optional_numbers, *table.choices)
    values |= {name: sizes[name] for name in named if name in sizes}
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
    needed = [axis.name for axis in table.axes if axis.source != "absent"]
    needed += [name for name in table.choices if name not in table.defaults]
    return ", ".join(f"{name}=..." for name in needed)
