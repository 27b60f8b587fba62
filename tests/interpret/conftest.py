"""One worker for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsv4gen.interpret import InterpreterWorker, shared_worker
from tests.tools import need_module

KERNELS = Path(__file__).with_name("kernels.py")


@pytest.fixture(scope="session")
def worker() -> InterpreterWorker:
    need_module("triton")
    return shared_worker()
