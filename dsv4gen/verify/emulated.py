"""`dsv4gen emulate`: one call of an op on the emulated GPU, compared with the reference, counted."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsv4gen.base import extensions
from dsv4gen.base.errors import EmulationError, UsageError, VerifyError, did_you_mean
from dsv4gen.console import say, table
from dsv4gen.emit.build import make_plans
from dsv4gen.emit.select import select_targets
from dsv4gen.emulate.amdgcn import Kernel
from dsv4gen.spec import load_specs
from dsv4gen.target import resolve_target
from dsv4gen.verify.amdgcn import AmdgcnFamily

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


@dataclass(frozen=True)
class Emulation:
    """What a call did: its launches, and why it is wrong, if it is."""

    family: str
    target: str
    case: str
    launches: tuple[LaunchCounts, ...]
    problem: str
    verdict: str = "right: equal to the reference, no race, no access out of bounds"

    def to_json(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        launches = [{**vars(launch), "counters": dict(launch.counters)} for launch in self.launches]
        return {**vars(self), "launches": launches}

    def show(self) -> None:
        """Print for people."""
        say(f"{self.family} on {self.target} (emulated): {self.case}", "head")
        for launch in self.launches:
            grid = " x ".join(map(str, launch.grid))
            say(f"launch {launch.symbol} grid {grid} block {launch.block}: {launch.instructions:,} wave instructions")
            table(("counter", "count"), sorted(launch.counters.items()))
        if self.problem:
            say(f"WRONG: {self.problem}", "bad")
        else:
            say(self.verdict, "good")


def emulate_shape(
    family: str, target: str, op: str | None, shape: Mapping[str, int], options: Mapping[str, str], order: str
) -> Emulation:
    """Run one call with random inputs of a shape.

    Raises:
        UsageError: an unknown family, a target that is not AMD, a family without emulated calls.
        ToolMissing: no compiler for the target.
    """
    specs = load_specs(*extensions.spec_folders())
    if family not in specs.families:
        raise UsageError(f"no family {family!r}{did_you_mean(family, specs.families)}")
    (name,) = select_targets([target])
    record = resolve_target(specs, target)
    if record.detect.api != "hip":
        raise UsageError(f"{target} is no AMD target; the emulator runs AMD machine code", remedy="try --target gfx950")
    (plan,) = make_plans(specs, name, [family])
    cases = importlib.import_module(f"dsv4gen.reference.{plan.reference}_cases")
    if plan.language != "hip_cuda" or not hasattr(cases, "shape_case"):
        raise UsageError(f"{family} has no calls by shape yet", remedy=f"run: dsv4gen verify --family {family}")
    case = cases.shape_case(op or plan.ops[0].name, shape, options)
    oracle = AmdgcnFamily(plan, record)
    problem = ""
    try:
        oracle.run(case, order=order)
    except (VerifyError, EmulationError) as error:
        problem = str(error)
    launches = tuple(
        LaunchCounts(x.symbol, x.grid, x.block, r.instructions, r.counters, r.seconds) for x, r in oracle.results
    )
    return Emulation(family, record.device, case.name, launches, problem)


def emulate_code_object(
    file: Path, symbol: str, grid: tuple[int, ...], block: int, arguments: list[str], lds: int, order: str
) -> Emulation:
    """Run a kernel of any hsaco with arguments described in words.

    An argument is `i32:5`, `u32:5`, `i64:5`, `u64:5`, `f32:0.5`, `f32[4096]` or `i32[512]=-1` (an array of random
    or of equal numbers), or `null`.

    Raises:
        UsageError: an argument that is none of these, or an unreadable file.
    """
    from dsv4gen.verify.argument_words import parse_argument

    try:
        binary = file.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    kernel = Kernel.from_code_object(binary, symbol)
    values = [parse_argument(word, number) for number, word in enumerate(arguments)]
    result = kernel.run(grid, block, values, lds=lds, order=order)
    x, y, z = (*grid, 1, 1, 1)[:3]
    counts = LaunchCounts(symbol, (x, y, z), block, result.instructions, result.counters, result.seconds)
    target = kernel.program.descriptor.target
    return Emulation(file.name, target, " ".join(arguments), (counts,), "\n".join(result.problems), CLEAN)
