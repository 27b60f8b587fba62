"""What a module does where launches overlap: held loads, and calls under the promises that callers may make.

The interpreter runs one launch after the other, so that promises must change nothing; that loads which a promise moves
in front of the wait are all that stand there is read in machine code (tests/triton/test_dependent_launch.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import torch

from dsv4gen.interpret import InterpreterWorker
from tests.compress import checks, stages
from tests.compress.modules import module

TARGET = "sm_90"
#: ops and the promise that each takes
READS_PLANS = ("decode", "decode_pool", "prefill", "prefill_pool")
PROMISES = {**dict.fromkeys(READS_PLANS, "plan_ready"), "write": "after_prefill"}
CHECKS = (
    checks.schedules_four, checks.schedules_many, checks.invalid_decode, checks.infinite_scores, checks.option_choices,
    checks.options_in_prefill, stages.ragged_bounds, stages.shared_groups,
)  # fmt: skip


class Promising:
    """A worker whose calls make every promise that they can; steps of ratio 128 in two launches if `split`."""

    def __init__(self, worker: InterpreterWorker, *, split: bool) -> None:
        self.worker, self.split, self.made = worker, split, set[str]()

    def call(self, path: Path, op: str, **keywords: Any) -> Any:
        if op in PROMISES:
            keywords[PROMISES[op]] = True
            self.made.add(op)
        if self.split and keywords.get("ratio") == 128 and op in ("decode", "prefill"):
            keywords["pooled"] = torch.full((len(keywords["plan"]), 512), torch.nan)
        return self.worker.call(path, op, **keywords)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.worker, name)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_promises_change_nothing(worker: InterpreterWorker, check: checks.Check) -> None:
    promising = Promising(worker, split=True)
    check(cast(InterpreterWorker, promising), module(TARGET))
    assert promising.made


def test_one_launch_under_promises(worker: InterpreterWorker) -> None:
    checks.schedules_many(cast(InterpreterWorker, Promising(worker, split=False)), module(TARGET))


def test_without_promises(worker: InterpreterWorker) -> None:
    checks.options_in_prefill(worker, module(TARGET))
