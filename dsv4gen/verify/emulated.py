"""`dsv4gen emulate`: one call of an op on the emulated GPU, compared with the reference, counted."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dsv4gen.base import extensions
from dsv4gen.base.errors import (
    ArgumentError,
    CompileError,
    EmulationError,
    LoadError,
    UsageError,
    VerifyError,
    did_you_mean,
)
from dsv4gen.console import say, table
from dsv4gen.emit.build import make_plans
from dsv4gen.emit.manifest import family_json, target_json
from dsv4gen.emit.select import select_target
from dsv4gen.emulate.amdgcn import Kernel
from dsv4gen.emulate.amdgcn.launch import Options
from dsv4gen.emulate.triton import Launch
from dsv4gen.plan.ir import FamilyPlan
from dsv4gen.reference.workload import Request, Workload
from dsv4gen.runtime.dispatch import (
    check_shape,
    choose_variant,
    complete_options,
    host_axes,
    names_in_bounds,
    usual_facts,
)
from dsv4gen.spec import load_specs
from dsv4gen.target import TargetRecord, resolve_target
from dsv4gen.verify.amdgcn import AmdgcnFamily
from dsv4gen.verify.count_tables import NO_LINE, by_function, kind_of
from dsv4gen.verify.triton_machine import TritonMachine

#: verdict on a kernel whose results nothing is compared with
CLEAN = "clean: no race, no access out of bounds"


@dataclass(frozen=True)
class LaunchCounts:
    """One emulated launch: executed wave instructions and counters by name; counts, never time."""

    symbol: str
    grid: tuple[int, int, int]
    block: int
    instructions: int
    counters: Mapping[str, int]
    seconds: float
    #: where the text has debug lines: function of the module -> counts by kind of instruction
    functions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Emulation:
    """What a call did: its launches, and why it is wrong, if it is."""

    family: str
    target: str
    case: str
    launches: tuple[LaunchCounts, ...]
    problem: str
    verdict: str = "right: equal to the reference, no race, no access out of bounds"
    #: what counts are also given for one of, and how many of it the call has
    unit: tuple[str, int] = ("", 1)

    def to_json(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        launches = [
            {**vars(launch), "counters": dict(launch.counters), "functions": dict(launch.functions)}
            for launch in self.launches
        ]
        return {**vars(self), "launches": launches}

    def show(self) -> None:
        """Print for people."""
        say(f"{self.family} on {self.target} (emulated): {self.case}", "head")
        for launch in self.launches:
            grid = " x ".join(map(str, launch.grid))
            say(f"launch {launch.symbol} grid {grid} block {launch.block}: {launch.instructions:,} wave instructions")
            table(("counter", "count"), sorted(launch.counters.items()))
            if launch.functions:
                say()
                table(*by_function(launch.functions, *self.unit))
        if self.problem:
            say(f"WRONG: {self.problem}", "bad")
        else:
            say(self.verdict, "good")


def emulate_shape(
    family: str,
    target: str,
    op: str | None,
    shape: Mapping[str, int],
    options: Mapping[str, str],
    order: str,
    *,
    variant: str = "",
    path: str = "",
) -> Emulation:
    """Run one call with random inputs of a shape.

    Args:
        variant, path: what to take instead of what dispatch chooses; of HIP families only.

    Raises:
        UsageError: an unknown family, variant or path, several targets, one that is not AMD, a family without
            emulated calls.
        LoadError: the path that was asked for is not right for the shape.
        ToolMissing: no compiler for the target.
    """
    Options(order=order).resolved_order()
    specs = load_specs(*extensions.spec_folders())
    if family not in specs.families:
        raise UsageError(f"no family {family!r}{did_you_mean(family, specs.families)}")
    name = select_target(target)
    record = resolve_target(specs, name)
    if record.detect.api != "hip":
        raise UsageError(f"{target} is no AMD target; the emulator runs AMD machine code", remedy="try --target gfx950")
    (plan,) = make_plans(specs, name, [family])
    ops = [one.name for one in plan.ops]
    if op and op not in ops:
        raise UsageError(f"{family} has no op {op!r}{did_you_mean(op, ops)}", remedy=f"ops: {', '.join(ops)}")
    if record.evidence != "emulated":
        raise UsageError(
            f"{name} is compile-only: the emulator does not execute it", remedy=f"run: dsv4gen verify -t {name}"
        )
    _check_choice(plan, op or plan.main, variant, path)
    _check_sizes(plan, shape, options)
    if plan.language == "triton":
        return emulate_triton(plan, record, op or plan.main, shape, options, order)
    cases = importlib.import_module(f"dsv4gen.reference.{plan.reference}_cases")
    if not hasattr(cases, "shape_case"):
        raise UsageError(f"{family} has no calls by shape yet", remedy=f"run: dsv4gen verify -t {name} -f {family}")
    case = cases.shape_case(op or plan.main, shape, options, order)
    oracle = AmdgcnFamily(plan, record)
    oracle.device = usual_facts(target_json(plan.target))
    problem = ""
    try:
        oracle.run(case, variant=variant or choose_variant(oracle.entry)[0], path=path, order=order, like=shape)
    except (VerifyError, EmulationError) as error:
        problem = str(error)
    except LoadError as error:
        remedy = f"leave out --path {path}, or see what it takes: dsv4gen explain {family} -t {name} ..."
        raise LoadError(error.message, remedy=remedy if path else error.remedy) from error
    launches = tuple(
        LaunchCounts(x.symbol, x.grid, x.block, r.instructions, r.counters, r.seconds) for x, r in oracle.results
    )
    stands_for = f"; paths and tiles of batch={shape['batch']}" if shape.get("batch", 1) > 1 else ""
    return Emulation(family, record.device, case.name + stands_for, launches, problem)


def _check_choice(plan: FamilyPlan, op: str, variant: str, path: str) -> None:
    """Refuse a variant or path that the op does not have.

    Raises:
        UsageError: such a one, or any of a Triton family.
    """
    if plan.language == "triton" and (variant or path):
        remedy = "leave out --variant and --path"
        raise UsageError(f"{plan.family} is a Triton family, whose launcher chooses paths itself", remedy=remedy)
    known = {"variant": plan.variants.choices, "path": [one.name for one in plan.op(op).launch_paths]}
    for what, value in (("variant", variant), ("path", path)):
        if value and value not in known[what]:
            remedy = f"{what}s: {', '.join(known[what])}"
            raise UsageError(f"{plan.family} has no {what} {value!r}{did_you_mean(value, known[what])}", remedy=remedy)


def _check_sizes(plan: FamilyPlan, shape: Mapping[str, int], options: Mapping[str, str]) -> None:
    """Refuse values of the family's axes and options before memory is made for them; other names are the case's own.

    Raises:
        ArgumentError: a size that is no whole number or out of range, or a choice that an option does not have.
    """
    entry = family_json(plan)
    axes = host_axes(entry)
    complete_options(entry, {name: value for name, value in options.items() if name in {*axes, *entry["options"]}})
    known = {*shape, *entry["constants"]}
    bounded = [name for name in axes if names_in_bounds(entry, [name]) <= known] + list(entry["options"])
    check_shape(entry, {name: value for name, value in shape.items() if name in bounded})


def emulate_triton(
    plan: FamilyPlan,
    record: TargetRecord,
    op: str,
    shape: Mapping[str, int],
    options: Mapping[str, str],
    order: str,
) -> Emulation:
    """Run one call of a Triton family with the inputs that `bench` times; counts by function of the module.

    Raises:
        UsageError: a family without such inputs.
        ArgumentError: a size or an option that the op does not have.
        ToolMissing: no Triton.
    """
    nothing = [name for name, size in shape.items() if size < 1]
    if nothing:
        raise ArgumentError(f"{nothing[0]}={shape[nothing[0]]} leaves nothing to run", remedy="give 1 or more")
    request = Request(plan.family, op, shape, complete_options(family_json(plan), options), plan.constants, "cpu")
    work = _workload(plan, request)
    call = work.make()[0]
    before = {name: value.clone() if hasattr(value, "clone") else value for name, value in call.arguments.items()}
    problem = ""
    with TritonMachine(plan, record, lines=True) as machine:
        taken = machine.parameters(op)
        chosen = {name: value for name, value in request.options.items() if name in taken}
        try:
            machine.call(op, {**chosen, **call.arguments}, order)
            work.judge(before, call.arguments)
        except (VerifyError, EmulationError) as error:
            problem = str(error)
        launches = tuple(_counts(machine, launch) for launch in machine.launches)
    title = " ".join([op, *(f"{name}={value}" for name, value in {**shape, **options}.items())])
    return Emulation(plan.family, record.device, title, launches, problem, unit=work.unit)


def _workload(plan: FamilyPlan, request: Request) -> Workload:
    import torch

    try:
        module = importlib.import_module(f"dsv4gen.reference.{plan.reference}_bench")
    except ModuleNotFoundError:
        remedy = f"run: dsv4gen verify -t {plan.target.name} -f {plan.family}"
        raise UsageError(f"{plan.family} has no calls by shape yet", remedy=remedy) from None
    torch.manual_seed(0)
    work: Workload = module.workload(request)
    return work


def _counts(machine: TritonMachine, launch: Launch) -> LaunchCounts:
    functions: dict[str, Counter[str]] = {}
    for entry in launch.lines:
        name = machine.function_at(entry.lines[0]) if entry.lines else ""
        functions.setdefault(name or NO_LINE, Counter())[kind_of(entry.kind)] += entry.count
    return LaunchCounts(
        launch.function, launch.grid, launch.block, launch.instructions, launch.counters, launch.seconds, functions
    )


def emulate_code_object(
    file: Path, symbol: str, grid: tuple[int, ...], block: int, arguments: list[str], lds: int, order: str
) -> Emulation:
    """Run a kernel of any hsaco with arguments described in words.

    An argument is `i32:5`, `u32:5`, `i64:5`, `u64:5`, `f32:0.5`, `f32[4096]` or `i32[512]=-1` (an array of random
    or of equal numbers), or `null`.

    Raises:
        UsageError: an argument that is none of these, an unreadable file, or one without that kernel.
    """
    from dsv4gen.verify.argument_words import parse_argument

    Options(order=order).resolved_order()
    try:
        binary = file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    try:
        kernel = Kernel.from_code_object(binary, symbol)
    except CompileError as error:
        raise UsageError(f"{file} has no kernel {symbol!r} that runs here: {error.message}") from error
    values = [parse_argument(word, number) for number, word in enumerate(arguments)]
    result = kernel.run(grid, block, values, lds=lds, order=order)
    x, y, z = (*grid, 1, 1, 1)[:3]
    counts = LaunchCounts(symbol, (x, y, z), block, result.instructions, result.counters, result.seconds)
    target = kernel.program.descriptor.target
    return Emulation(file.name, target, " ".join(arguments), (counts,), "\n".join(result.problems), CLEAN)
