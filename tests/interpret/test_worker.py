"""The worker runs calls in place, survives crashes, and turns every failure into an error that says where."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from dsv4gen.base.errors import ArgumentError, EmulationError
from dsv4gen.interpret import InterpreterWorker
from tests.interpret.conftest import KERNELS


def test_results_arrive_in_the_callers_tensors(worker: InterpreterWorker) -> None:
    values, results = torch.arange(100, dtype=torch.float32), torch.zeros(100)
    worker.launch(KERNELS, "add_one", [7], values, results, 100, BLOCK=16)
    assert torch.equal(results, values + 1)


def test_strides_offsets_and_aliases_survive(worker: InterpreterWorker) -> None:
    buffer = torch.zeros(40)
    worker.launch(KERNELS, "add_one", [1], buffer[3:11], buffer[20:28], 8, BLOCK=8)
    assert torch.equal(buffer[20:28], torch.ones(8))
    assert buffer.sum() == 8
    worker.launch(KERNELS, "add_one", [1], buffer[20:28], buffer[20:28], 8, BLOCK=8)
    assert torch.equal(buffer[20:28], torch.full((8,), 2.0))


@pytest.mark.parametrize("offset", [0, 1, 3])
def test_misalignment_survives(worker: InterpreterWorker, offset: int) -> None:
    values = torch.arange(64, dtype=torch.int32)[offset : offset + 8]
    assert worker.call(KERNELS, "total", values) == values.sum().item()


def test_empty_tensors_and_plain_values(worker: InterpreterWorker) -> None:
    assert worker.call(KERNELS, "total", torch.empty(0, 5)) == 0.0
    results = torch.zeros(4)
    worker.launch(KERNELS, "add_one", [0], torch.zeros(4), results, 4, BLOCK=4)
    assert torch.equal(results, torch.zeros(4))


def test_many_calls_are_cheap(worker: InterpreterWorker) -> None:
    values, results = torch.zeros(8), torch.zeros(8)
    for _ in range(100):
        worker.launch(KERNELS, "add_one", [1], values, results, 8, BLOCK=8, timeout_s=2.0)
        values, results = results, values
    assert torch.equal(values, torch.full((8,), 100.0))


def test_store_past_the_end_is_reported_not_performed(worker: InterpreterWorker) -> None:
    buffer = torch.zeros(64)
    with pytest.raises(EmulationError, match=r"store of 4 bytes outside every argument.* 4 lanes") as caught:
        worker.launch(KERNELS, "add_one", [1], torch.zeros(16), buffer[:12], 16, BLOCK=16)
    assert caught.value.place is not None and caught.value.place.file == "kernels.py"
    assert torch.equal(buffer, torch.zeros(64))


def test_load_before_the_start_and_atomics_are_reported(worker: InterpreterWorker) -> None:
    with pytest.raises(EmulationError, match="load of 4 bytes outside every argument"):
        worker.launch(KERNELS, "add_one", [1], torch.zeros(4), torch.zeros(8), 8, BLOCK=8)
    counters = torch.zeros(4, dtype=torch.int32)
    worker.launch(KERNELS, "count_up", [3], counters, 2)
    assert counters.tolist() == [0, 0, 3, 0]
    with pytest.raises(EmulationError, match=r"atomic .* 4 bytes before an argument of 16 bytes"):
        worker.launch(KERNELS, "count_up", [1], counters, -1)


def test_a_tensor_longer_than_memory_costs_nothing(worker: InterpreterWorker) -> None:
    pool = worker.allocate(1 << 36)
    far = pool[(1 << 35) : (1 << 35) + 32].view(torch.float32)
    far.copy_(torch.arange(8))
    results = torch.zeros(8)
    worker.launch(KERNELS, "add_one", [1], far, results, 8, BLOCK=8)
    worker.launch(KERNELS, "add_one", [1], results, far, 8, BLOCK=8)
    assert torch.equal(far, torch.arange(8) + 2.0)


def test_time_limit(worker: InterpreterWorker) -> None:
    with pytest.raises(EmulationError, match=r"did not finish sleep within 0.2 s"):
        worker.call(KERNELS, "sleep", 30, timeout_s=0.2)
    assert worker.call(KERNELS, "total", torch.ones(3)) == 3.0


def test_crash_names_the_signal_and_the_next_call_works(worker: InterpreterWorker) -> None:
    with pytest.raises(EmulationError, match=r"died in die \(killed by signal 11\)"):
        worker.call(KERNELS, "die")
    assert worker.call(KERNELS, "total", torch.ones(3)) == 3.0


def test_errors_of_the_catalogue_keep_their_class(worker: InterpreterWorker) -> None:
    with pytest.raises(ArgumentError, match="out has stride 2") as caught:
        worker.call(KERNELS, "refuse")
    assert caught.value.remedy == "pass a contiguous tensor"


def test_unknown_function_and_unpassable_argument(worker: InterpreterWorker) -> None:
    with pytest.raises(EmulationError, match="no_such_kernel"):
        worker.launch(KERNELS, "no_such_kernel", [1])
    with pytest.raises(ArgumentError, match="cannot pass a object"):
        worker.call(KERNELS, "total", object())


def test_a_rewritten_module_runs_at_once(worker: InterpreterWorker, tmp_path: Path) -> None:
    module = tmp_path / "generated.py"
    for number in range(3):
        module.write_text(f"def answer():\n    return {number}\n")
        assert worker.call(module, "answer") == number


def test_versions_are_told(worker: InterpreterWorker) -> None:
    assert [entry.split()[0] for entry in worker.describe()] == ["triton", "torch", "numpy"]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_functions_of_a_kernel_reduce_slices_in_order(
    worker: InterpreterWorker, dtype: torch.dtype, axis: int, keep: bool
) -> None:
    """The second part depends on the order: halved at each step."""
    values = torch.randn(16, 4, generator=torch.Generator().manual_seed(axis)).to(dtype)
    kept = 16 if axis else 4
    largest, totals = torch.zeros(kept, dtype=dtype), torch.zeros(kept)
    sizes = {"ROWS": 16, "COLUMNS": 4, "AXIS": axis, "KEEP": keep}
    worker.launch(KERNELS, "reduce_pairs", [1], values, largest, totals, **sizes)
    expected = torch.zeros(kept)
    for part in values.float().unbind(axis):
        expected = expected * 0.5 + part
    assert torch.equal(largest, values.amax(axis))
    assert torch.equal(totals, expected)


def test_a_line_reduces_to_a_number(worker: InterpreterWorker) -> None:
    result = torch.zeros(1)
    worker.launch(KERNELS, "reduce_line", [1], torch.tensor([1.0, 2.0, 3.0, 4.0]), result, COUNT=4)
    assert result.item() == 0.125 + 0.5 + 1.5 + 4.0
