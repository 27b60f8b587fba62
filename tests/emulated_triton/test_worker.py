"""The worker that runs Triton's launches as AMD machine code: arguments, memory, orders, counts, failures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from dsv4gen.base.errors import EmulationError
from dsv4gen.emulate.triton import EmulatedWorker
from tests.tools import need_module

KERNELS = Path(__file__).parent / "kernels.py"
WAVES = {"gfx90a": 64, "gfx942": 64, "gfx950": 64, "gfx1100": 32, "gfx1201": 32}


@pytest.fixture(scope="module", params=WAVES)
def worker(request: pytest.FixtureRequest) -> Iterator[EmulatedWorker]:
    need_module("triton")
    with EmulatedWorker(request.param, WAVES[request.param], lines=True) as started:
        yield started


def test_launcher_numbers_of_every_size_and_memory_of_its_own(worker: EmulatedWorker) -> None:
    source, out = torch.randn(150), torch.full((150,), torch.nan)
    assert worker.call(KERNELS, "twice", source=source, out=out) == "done"
    assert torch.equal(out, -((source * 2 + 2.0**33) * 0.5 - 2.0**32))
    first, second = worker.launches
    assert (first.function, first.grid, first.block) == ("scaled", (3, 1, 1), 4 * worker_wave(worker))
    assert (first.constants["BLOCK"], first.constants["flag"], second.constants["flag"]) == (64, False, True)


def test_a_number_equal_to_one_is_a_constant_and_misalignment_survives(worker: EmulatedWorker) -> None:
    source, out = torch.randn(65)[1:], torch.zeros(64)
    worker.launch(KERNELS, "scaled", [1], source, out, 64, 1.0, 1, flag=False, BLOCK=64)
    assert torch.equal(out, source + 1)
    assert worker.launches[0].constants["wide"] == 1


def test_counts_come_by_class_and_by_source_line(worker: EmulatedWorker) -> None:
    source, out = torch.randn(1024), torch.zeros(1)
    worker.launch(KERNELS, "summed", [1], source, out, BLOCK=1024, num_warps=4)
    assert torch.allclose(out[0], source.sum(), atol=1e-4)
    (launch,) = worker.launches
    assert launch.counters["lds"] > 0 and launch.counters["barriers"] > 0
    assert sum(entry.count for entry in launch.lines) == launch.instructions
    text = KERNELS.read_text(encoding="utf-8").splitlines()
    loads = {entry.lines[-1] for entry in launch.lines if entry.kind == "loads"}
    assert all("tl.load" in text[line - 1] for line in loads)


@pytest.mark.parametrize("order", ["descending", "random:3"])
def test_orders_agree_bit_by_bit(worker: EmulatedWorker, order: str) -> None:
    source, results = torch.randn(1024), []
    for chosen in ("ascending", order):
        out = torch.zeros(1)
        worker.order = chosen
        worker.launch(KERNELS, "summed", [1], source, out, BLOCK=1024, num_warps=4)
        results.append(out)
    worker.order = "ascending"
    assert torch.equal(*results)


def test_an_access_outside_names_the_argument_and_the_line(worker: EmulatedWorker) -> None:
    source, out = torch.randn(1 << 10), torch.zeros(500)
    with pytest.raises(EmulationError, match=r"unmasked: global access out of bounds.* past the end of out") as caught:
        worker.launch(KERNELS, "unmasked", [1], source=source, out=out, BLOCK=1024)
    store = KERNELS.read_text(encoding="utf-8").split("tl.store(out + at, tl.load")[0].count("\n") + 1
    assert f"kernels.py:{store}" in caught.value.message
    worker.launch(KERNELS, "unmasked", [1], source=source, out=torch.zeros(1024), BLOCK=1024)


def test_a_grid_without_programs_and_empty_tensors_launch_nothing(worker: EmulatedWorker) -> None:
    worker.launch(KERNELS, "scaled", [0], torch.empty(0), torch.empty(0), 0, 1.0, 5, flag=False, BLOCK=64)
    assert worker.launches == ()


def test_a_kernel_that_does_not_compile_is_an_error_with_its_name(worker: EmulatedWorker) -> None:
    with pytest.raises(EmulationError, match="unmasked"):
        worker.launch(KERNELS, "unmasked", [1], torch.zeros(100), torch.zeros(100), BLOCK=100)


def worker_wave(worker: EmulatedWorker) -> int:
    """Lanes of a wave of the worker's target."""
    return WAVES[str(worker.describe()[1])]
