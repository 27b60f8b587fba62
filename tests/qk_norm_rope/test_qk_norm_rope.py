"""Shipped qk_norm_rope modules against the reference, on Triton's interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import dsv4gen
from dsv4gen.base.errors import ArgumentError, VerifyError
from dsv4gen.emit.manifest import family_json
from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference.qk_norm_rope_case import Case, Setting, build_case
from dsv4gen.reference.qk_norm_rope_cases import machine_code_cases, verification_cases
from dsv4gen.runtime.arguments import check as check_arguments
from dsv4gen.runtime.dispatch import complete_options
from dsv4gen.runtime.read_table import make_table
from tests.qk_norm_rope import checks
from tests.qk_norm_rope.modules import module, plan, tiled_module
from tests.triton.modules import module as gather_module

TARGET = "gfx950"
#: calls that rightly write nothing
SILENT = ("no tokens", "nothing valid")
MISTAKES = {
    "layout": ({"table": "two"}, r"cosines: shape \(40, 64\) with table='two'"),
    "sines": ({"sines": torch.zeros(40, 64)}, "sines are given with table='interleaved'"),
    "table": ({"table": "spilt"}, "not one of interleaved, split, two"),
    "queries twice": ({"partials": torch.zeros(2, 3, 5, 512)}, "both given"),
    "no output": ({"q_out": None}, "q_out is missing"),
    "no splits": ({"q": None, "partials": torch.zeros(0, 3, 5, 512)}, r"partials: shape \(0, 3, 5, 512\)"),
    "weight without norm": ({"q_norm": "off", "q_weight": torch.ones(512)}, "q_norm='off'"),
    "page": ({"page_size": 1000}, "too small for 1000 records"),
    "positions": ({"positions": torch.zeros(2, dtype=torch.int64)}, r"positions: shape \(2,\)"),
    "keys": ({"kv": torch.zeros(3, 256, dtype=torch.bfloat16)}, r"kv: shape \(3, 256\)"),
    "record": ({"record": "v4_528"}, "not one of v4_584, bf16"),
}


@pytest.mark.parametrize("name", [name for name in checks.CHECKS if name != "large"])
def test_checks(worker: InterpreterWorker, name: str) -> None:
    """All but those of thousands of programs, which are for compiled code; `test_other_tiles` has their tiles."""
    checks.CHECKS[name](worker, module(TARGET))


def test_cases_for_compiled_code_take_every_tile() -> None:
    chosen = plan(TARGET)
    settings = [case.setting for case in machine_code_cases(full=False)]
    for op in chosen.ops:
        mine = [setting for setting in settings if setting.op == op.name]
        kernel = chosen.kernel(op.launch_paths[0].launches[0].kernel)
        shapes = [{**chosen.constants, "tokens": setting.tokens, "heads": setting.heads} for setting in mine]
        taken = {next(n for n, bucket in enumerate(kernel.buckets) if bucket.when.evaluate(shape)) for shape in shapes}
        assert taken == set(range(len(kernel.buckets))), op.name


@pytest.mark.parametrize("case", [*verification_cases(full=False)], ids=lambda case: case.name.replace(" ", "-"))
def test_a_call_that_was_not_made_is_rejected(worker: InterpreterWorker, case: Case) -> None:
    """A case passes after its call and only then, and so does the same call made afresh."""
    if not case.name.endswith(SILENT):
        with pytest.raises(VerifyError):
            case.check()
    for call in (case, case.fresh()):
        worker.call(module(TARGET), call.op, **dict(call.arguments))
        call.check()


@pytest.mark.parametrize("tile", [(1, 4, 1), (2, 2, 1), (4, 4, 4), (8, 1, 4)], ids=str)
def test_other_tiles(worker: InterpreterWorker, tile: tuple[int, int, int]) -> None:
    """Any number of heads a program, in steps or at once."""
    for group in ("norm", "queries", "fused"):
        checks.run_group(worker, tiled_module(TARGET, *tile), group=group)


def test_the_argument_table_takes_every_case() -> None:
    """What `load` checks before a launch accepts the calls that the kernels are right for."""
    entry = family_json(plan(TARGET))
    for case in verification_cases(full=True):
        table = make_table("qk_norm_rope", entry, case.op, complete_options(entry, case.options))
        bound = check_arguments(table, case.arguments, on_cuda=False)
        assert bound.sizes["tokens"] == case.setting.tokens


def test_the_reference_target_passes_every_case() -> None:
    """`load(..., target="reference")` takes the same calls and leaves what the cases expect."""
    for case in verification_cases(full=True):
        loaded = dsv4gen.load("qk_norm_rope", target="reference", **case.options)
        loaded.op(case.op)(**{name: v for name, v in case.arguments.items() if name not in case.options})
        case.check()


def test_verification_cases_reach_every_op_and_option() -> None:
    assert {case.op for case in verification_cases(full=False)} == {op.name for op in plan(TARGET).ops}
    chosen = [case.options for case in verification_cases(full=True)]
    for option in plan(TARGET).options:
        assert {options.get(option.name, option.default) for options in chosen} == set(option.choices), option.name


@pytest.mark.parametrize(("wrong", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_named(worker: InterpreterWorker, wrong: dict[str, Any], message: str) -> None:
    case = build_case("a call", Setting("qk_norm_rope_store"))
    with pytest.raises(ArgumentError, match=message):
        worker.call(module(TARGET), case.op, **{**case.arguments, **wrong})


@pytest.mark.parametrize("head_dim", [32, 192])
def test_rotation_needs_a_power_of_two(worker: InterpreterWorker, head_dim: int) -> None:
    case = build_case("a call", Setting("q_norm_rope"))
    heads = torch.zeros(3, 5, head_dim, dtype=torch.bfloat16)
    with pytest.raises(ArgumentError, match=f"heads of {head_dim} dimensions"):
        worker.call(module(TARGET), case.op, **{**case.arguments, "q": heads, "q_out": heads})


def test_one_launch_gives_the_bytes_of_two(worker: InterpreterWorker) -> None:
    """Queries and cache do not depend on whether they share a launch, nor on how many heads a program takes."""
    path: Path = module(TARGET)
    setting = Setting("qk_norm_rope_store", kv_out=True)
    fused, split = (dict(build_case("a call", setting).arguments) for _ in range(2))
    worker.call(path, "qk_norm_rope_store", **fused)
    shared = ("cosines", "positions")
    worker.call(path, "q_norm_rope", **{name: split[name] for name in ("q", "q_out", *shared)}, eps=split["q_eps"])
    names = ("kv", "kv_weight", "kv_out", "slots", "cache", "page_size", *shared)
    worker.call(path, "k_norm_rope_store", **{name: split[name] for name in names}, eps=split["kv_eps"])
    for name in ("q_out", "kv_out", "cache"):
        mine, other = fused[name], split[name]
        assert isinstance(mine, torch.Tensor) and isinstance(other, torch.Tensor)
        assert torch.equal(mine, other), name


def test_stored_keys_are_read_back(worker: InterpreterWorker) -> None:
    """What this writer stores the gather kernel reads: the rotated part exactly, the rest to FP8's precision."""
    case = build_case("a call", Setting("k_norm_rope_store", tokens=3, kv_out=True))
    worker.call(module(TARGET), case.op, **dict(case.arguments))
    slots, rows = case.arguments["slots"], case.arguments["kv_out"]
    assert isinstance(slots, torch.Tensor) and isinstance(rows, torch.Tensor)
    out, mask = torch.zeros(1, 3, 512, dtype=torch.bfloat16), torch.ones(1, 3, dtype=torch.bool)
    reader = {"cache": case.arguments["cache"], "page_size": case.arguments["page_size"], "indices": slots[None]}
    worker.call(gather_module(TARGET), "gather", **reader, out=out, mask=mask)
    assert torch.equal(out[0, :, 448:], rows[:, 448:])
    assert torch.allclose(out[0].float(), rows.float(), rtol=1 / 15, atol=1e-2)
