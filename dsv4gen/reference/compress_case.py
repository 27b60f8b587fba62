"""A call of the compress family and its judge, and the bounds that judges share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from dsv4gen.base.errors import VerifyError
from dsv4gen.reference.compress import Geometry
from dsv4gen.reference.compress_store import check_stored
from dsv4gen.reference.compress_world import Options, World, alternatives, finished, make_world

FOUR, INDEXER, MANY = Geometry(4, 512), Geometry(4, 128), Geometry(128, 512)
#: arguments that name compile-time options
OPTIONS = (
    "bias_at", "table", "record", "dialect", "fp8_max", "floor", "quant_source", "hadamard", "slot_zero", "fp4_ties",
)  # fmt: skip
_DTYPES = {torch.float32: "f32", torch.bfloat16: "bf16"}
#: the contract's bound on a pooled row, as a part of the largest value of its window
POOL_ERROR = 2e-6
#: bound on a kept partial and on rotated rows, as a part of the row's largest element
ROW_ERROR = 1e-5

Arguments = dict[str, object]
Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Case:
    """One call: `arguments` are the keywords of the launch function `op`, outputs included.

    `before` holds what the outputs held; `judge` takes the outputs after the call and raises VerifyError.
    """

    name: str
    op: str
    arguments: Mapping[str, object]
    before: Tensors = field(repr=False)
    judge: Callable[[Tensors], None] = field(repr=False)
    #: no kernel of this family branches on rows
    rows: tuple[Mapping[str, int], ...] = ()

    @property
    def options(self) -> Mapping[str, str]:
        """Compile-time options among the arguments, element types included."""
        chosen = {name: str(self.arguments[name]) for name in OPTIONS if name in self.arguments}
        for name in ("source", "state"):
            tensor = self.arguments.get(name)
            if isinstance(tensor, Tensor):
                chosen[f"{name}_dtype"] = _DTYPES[tensor.dtype]
        return chosen

    def fresh(self) -> Case:
        """The same call with outputs as they were before it."""
        outputs = {name: tensor.clone() for name, tensor in self.before.items()}
        return replace(self, arguments={**self.arguments, **outputs})

    def check(self) -> None:
        """Compare the outputs with the reference; what no entry names is as it was.

        Raises:
            VerifyError: the first difference found.
        """
        self.judge({name: self.arguments[name] for name in self.before})  # type: ignore[misc]


def make_case(
    name: str, op: str, arguments: Arguments, outputs: Sequence[str], judge: Callable[[Tensors], None]
) -> Case:
    before = {output: arguments[output].clone() for output in outputs}  # type: ignore[attr-defined]
    return Case(f"{op} {name}", op, arguments, before, judge)


def check_pool(actual: Tensor, expected: Tensor, values: Tensor, name: str) -> None:
    """The contract's bound: 2e-6 of the largest value pooled; NaN only where the reference has it.

    Args:
        actual, expected: [..., dims].
        values: [..., rows, dims], what was pooled, or more.

    Raises:
        VerifyError: an element differs by more.
    """
    largest = values.double().nan_to_num(0, 0, 0).abs().amax((-2, -1)).unsqueeze(-1)
    check_close(actual, expected, POOL_ERROR * largest, name)


def check_close(actual: Tensor, expected: Tensor, bound: Tensor, name: str) -> None:
    close = (actual.double() - expected).abs() <= bound
    close |= torch.isnan(actual) & torch.isnan(expected)
    if not bool(close.all()):
        raise VerifyError(f"{name}: {int((~close).sum())} elements outside the bound")


def check_rows(actual: Tensor, expected: Tensor, name: str) -> None:
    check_close(actual, expected, ROW_ERROR * expected.abs().amax(-1, keepdim=True), name)


def filled(geometry: Geometry, options: Options | None, requests: int, tokens: int, page_size: int = 5) -> World:
    """A world with a random state."""
    world = make_world(geometry, options=options, requests=requests, tokens=tokens, page_size=page_size)
    world.state = torch.randn(world.state.shape, generator=world.generator).to(world.state.dtype)
    return world


def stored(world: World, slots: Tensor, pooled: Tensor, ends: Sequence[int], name: str) -> Callable[[Tensors], None]:
    """A judge of the cache: these pooled rows, finished, in these slots, everything else as it was."""
    before, options = world.cache.clone(), world.options
    rows, others = finished(world, pooled, ends), alternatives(world, pooled, ends)
    if options.slot_zero == "reserved":
        slots = torch.where(slots == 0, -1, slots)

    def judge(outputs: Tensors) -> None:
        quantizer = options.quantizer()
        check_stored(outputs["cache"], before, world.page_size, slots, rows, options.record, quantizer, name, others)

    return judge
