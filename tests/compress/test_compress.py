"""Shipped compress modules against the reference, on Triton's interpreter."""

from __future__ import annotations

import pytest

from dsv4gen.interpret import InterpreterWorker
from tests.compress import checks
from tests.compress.modules import module
from tests.compress.readers import round_trip

TARGET = "gfx950"
CHECKS = {**checks.CHECKS, "round_trip": round_trip}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_checks(worker: InterpreterWorker, check: checks.Check) -> None:
    check(worker, module(TARGET))
