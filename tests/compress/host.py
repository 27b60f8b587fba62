"""The host functions of a generated compress module, run in this process: nothing in them is launched."""

from __future__ import annotations

import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import torch

from dsv4gen.base.errors import ArgumentError, VerifyError
from dsv4gen.interpret import InterpreterWorker
from tests.tools import need_module


@lru_cache
def loaded(path: Path) -> ModuleType:
    """The module itself."""
    need_module("triton")
    spec = importlib.util.spec_from_file_location(f"compress_on_host_{abs(hash(path))}", path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


def online_plans(worker: InterpreterWorker, module: Path) -> None:  # noqa: ARG001
    """B8: an extend of no tokens gives no segment and is no mistake; the others are cut where chunks end."""
    seq_lens, extends, rows = torch.tensor([300, 5, 128]), torch.tensor([200, 0, 1]), torch.tensor([4, 5, 6])
    try:
        closing, staying = loaded(module).host_plan_online(seq_lens, extends, rows)
    except ArgumentError as error:
        raise VerifyError(f"an empty extend is refused: {error}") from error
    ends = [[128, 27 | 28 << 16, 4, 4], [256, 155 | 128 << 16, 4, 4], [128, 200 | 1 << 16, 6, 6]]
    if closing.tolist() != ends or staying.tolist() != [[300, 199 | 44 << 16, 4, 4]]:
        raise VerifyError(f"segments {closing.tolist()} and {staying.tolist()}")
