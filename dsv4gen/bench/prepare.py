"""From a cell to calls that are ready to be timed: input sets, and a check of the first call's results."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dsv4gen.base.errors import LoadError
from dsv4gen.bench.cells import Cell
from dsv4gen.bench.stopwatch import Thunk
from dsv4gen.reference.workload import Arguments, Call, Request, Workload

#: input sets exceed the device's cache this many times
CACHES = 2.5
#: bytes of inputs where the cache's size is not known, and at most
LEAST_BYTES, MOST_BYTES = 32 << 20, 4 << 30
#: what every byte of an output holds before a checked call: NaN in each float format, a huge negative integer
POISON = 0xFF


class Kernels(Protocol):
    """A loaded family: its ops by name, each with a function that launches without argument checks."""

    def op(self, name: str | None = None) -> Any:
        """An op by name."""


@dataclass(frozen=True)
class Prepared:
    """Inputs of one cell: the first set's calls, and all sets."""

    request: Request
    workload: Workload
    sets: Sequence[Sequence[Call]]

    @property
    def arguments(self) -> Arguments:
        """Those of the first call of the first set."""
        return self.sets[0][0].arguments

    def thunks(self, kernels: Kernels) -> list[Thunk]:
        """One timed call per set."""
        return [_thunk(kernels, self.request, calls) for calls in self.sets]


def request_for(cell: Cell, family: Mapping[str, Any], device: str) -> Request:
    """The request that a family's builder of inputs gets."""
    return Request(cell.family, cell.op, cell.shape, cell.options, family["constants"], device)


def prepare(request: Request, reference: str, cache_bytes: int) -> Prepared:
    """Inputs of a cell.

    Raises:
        LoadError: the family offers none.
        ArgumentError: a shape or option for which there are none.
    """
    name = f"dsv4gen.reference.{reference}_bench"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        remedy = f"write dsv4gen/reference/{reference}_bench.py; docs/adding-a-family.md says how"
        raise LoadError(f"{request.family} has no inputs for timing", remedy=remedy) from None
    workload: Workload = module.workload(request)
    return Prepared(request, workload, [workload.make() for _ in range(set_count(workload, cache_bytes))])


def set_count(workload: Workload, cache_bytes: int) -> int:
    """Sets that together exceed the cache, within reason."""
    wanted = max(LEAST_BYTES, int(CACHES * cache_bytes))
    size = max(1, workload.set_bytes)
    return max(2, min(workload.most_sets, -(-wanted // size), max(2, MOST_BYTES // size)))


def check(prepared: Prepared, kernels: Kernels) -> dict[str, Any]:
    """Run the first call on poisoned copies of what it writes, and judge the result; returns what was written.

    Raises:
        VerifyError: a wrong result.
    """
    fresh = call_on_copies(prepared, kernels)
    judge(prepared, fresh)
    return fresh


def call_on_copies(prepared: Prepared, kernels: Kernels) -> dict[str, Any]:
    """Run the first call on poisoned copies of what it writes, and return them."""
    call = prepared.sets[0][0]
    op = kernels.op(call.op)
    fresh = cloned_outputs(op.table, call.arguments)
    op.unchecked(**{**call.arguments, **fresh, **scratch(op, prepared.request)})
    return fresh


def judge(prepared: Prepared, written: Mapping[str, Any]) -> None:
    """Judge what a call on the first set wrote into copies of its outputs.

    Raises:
        VerifyError: a wrong result.
    """
    prepared.workload.judge(prepared.arguments, {**prepared.arguments, **written})


def cloned_outputs(table: Any, arguments: Arguments) -> dict[str, Any]:
    """Copies of the tensors that a call writes; those it does not read are poisoned."""
    import torch

    found: dict[str, Any] = {}
    for rule in table.tensors:
        tensor = arguments.get(rule.name)
        if not rule.written or not isinstance(tensor, torch.Tensor):
            continue
        found[rule.name] = tensor.clone()
        if rule.role == "out":
            found[rule.name].view(torch.uint8).fill_(POISON)
    return found


def scratch(op: Any, request: Request) -> dict[str, Any]:
    """Workspaces of one call, where its op takes any and the inputs bring none."""
    return op.make_workspaces(request.device, **request.shape) if op.workspaces else {}


def _thunk(kernels: Kernels, request: Request, calls: Sequence[Call]) -> Thunk:
    ops = [kernels.op(call.op) for call in calls]
    bound = [(op.unchecked, {**scratch(op, request), **call.arguments}) for op, call in zip(ops, calls, strict=True)]
    if len(bound) == 1:
        function, arguments = bound[0]
        return lambda: function(**arguments)
    return lambda: [function(**arguments) for function, arguments in bound]
