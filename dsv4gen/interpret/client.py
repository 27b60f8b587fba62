"""The client's side of the interpreter."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from functools import lru_cache

from dsv4gen.interpret.session import WorkerSession


class InterpreterWorker(WorkerSession):
    """A worker whose kernels run by Triton's interpreter."""

    def __init__(self, *, python_path: Sequence[str] = ()) -> None:
        variables = {"TRITON_INTERPRET": "1"}
        super().__init__("the Triton interpreter", ["dsv4gen.interpret.worker"], variables, python_path=python_path)


@lru_cache(maxsize=1)
def shared_worker() -> InterpreterWorker:
    """One worker for this process, stopped when the process ends."""
    worker = InterpreterWorker()
    atexit.register(worker.close)
    return worker
