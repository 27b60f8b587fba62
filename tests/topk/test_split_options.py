"""`tie_break`, `sorted` and `nan_policy` on rows split over blocks: the same exact rules as on one block."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import pytest

from dsv4gen.reference.topk import CHOICES, Rules
from dsv4gen.reference.topk_cases import ORDERS, Case
from dsv4gen.reference.topk_rows import MODES
from dsv4gen.reference.topk_scores import SCORES
from tests.topk.host import WAVES
from tests.topk.split import failures, split_host

#: every choice of ties and order, NaN dropped where both are chosen
RULES = (
    Rules(tie_break="low"),
    Rules(tie_break="high"),
    Rules(sorted="index"),
    Rules("low", "lowest", "index"),
    Rules("high", "drop", "index"),
)
#: zeros whose border is in the first slice, in any, in the last ones; NaN likewise; ties that are ranked as they are,
#: narrowed by key, and by place, down to the very first places; more than are staged; all equal
SHAPES = (
    ("mixed_zeros", 40000, 2048),
    ("zeros_95", 33001, 2048),
    ("sparse_zeros", 40001, 2048),
    ("sparse_zeros", 20003, 7),
    ("zero_threshold", 35001, 513),
    ("nan_all", 20001, 2048),
    ("fewer_numbers_than_k", 30000, 2047),
    ("nan_3_and_infinities", 25000, 512),
    ("normal", 20001, 512),
    ("normal_20_3", 60001, 2048),
    ("plateau_in_a_bin", 50001, 2048),
    ("plateau_in_a_bin", 30001, 100),
    ("ties_in_front", 50001, 1024),
    ("one_bin", 35002, 1024),
    ("eight_values", 20002, 1024),
    ("all_equal_negative", 20001, 700),
    ("all_plus_inf", 20005, 1),
    ("winners_in_a_run", 70003, 2048),
)
BUGS = ("equal_by_arrival", "plateau_of_one_slice", "plateaus_kept", "tie_break_ignored")
SORT_BUGS = ("shares_unsorted", "unordered_windows")


def _id(rules: Rules) -> str:
    return "-".join(vars(rules).values())


def _cases(rules: Rules, **fixed: object) -> list[Case]:
    """All shapes in one mode: the rules take the modes in turn, since each pair is compiled on its own."""
    mode, starts = MODES[RULES.index(rules)], cycle((None, 3, 4099))
    made = [
        Case("split", *shape, mode, "inf", i % 4, 1, 4, next(starts), i % 2 == 0, ORDERS[i % 4], rules=rules)
        for i, shape in enumerate(SHAPES)
    ]
    return [replace(case, **fixed) for case in made]  # type: ignore[arg-type]


def _failures(wave: int, cases: list[Case], *mutations: str) -> list[str]:
    host = split_host(wave, *mutations)
    return [text for case in cases for text in failures(host, [case], [case.order])]


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("rules", RULES, ids=_id)
def test_every_border(rules: Rules, wave: int) -> None:
    assert _failures(wave, _cases(rules)) == []


@pytest.mark.parametrize("blocks", [1, 2, 5, 33])
@pytest.mark.parametrize("rules", [RULES[3], RULES[4]], ids=_id)
def test_any_number_of_blocks_and_padded_rows(rules: Rules, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """More blocks than rows have slices' worth of columns: borders fall into any block, and blocks have nothing."""
    host = split_host(64)
    monkeypatch.setattr(host, "blocks", blocks)
    monkeypatch.setattr(host, "padding", blocks % 3)
    assert failures(host, _cases(rules)[:11], ("random:5",)) == []


@pytest.mark.parametrize("rules", [RULES[0], RULES[4]], ids=_id)
def test_any_block_may_come_last(rules: Rules) -> None:
    cases = [case for case in _cases(rules) if case.scores in ("sparse_zeros", "plateau_in_a_bin", "one_bin")]
    assert failures(split_host(32), cases, (*ORDERS, "random:3", "random:4")) == []


@pytest.mark.parametrize("head", range(4))
@pytest.mark.parametrize("rules", RULES[2:], ids=_id)
def test_lengths_around_every_switch(rules: Rules, head: int) -> None:
    """Rows selected whole, by one block and by several; the second row of a case is a third as long."""
    lengths = (0, 1, 511, 512, 513, *(16384 - head + step for step in (-1, 0, 1)), 3 * 16384 - 3 * head + 3)
    mode = MODES[RULES.index(rules)]
    cases = [Case("split", "zeros_95", length, 512, mode, head=head, page_bits=4, rules=rules) for length in lengths]
    assert failures(split_host(64), cases, ("random:2",)) == []


@pytest.mark.parametrize("rules", [RULES[1], RULES[4]], ids=_id)
def test_bf16_scores(rules: Rules) -> None:
    assert _failures(64, _cases(rules, score_dtype="bf16")) == []


def test_every_kind_of_scores() -> None:
    cases = [Case("split", kind, 20006, 1024, head=3, order=ORDERS[i % 4]) for i, kind in enumerate(SCORES)]
    for rules in (Rules("low", "lowest", "index"), Rules("high", "lowest", "index")):
        assert _failures(64, [replace(case, rules=rules) for case in cases]) == []


@pytest.mark.parametrize("mutation", BUGS)
@pytest.mark.parametrize("wave", WAVES)
def test_planted_defects_of_ties_are_rejected(mutation: str, wave: int) -> None:
    for rules in RULES[:2]:
        cases = [case for case in _cases(rules) if case.scores in ("sparse_zeros", "nan_all", "plateau_in_a_bin")]
        assert _failures(wave, cases, mutation), rules


@pytest.mark.parametrize("mutation", SORT_BUGS)
@pytest.mark.parametrize("wave", WAVES)
def test_planted_defects_of_order_are_rejected(mutation: str, wave: int) -> None:
    cases = [case for case in _cases(RULES[2]) if case.length > 60000]
    assert _failures(wave, cases, mutation)


def test_the_rules_take_every_choice() -> None:
    for name, choices in CHOICES.items():
        assert {getattr(rules, name) for rules in RULES} == set(choices)
