"""What `load` returns: a family with its ops as callables, and what can be asked about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from dsv4gen.base.errors import UnknownName, did_you_mean
from dsv4gen.runtime.backend import Backend, Function, Sizes
from dsv4gen.runtime.call_names import misuse
from dsv4gen.runtime.call_table import CallTable, WorkspaceRule
from dsv4gen.runtime.dispatch import Decision
from dsv4gen.runtime.read_table import make_table
from dsv4gen.runtime.reference_backend import NAME as REFERENCE
from dsv4gen.runtime.torch_ops import bind_op


class Use(NamedTuple):
    """How a family was asked for: the `target` argument's text, and whether calls are checked."""

    target: str = ""
    checked: bool = True


class Launchable:
    """Calling it launches `raw`, or takes `torch_op` inside a compiled function.

    A family is one itself and does not call its op, since each call of a Python object by another costs 0.15 us.
    """

    table: CallTable
    torch_op: Function
    raw: Any

    def __init__(self, is_compiling: Callable[[], bool]) -> None:
        self._is_compiling = is_compiling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._is_compiling():
            return self.torch_op(*args, **kwargs)
        try:
            return self.raw(*args, **kwargs)
        except TypeError as error:
            raise misuse(self.table, args, kwargs) or error from None


class LoadedOp(Launchable):
    """One op with chosen options.

    Calling it launches. `raw` is the bare function behind it, for loops where a tenth of a microsecond counts;
    `unchecked` is the same without argument checks; `torch_op` goes through torch's dispatcher, which is what
    torch.compile sees. A call inside a compiled function takes `torch_op` by itself.
    """

    def __init__(
        self, backend: Backend, entry: Mapping[str, Any], table: CallTable, options: Mapping[str, str], use: Use
    ) -> None:
        import torch

        super().__init__(torch.compiler.is_compiling)
        self.table = table
        self.options = options
        self._backend = backend
        self._entry = entry
        self._checked = use.checked
        self.torch_op = bind_op(table, entry, options, use.target, lambda: self._checked_function)
        self.__name__ = table.op
        self.__doc__ = describe(table, entry["ops"][table.op]["summary"])

    def __repr__(self) -> str:
        words = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"<dsv4gen {self.table.title} on {self._backend.target}{words}>"

    @cached_property
    def raw(self) -> Function:
        """The function that checks (unless loaded with checked=False), packs and launches."""
        return _untraced(self._backend.function(self.table, checked=self._checked))

    @cached_property
    def unchecked(self) -> Function:
        """The function without argument checks."""
        return _untraced(self._backend.function(self.table, checked=False))

    @cached_property
    def _checked_function(self) -> Function:
        """What torch's dispatcher calls: always checked, whatever this object was loaded with."""
        return self.raw if self._checked else self._backend.function(self.table, checked=True)

    def explain(self, **shape: int) -> Decision:
        """Which launches a call with this shape makes, and why not others."""
        return self._backend.decide(self.table.op, shape)

    @property
    def workspaces(self) -> tuple[WorkspaceRule, ...]:
        """Workspaces that calls may need; none where torch does the work."""
        return () if self._backend.target == REFERENCE else self.table.workspaces

    def workspace_bytes(self, **shape: int) -> dict[str, int]:
        """Bytes of each workspace that a call with this shape needs."""
        return self._backend.workspace_bytes(self.table, shape)

    def make_workspaces(self, device: Any, **shape: int) -> dict[str, Any]:
        """Zeroed workspaces for this shape and all that need no more, by argument name; use one set per stream."""
        import torch

        made = {}
        sizes = self.workspace_bytes(**shape)
        for rule in self.table.workspaces:
            dtype: torch.dtype = getattr(torch, rule.dtype)
            made[rule.name] = torch.zeros(sizes[rule.name] // dtype.itemsize, dtype=dtype, device=device)
        return made

    def prewarm(self, shapes: Sequence[Sizes] = ()) -> None:
        """Load everything that calls with these shapes need, on the current device."""
        self._backend.prewarm(self.table, shapes)
        _ = self.raw


class LoadedFamily(Launchable):
    """A family on one target or device with chosen options; calling it calls its main op."""

    def __init__(
        self, name: str, backend: Backend, entry: Mapping[str, Any], options: Mapping[str, str], use: Use
    ) -> None:
        self.name = name
        self.target = backend.target
        self.options = dict(options)
        tables = {op: make_table(name, entry, op, options) for op in entry["ops"]}
        self.ops = {op: LoadedOp(backend, entry, table, options, use) for op, table in tables.items()}
        self._main = self.ops[entry["main"]]
        super().__init__(self._main._is_compiling)
        self.table = self._main.table
        self.torch_op = self._main.torch_op
        self.__doc__ = "\n\n".join(op.__doc__ or "" for op in self.ops.values())

    def __getattr__(self, name: str) -> LoadedOp:
        found: LoadedOp | None = self.__dict__.get("ops", {}).get(name)
        if found is None:
            raise AttributeError(f"no op and no attribute {name!r}")
        return found

    def __repr__(self) -> str:
        words = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"<dsv4gen {self.name} on {self.target}{words}: {', '.join(self.ops)}>"

    @cached_property
    def raw(self) -> Function:
        """The main op's bare function."""
        return self._main.raw

    def op(self, name: str | None = None) -> LoadedOp:
        """An op by name; the main one without a name.

        Raises:
            UnknownName: no such op.
        """
        if name is None:
            return self._main
        if name not in self.ops:
            raise unknown_op(self.name, name, self.ops)
        return self.ops[name]

    def explain(self, op: str | None = None, **shape: int) -> Decision:
        """Which launches a call with this shape makes, and why not others."""
        return self.op(op).explain(**shape)

    def prewarm(self, shapes: Sequence[Sizes] = (), op: str | None = None) -> None:
        """Load what one op, or every op, needs for these shapes on the current device."""
        for loaded in [self.op(op)] if op else self.ops.values():
            loaded.prewarm(shapes)


def unknown_op(family: str, name: str, ops: Iterable[str]) -> UnknownName:
    """The error for an op that a family does not have."""
    known = tuple(ops)
    return UnknownName(f"{family} has no op {name!r}{did_you_mean(name, known)}; ops: {', '.join(known)}")


def describe(table: CallTable, summary: str) -> str:
    """The op's help text: its tensors with dtypes and shapes, its numbers, its workspaces."""
    lines = [f"{table.title}: {summary}", ""]
    for rule in (*table.inputs, *table.outputs):
        note = ", may be left out" if rule.optional else ", made when not given" if rule.role == "out" else ""
        note += f", may be {' or '.join(rule.in_place)} itself" if rule.in_place else ""
        lines.append(f"    {rule.name}: {' or '.join(rule.dtypes)} [{rule.shape_text}], {rule.role}{note}")
    numbers = (*table.required_numbers, *table.optional_numbers)
    docs = {axis.name: axis.doc for axis in table.axes}
    usual = {name: f", {value} when not given" for name, value in table.defaults.items()}
    lines += [f"    {name}: {docs.get(name) or 'number'}{usual.get(name, '')}" for name in numbers]
    lines += [f"    {name}: choice of the launcher{usual.get(name, '')}" for name in table.choices]
    lines += [
        f"    {rule.name}: uint8, workspace of the caller, {rule.init} before the first call"
        for rule in table.workspaces
    ]
    return "\n".join(lines)


def _untraced(function: Function) -> Function:
    """Keep torch.compile out: the function works on addresses. A graph break here names `torch_op` as the way in."""
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    function._torchdynamo_disable_msg = "call the loaded op or its .torch_op inside torch.compile, not .raw"  # type: ignore[attr-defined]
    return function
