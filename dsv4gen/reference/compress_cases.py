"""Calls of every op of the compress family with known results: what `verify` runs.

States are random, caches and outputs poisoned. Plans come from the plan builders' reference or are spelled out where
an entry must be invalid; expected rows and states come from the state machine of `compress_state`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dsv4gen.reference import compress_state
from dsv4gen.reference.compare import check_exact
from dsv4gen.reference.compress import Geometry
from dsv4gen.reference.compress_case import (
    FOUR,
    INDEXER,
    MANY,
    Arguments,
    Case,
    Tensors,
    check_pool,
    filled,
    make_case,
    stored,
)
from dsv4gen.reference.compress_edges import edge_cases
from dsv4gen.reference.compress_plan import Extend, PrefillPlan, unpack
from dsv4gen.reference.compress_stage_cases import finish_case, gathered_case, online_case, plan_cases, pool_case
from dsv4gen.reference.compress_v1_cases import adapter_cases
from dsv4gen.reference.compress_world import (
    Options,
    Step,
    World,
    decode_arguments,
    prefill_arguments,
    write_arguments,
)


def _spoil(arguments: Arguments) -> None:
    """Invalid entries: padding, negative and far rows, pages and slots; arguments of at least seven requests."""
    plan = arguments["plan"]
    assert isinstance(plan, Tensor)
    plan[0] = torch.tensor([0, 3, 0, 0])
    plan[1, 1] = -1
    plan[2, 2] = -1
    plan[3, 2:] = torch.tensor([2143289344, 1 << 20])
    plan[4, 1] = 2147483647
    arguments["out_loc"] = torch.tensor([0, 5, 0, 7, -1, 1 << 40, -(1 << 63)])


@dataclass(frozen=True)
class _Step:
    """One step's launch and what it must leave behind.

    Attributes:
        arguments: of the launch to the cache.
        kept: int64 [n], plan entries with a group.
        pooled: float64 [n, head_dim], their pooled rows.
        slots: int64 [n], where they go.
        state: the state after the step's launch.
    """

    world: World
    arguments: Arguments
    kept: Tensor
    pooled: Tensor
    slots: Tensor
    state: Tensor

    def whole(self, op: str, name: str, *, split: bool) -> Case:
        """To the cache; with `split` there is a buffer for pooled rows, and two launches use it."""
        ends = (_tensor(self.arguments, "plan")[self.kept, 0] - 1).tolist()
        judge_cache = stored(self.world, self.slots, self.pooled, ends, f"{name}: cache")

        def judge(outputs: Tensors) -> None:
            judge_cache(outputs)
            check_exact(outputs["state"], self.state, name=f"{name}: state")

        buffer = {"pooled": self.buffer()} if split else {}
        arguments = {**self.arguments, **buffer, "state": self.world.state.clone()}
        return make_case(name, op, arguments, ("cache", "state"), judge)

    def half(self, op: str, name: str) -> Case:
        """The first half alone; pooled rows of entries without a group keep what they hold."""
        source, buffer = _tensor(self.arguments, "source"), self.buffer()
        values = torch.cat([self.world.state.float(), source.float()])
        others = torch.ones(len(buffer), dtype=torch.bool).index_fill(0, self.kept, False)

        def judge(outputs: Tensors) -> None:
            check_pool(outputs["pooled"][self.kept], self.pooled, values, f"{name}: pooled")
            check_exact(outputs["pooled"][others], buffer[others], name=f"{name}: pooled rows without a group")
            check_exact(outputs["state"], self.state, name=f"{name}: state")

        taken = {part: self.arguments[part] for part in ("source", "plan", "bias", "bias_at")}
        arguments = {**taken, "state": self.world.state.clone(), "pooled": buffer.clone()}
        return make_case(name, op, arguments, ("state", "pooled"), judge)

    def buffer(self) -> Tensor:
        """Room for a pooled row per plan entry."""
        return torch.full((len(_tensor(self.arguments, "plan")), self.world.geometry.head_dim), torch.nan)


def decode_cases(
    geometry: Geometry,
    lengths: Sequence[int],
    name: str,
    *,
    options: Options | None = None,
    edit: Callable[[Arguments], None] | None = None,
    split: bool = False,
) -> Iterator[Case]:
    """A decode step, and with `split` its first half too, alone and as the first of two launches; `edit` spoils it."""
    world = filled(geometry, options, len(lengths), max(lengths) + 1)
    extends = tuple(Extend(request, length - 1, length) for request, length in enumerate(lengths))
    arguments = decode_arguments(world, Step(extends, (1,) * len(lengths), True))
    if edit is not None:
        edit(arguments)
    source, plan = _tensor(arguments, "source"), _tensor(arguments, "plan")
    machine = compress_state.Step(geometry, world.bias, world.options.bias_at)
    kept, pooled = compress_state.pooled_decode(machine, world.state, source, plan)
    state = world.state.clone()
    compress_state.write_decode(machine, state, source, plan)
    step = _Step(world, arguments, kept, pooled, _tensor(arguments, "out_loc")[kept], state)
    if split:
        yield step.half("decode_pool", name)
    yield step.whole("decode", name, split=split)


def few_case(batch: int, completing: int) -> Case:
    """The first half of a step of which so many requests complete a group, and which promises that its plan is ready.

    Of those, one has no page and one lies behind the pool; entries beside them are invalid.
    """
    done = [batch - 1 - number * batch // completing for number in range(completing)]
    lengths = [128 if number in done else 1 + number % 127 for number in range(batch)]

    def edit(arguments: Arguments) -> None:
        plan = _tensor(arguments, "plan")
        plan[done[0], 3], plan[done[1], 3] = -1, 1 << 20
        plan[done[0] - 1], plan[done[2] + 1] = -1, torch.tensor([-128, -1, 0, 0])

    options = Options(record="idx_fp8_132")
    name = f"{completing} of {batch} complete a group"
    case = next(decode_cases(Geometry(128, 128), lengths, name, options=options, edit=edit, split=True))
    return replace(case, arguments={**case.arguments, "plan_ready": True})


def prefill_cases(
    geometry: Geometry,
    extends: Sequence[tuple[int, int]],
    name: str,
    *,
    options: Options | None = None,
    split: bool = False,
) -> Iterator[Case]:
    """A prefill step of (prefix, length) per request and the write after it; with `split` its first half too.

    The plan ends with two invalid entries and one whose token lies behind the step's, though `out_loc` has a slot.
    """
    world = filled(geometry, options, len(extends), max(length for _, length in extends) + 1)
    entries = tuple(Extend(request, prefix, length) for request, (prefix, length) in enumerate(extends))
    padded = sum(length - prefix for prefix, length in extends) + 3
    arguments, plans = prefill_arguments(world, Step(entries, (), False), padded=padded)
    source = _tensor(arguments, "source")
    plans.compress[-1] = torch.tensor([geometry.ratio, len(source), 0, 0])
    arguments["out_loc"] = torch.cat([_tensor(arguments, "out_loc"), torch.tensor([1])])
    machine = compress_state.Step(geometry, world.bias, world.options.bias_at)
    kept, pooled = compress_state.pooled_prefill(machine, world.state, source, plans.compress)
    slots = _tensor(arguments, "out_loc")[unpack(plans.compress[kept])[0]]
    step = _Step(world, arguments, kept, pooled, slots, world.state.clone())
    if split:
        yield step.half("prefill_pool", name)
    yield step.whole("prefill", name, split=split)
    yield _write_case(world, machine, source, plans, name)


def _write_case(world: World, machine: compress_state.Step, source: Tensor, plans: PrefillPlan, name: str) -> Case:
    """The rows of the step that later ones need, and entries that name no row of the state or of the step."""
    spoiled = torch.tensor([[65535, 1], [-1, 2], [0, -1], [0, len(world.state)]], dtype=torch.int32)
    write = torch.cat([plans.write, spoiled])
    expected = world.state.clone()
    compress_state.write_rows(machine, expected, source, write)
    arguments = {**write_arguments(world, source, write), "state": world.state.clone()}

    def judge(outputs: Tensors) -> None:
        check_exact(outputs["state"], expected, name=f"{name}: state")

    return make_case(name, "write", arguments, ("state",), judge)


def _tensor(arguments: Arguments, name: str) -> Tensor:
    tensor = arguments[name]
    assert isinstance(tensor, Tensor)
    return tensor


def verification_cases(*, full: bool) -> Iterator[Case]:
    """Cases that reach every op, both ratios, both head dimensions and invalid entries; `full` adds every option."""
    indexer = Options(record="idx_fp8_132", hadamard=True)
    for geometry in (FOUR, MANY):
        r = geometry.ratio
        spoiled = [r, r, 2 * r, 2 * r, r, 3 * r, r - 1]
        yield from decode_cases(geometry, spoiled, f"ratio {r} invalid entries", edit=_spoil)
    yield from decode_cases(INDEXER, [4, 8, 5], "indexer", options=indexer)
    yield from decode_cases(FOUR, [4, 8, 5], "bias in the state", options=Options(bias_at="save"))
    yield from decode_cases(MANY, [128, 255, 256], "two launches", split=True)
    yield few_case(51, 12)
    yield few_case(51, 13)
    yield from prefill_cases(FOUR, [(0, 9), (5, 5), (7, 12)], "ratio 4")
    yield from prefill_cases(INDEXER, [(0, 5), (6, 8)], "indexer", options=indexer)
    yield from prefill_cases(MANY, [(0, 130), (250, 257)], "ratio 128", split=True)
    yield finish_case(FOUR, decode=True)
    yield finish_case(MANY, decode=False, options=Options(dialect="e4m3fnuz"))
    yield finish_case(INDEXER, decode=True, options=Options(record="idx_fp4_68"))
    for record in ("v41_528", "v41_288_inline"):
        yield finish_case(FOUR, decode=False, options=Options(record=record))
    yield from edge_cases()
    yield pool_case(128, masked=True)
    yield pool_case(9, masked=False)
    yield gathered_case(FOUR, "interleaved")
    yield gathered_case(MANY, "split")
    yield online_case("online_decode", [(1, 1), (128, 1), (200, 1)])
    yield online_case("online_prefill", [(100, 100), (128, 28), (256, 128), (140, 3)])
    yield from plan_cases(4, [0, 300, 1, 17], paged=True)
    yield from plan_cases(128, [3, 3, 129], paged=False, windows=2)
    for ratio in (4, 128):
        for extra in (True, False):
            yield from adapter_cases(ratio, extra=extra)
    if full:
        yield from _every_option()


def machine_code_cases(*, full: bool) -> Iterator[Case]:
    """Cases for compiled code: besides those of `verification_cases`, the rest of what ships."""
    yield from verification_cases(full=full)
    yield from prefill_cases(MANY, [(0, 130), (250, 257)], "ratio 128 in one launch")
    yield pool_case(128, masked=True, head_dim=512)
    yield gathered_case(MANY, "interleaved")


def _every_option() -> Iterator[Case]:
    """Every choice of every option once."""
    for options in (
        Options(table="split", dialect="e4m3fnuz", quant_source="f32", floor="amax_1e4"),
        Options(table="two", bias_at="save", floor="amax_1e8"),
        Options(record="bf16", slot_zero="reserved", floor="amax_1e12", state_dtype=torch.bfloat16),
        Options(dialect="e4m3fnuz", fp8_max="limit", floor="scale_1e4", source_dtype=torch.bfloat16),
    ):
        for geometry in (FOUR, MANY):
            r, name = geometry.ratio, f"ratio {geometry.ratio} {options}"
            yield from decode_cases(geometry, [r, 2 * r, 2 * r - 1], name, options=options)
            yield from prefill_cases(geometry, [(0, r + 1), (r - 1, 2 * r)], name, options=options)
    yield finish_case(MANY, decode=True, options=Options(record="uniform_fp8"))
    for record in ("v41_528_inline", "v41_288"):
        yield from decode_cases(FOUR, [4, 8, 7], record, options=Options(record=record, table="split"))
        yield from prefill_cases(MANY, [(0, 129), (127, 256)], record, options=Options(record=record), split=True)
    yield finish_case(MANY, decode=True, options=Options(record="v41_528", dialect="e4m3fnuz", quant_source="f32"))
    yield finish_case(MANY, decode=True, options=Options(record="v41_288", fp4_ties="zero", quant_source="f32"))
    yield finish_case(INDEXER, decode=False, options=Options(record="idx_fp4_68", hadamard=True, fp4_ties="zero"))
