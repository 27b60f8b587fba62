"""The options beside the mode: text of their own, compiled on demand."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import pytest

from dsv4gen.base.choices import with_choices
from dsv4gen.base.errors import VerifyError
from dsv4gen.reference.topk import Rules
from dsv4gen.reference.topk_cases import ORDERS, TAILS, Case, build_problem, option_cases
from dsv4gen.reference.topk_rows import MODES
from dsv4gen.reference.topk_scores import SCORES
from tests.topk.host import WAVES, HostTopk, labels, only, topk_plan

LABELS = labels(topk_plan())
#: kernels that have the options: v1 has none
V2 = [label for label in LABELS if "v1" not in label]
#: for options that ask for a text of every kernel and mode: kernels take turns between wave sizes
TURNS = [(WAVES[number % len(WAVES)], label) for number, label in enumerate(LABELS)]
TURNS_OF_V2 = [(wave, label) for wave, label in TURNS if label in V2]
OPTION_BUGS = ("tie_break_ignored", "unordered_windows", "nan_kept")
#: plateaus of the border's score: zeros, equal scores of which registers or stages hold all or not, and NaN
PLATEAUS = (
    ("normal", 1500, 512),
    ("zeros_95", 1500, 512),
    ("zeros_95", 9000, 2048),
    ("all_equal", 600, 512),
    ("all_equal_negative", 20001, 7),
    ("eight_values", 5000, 1024),
    ("mixed_zeros", 40000, 2048),
    ("nan_4096", 6000, 2047),
    ("nan_all", 3000, 512),
    ("normal_20_3", 6100, 2048),
    ("one_bin", 20000, 512),
)


def option_case(label: str, scores: str, length: int, k: int, rules: Rules, order: str) -> Case:
    return Case(label, scores, length, k, mode="indices", tail="inf", head=1, order=order, rules=rules)


@pytest.mark.parametrize(("host", "label"), TURNS_OF_V2, indirect=["host"])
@pytest.mark.parametrize("tie_break", ["low", "high"])
def test_equal_scores_win_by_position(host: HostTopk, label: str, tie_break: str) -> None:
    rules = Rules(tie_break=tie_break)
    cases = [option_case(label, *plateau, rules, ORDERS[i % 4]) for i, plateau in enumerate(PLATEAUS)]
    assert host.failures(cases) == []


@pytest.mark.parametrize(("host", "label"), TURNS_OF_V2, indirect=["host"])
@pytest.mark.parametrize("tie_break", ["none", "high"])
def test_entries_are_sorted(host: HostTopk, label: str, tie_break: str) -> None:
    """Windows of 2^15 or 2^16 columns: one, several, and borders of them."""
    rules = Rules(tie_break=tie_break, sorted="index")
    shapes = (*PLATEAUS, ("winners_in_a_run", 65537, 2048), ("ascending", 200001, 511), ("normal", 131073, 2048))
    cases = [option_case(label, *shape, rules, ORDERS[i % 4]) for i, shape in enumerate(shapes)]
    assert host.failures(cases) == []


#: no number, one, fewer than k, just k, more; all of a row selected, and rows that registers hold or not
NANS = (
    ("nan_all", 300, 512),
    ("nan_1", 513, 512),
    ("nan_payloads", 400, 512),
    ("nan_all", 4096, 512),
    ("fewer_numbers_than_k", 4096, 512),
    ("fewer_numbers_than_k", 20001, 2048),
    ("nan_4096", 4608, 512),
    ("nan_4096", 6000, 2047),
    ("nan_3_and_infinities", 9000, 1024),
)


@pytest.mark.parametrize(("host", "label"), TURNS_OF_V2, indirect=["host"])
@pytest.mark.parametrize("rules", [Rules(nan_policy="drop"), Rules("low", "drop")], ids=["any", "low"])
def test_nan_is_dropped(host: HostTopk, label: str, rules: Rules) -> None:
    cases = [option_case(label, *shape, rules, ORDERS[i % 4]) for i, shape in enumerate(NANS)]
    cases += [replace(case, mode=mode, page_bits=4, start=5) for case in cases[2:6] for mode in ("dual", "packed")]
    assert host.failures(cases) == []


@pytest.mark.parametrize("label", V2)
def test_nan_is_dropped_and_the_rest_sorted(host: HostTopk, label: str) -> None:
    rules = Rules("high", "drop", "index")
    cases = [option_case(label, *shape, rules, ORDERS[i % 4]) for i, shape in enumerate(NANS)]
    assert host.failures(cases) == []


BF16 = (
    *(("normal", length, 512) for length in (0, 1, 512, 513, 2049, 4096, 8193, 16384, 16385, 40000)),
    *((scores, 6001, 2048) for scores in SCORES),
)


@pytest.mark.parametrize(("host", "label"), TURNS, indirect=["host"])
def test_bf16_scores(host: HostTopk, label: str) -> None:
    """Rows at every alignment of two bytes; rounding to bf16 makes plateaus."""
    cases = [
        Case(
            label,
            scores,
            length,
            k,
            mode=MODES[i % 5],
            tail=tail,
            head=i % 4,
            page_bits=6,
            start=i,
            order=ORDERS[i % 4],
        )
        for i, ((scores, length, k), tail) in enumerate(zip(BF16, cycle(TAILS), strict=False))
    ]
    assert host.failures([replace(case, score_dtype="bf16") for case in cases]) == []


@pytest.mark.parametrize("label", V2[:1])
def test_bf16_scores_with_rules(host: HostTopk, label: str) -> None:
    rules = Rules("low", "drop", "index")
    cases = [option_case(label, *shape, rules, ORDERS[i % 4]) for i, shape in enumerate((*PLATEAUS, *NANS))]
    assert host.failures([replace(case, score_dtype="bf16") for case in cases]) == []


def test_few_numbers_come_first(host: HostTopk) -> None:
    """BL-04: of a row of NaN nothing is selected; of ten numbers, all."""
    for scores, numbers in (("nan_all", 0), ("fewer_numbers_than_k", 256)):
        case = option_case("topk_t256", scores, 4096, 512, Rules(nan_policy="drop"), "ascending")
        problem = build_problem(case)
        host.launch(problem)
        problem.check()
        assert (problem.out.tensor[0] != -1).tolist() == [True] * numbers + [False] * (512 - numbers)


@pytest.mark.parametrize(("host", "label"), [(64, "topk_cluster2_t128"), (32, "topk_t256")], indirect=["host"])
def test_options_in_pairs(host: HostTopk, label: str) -> None:
    assert host.failures(option_cases([label])) == []


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("mutation", OPTION_BUGS)
def test_planted_defects_show(mutation: str, wave: int) -> None:
    plan = only(topk_plan(), ["topk_indices_t256"])
    cases = [
        option_case("topk_t256", scores, length, 512, Rules("high", "drop", "index"), order)
        for scores, length in (("all_equal", 2000), ("all_equal", 70000), ("nan_all", 2000))
        for order in ORDERS
    ]
    assert HostTopk(plan, wave).failures(cases) == []
    assert HostTopk(plan, wave, frozenset({mutation})).failures(cases)


def test_choices_replace_one_line_each() -> None:
    plan = only(topk_plan(), ["topk_indices_t256"])
    text = HostTopk(plan, 32).text
    changed = with_choices(text, {"tie_break": "low", "mode": "dual"})
    pairs = zip(text.splitlines(), changed.splitlines(), strict=True)
    assert [line for old, line in pairs if old != line] == [
        "constexpr TieBreak kTieBreak = TieBreak::low;  // ---- choice: tie_break ----"
    ]
    assert with_choices(text, {}) == text == with_choices(changed, {"tie_break": "none"})


def test_the_judge_rejects_other_ties_and_orders() -> None:
    import torch

    from dsv4gen.reference.topk import Selection, check_selection, select
    from dsv4gen.reference.topk_rows import Rows

    rows = Rows(torch.zeros(1, 40), torch.tensor([40], dtype=torch.int32))
    low, high = (select(rows, 8, Rules(tie_break=word)).out for word in ("low", "high"))
    assert low.tolist() == [list(range(8))] and sorted(high[0].tolist()) == list(range(32, 40))
    for wrong, rules in ((high, Rules(tie_break="low")), (low, Rules(tie_break="high"))):
        with pytest.raises(VerifyError, match="tie_break"):
            check_selection(Selection(wrong), rows, rules)
    with pytest.raises(VerifyError, match="order of their positions"):
        check_selection(Selection(low.flip(1)), rows, Rules(sorted="index"))
    check_selection(Selection(low), rows, replace(Rules(sorted="index"), tie_break="low"))
