"""Shipped compress modules against the reference, on Triton's interpreter."""

from __future__ import annotations

import pytest

from dsv4gen.base.errors import VerifyError
from dsv4gen.interpret import InterpreterWorker
from dsv4gen.reference.compress_case import Case
from dsv4gen.reference.compress_cases import verification_cases
from tests.compress import checks
from tests.compress.host import online_plans
from tests.compress.modules import module, plan
from tests.compress.readers import round_trip
from tests.compress.v1 import adapted_plans

TARGET = "gfx950"
CHECKS = {**checks.CHECKS, "round_trip": round_trip, "online_plans": online_plans, "adapted_plans": adapted_plans}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_checks(worker: InterpreterWorker, check: checks.Check) -> None:
    check(worker, module(TARGET))


@pytest.mark.parametrize("case", [*verification_cases(full=False)], ids=lambda case: case.name.replace(" ", "-"))
def test_verification_cases(worker: InterpreterWorker, case: Case) -> None:
    """What `verify` runs passes; a call that was not made does not, also after the same one made afresh."""
    call = case.fresh()
    worker.call(module(TARGET), call.op, **dict(call.arguments))  # type: ignore[arg-type]
    call.check()
    with pytest.raises(VerifyError):
        case.check()


def test_verification_cases_reach_every_op_and_option() -> None:
    assert {case.op for case in verification_cases(full=False)} == {op.name for op in plan(TARGET).ops}
    chosen = [case.options for case in verification_cases(full=True)]
    for option in plan(TARGET).options:
        assert {options.get(option.name, option.default) for options in chosen} == set(option.choices), option.name
