"""Directed cases: bug reports replayed, clamping of lengths, reads that must not happen, and the steps of a row."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from dsv4gen.reference.topk_cases import Case, Problem, bits_of, build_problem
from dsv4gen.reference.topk_rows import WINDOWED
from dsv4gen.reference.topk_scores import SCORES, Draw
from tests.topk.host import HostTopk, labels, topk_plan
from tests.topk.windows import run_windows

LABELS = labels(topk_plan())


def problem_of(case: Case, row: Tensor) -> Problem:
    """The case's problem with the first row's scores replaced."""
    problem = build_problem(case)
    problem.rows.valid(0).copy_(row)
    return replace(problem, scores_before=bits_of(problem.scores))


def launch(host: HostTopk, problem: Problem) -> None:
    host.launch(problem)
    problem.check()


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize(("length", "k"), [(65536, 512), (65536, 2048), (120000, 1024)])
def test_one_bin_holds_the_whole_row(host: HostTopk, label: str, length: int, k: int) -> None:
    host.run(Case(label, "one_bin", length, k))


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("winners", [0, 100, 2047])
def test_thousands_of_equal_scores(host: HostTopk, label: str, winners: int) -> None:
    row = torch.zeros(8320)
    row[torch.randperm(8320, generator=torch.Generator().manual_seed(winners))[:winners]] = 1.0
    for base in (row, row - 3, torch.where(torch.arange(8320) % 2 == 0, row, -row)):
        launch(host, problem_of(Case(label, "normal", 8320, 2048), base))


@pytest.mark.parametrize("label", LABELS)
def test_few_numbers_among_nan(host: HostTopk, label: str) -> None:
    row = torch.full((4096,), float("nan"))
    row[[3, 500, 4095]] = torch.tensor([-float("inf"), 1.0, 0.0])
    problem = problem_of(Case(label, "normal", 4096, 512), row)
    launch(host, problem)
    assert {3, 500, 4095} <= set(problem.out.tensor[0].tolist())


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("mode", ["indices", "dual"])
def test_lengths_are_clamped(host: HostTopk, label: str, mode: str) -> None:
    problem = build_problem(Case(label, "normal", 3000, 512, mode=mode, page_bits=6))
    problem.rows.seq_lens.copy_(torch.tensor([2**31 - 1, -(2**31)]))
    launch(host, replace(problem, scores_before=bits_of(problem.scores)))
    assert problem.out.tensor[1].tolist() == [-1] * 512


@pytest.mark.parametrize("label", LABELS)
def test_rows_end_with_their_pages(host: HostTopk, label: str) -> None:
    problem = build_problem(Case(label, "normal", 3000, 512, mode="page_table", page_bits=6))
    table = problem.rows.page_table
    assert table is not None
    for pages in (20, 5):
        launch(host, replace(problem, rows=replace(problem.rows, page_table=table[:, :pages])))
    assert (problem.out.tensor[0] != -1).sum() == 5 * 64


@pytest.mark.parametrize("label", LABELS)
def test_scores_of_trivial_rows_are_not_read(host: HostTopk, label: str) -> None:
    problem = build_problem(Case(label, "normal", 512, 512))
    instance = host.instances[label, "indices"]
    values: dict[str, object] = {
        name: value if isinstance(value, int) else value.numpy() for name, value in problem.values().items()
    }
    values["scores"] = 0
    host.launch_values(instance, values, 2)  # type: ignore[arg-type]
    problem.check()


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("mode", WINDOWED)
def test_windows_begin_anywhere(host: HostTopk, label: str, mode: str) -> None:
    for start in (0, 1, 2, 3, 4, 7, 4096, 4099):
        host.run(Case(label, "normal", 1500, 512, mode=mode, tail="1e30", page_bits=6, start=start, mapped=True))


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("mode", WINDOWED)
def test_windows_end_with_the_row(host: HostTopk, label: str, mode: str) -> None:
    """A start outside of the row leaves nothing, one inside what lies behind it; nor is there anything without a
    page table."""
    run_windows(host, label, mode)


#: barriers of a row at 12-bit bins: before and after counting, two in the search, one after collecting; few tied scores
#: are ranked and written without another; narrowing the stage adds six, the one behind ranking among them; a plateau
#: that was counted as one takes one, any other row one to find that it is none, and four for each round
STEPS = {
    ("normal", 100, 512): 0,
    ("zeros_95", 1500, 512): 5,
    ("nan_all", 1500, 512): 5,
    ("normal", 1500, 512): 5,
    ("normal_20_3", 6100, 2048): 5 + 6,
    ("one_bin", 1500, 512): 5 + 1 + 4,
    ("all_equal", 1500, 512): 5 + 1,
}


@pytest.mark.parametrize(("scores", "length", "k"), STEPS)
def test_steps_of_a_row(host: HostTopk, scores: str, length: int, k: int) -> None:
    """The second row is trivial, so the first row's barriers are all there are."""
    counters = host.run(Case("topk_t256", scores, length, k))
    assert counters["block_barriers"] == STEPS[scores, length, k]


@pytest.mark.parametrize("label", [label for label in LABELS if "cluster" in label])
@pytest.mark.parametrize("scores", ["normal", "one_bin", "all_equal", "normal_20_3", "zeros_95"])
@pytest.mark.parametrize("length", [9, 600, 2052, 40000])
def test_slices_of_a_row(host: HostTopk, label: str, scores: str, length: int) -> None:
    """Slices without columns, of a few, and longer than what registers hold; one block starts off a boundary."""
    for k, head in ((7, 1), (512, 3), (2048, 0)):
        host.run(Case(label, scores, length, k, mode="dual", page_bits=4, head=head, order="random:1"))


def test_every_generator_makes_rows_of_any_length() -> None:
    for name, make in SCORES.items():
        for length in (0, 1, 2, 77):
            made = make(Draw(length, 7, torch.Generator().manual_seed(0)))
            assert made.shape == (length,), name
