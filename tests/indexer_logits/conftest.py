"""One interpreter worker for all tests of this folder."""

from __future__ import annotations

import pytest

from dsv4gen.interpret import InterpreterWorker, shared_worker
from tests.tools import need_module


@pytest.fixture(scope="session")
def worker() -> InterpreterWorker:
    need_module("triton")
    return shared_worker()
