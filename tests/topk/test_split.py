"""Rows split over blocks that meet in a workspace: exact in any order of blocks, and the workspace zero again."""

from __future__ import annotations

import pytest

from dsv4gen.reference.covering import covering_design
from dsv4gen.reference.topk import ANY, Rules
from dsv4gen.reference.topk_cases import LEVELS, ORDERS, Case
from dsv4gen.reference.topk_rows import MODES
from dsv4gen.reference.topk_scores import SCORES
from tests.topk.host import WAVES
from tests.topk.split import failures, split_host

BLOCK_ORDERS = (*ORDERS, "random:3", "random:4")
#: short ones that one block selects, ends of that, and rows of two and of nine slices
LENGTHS = ("0", "512", "16380", "16385", "20001", "70003")
FACTORS = {
    name: LEVELS[name]
    for name in ("scores", "k", "mode", "tail", "head", "seq_stride", "page_bits", "start", "mapped", "order")
}
#: ranked ties, a plateau, more ties than are staged, all scores equal, winners in the last columns
CASES = (
    Case("split", "normal", 40001, 2048, "page_table", head=1, page_bits=4),
    Case("split", "relu_sum", 33000, 512, "dual", head=2, tail="inf"),
    Case("split", "one_bin", 35002, 1024, "packed", start=3, mapped=True, page_bits=4),
    Case("split", "all_equal_negative", 30000, 700, "ragged", start=4099),
    Case("split", "ascending", 20006, 512),
)
MUTATIONS = ("early_ticket", "counter_kept", "overflow_dropped", "short_slices", "missing_validity")


def _covering() -> list[Case]:
    rows = covering_design({**FACTORS, "length": LENGTHS}, full=("scores",))
    return [
        Case(
            "split",
            row["scores"],
            int(row["length"]),
            int(row["k"]),
            row["mode"],
            row["tail"],
            int(row["head"]),
            int(row["seq_stride"]),
            int(row["page_bits"]),
            None if row["start"] == "none" else int(row["start"]),
            row["mapped"] == "yes",
            row["order"],
        )
        for row in rows
    ]


@pytest.mark.parametrize("wave", WAVES)
def test_every_pair_of_factors(wave: int) -> None:
    cases = _covering()
    assert {case.scores for case in cases} == set(SCORES) and {case.mode for case in cases} == set(MODES)
    assert [text for case in cases for text in failures(split_host(wave), [case], [case.order])] == []


@pytest.mark.parametrize("wave", WAVES)
def test_any_block_may_come_last(wave: int) -> None:
    assert failures(split_host(wave), CASES, BLOCK_ORDERS) == []


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("blocks", [1, 2, 3, 5, 16, 33])
def test_any_number_of_blocks_and_padded_rows(wave: int, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    host = split_host(wave)
    monkeypatch.setattr(host, "blocks", blocks)
    monkeypatch.setattr(host, "padding", blocks % 3)
    assert failures(host, CASES[:3], ("ascending", "random:5")) == []


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("head", range(4))
def test_lengths_around_the_end_of_a_single_block(wave: int, head: int) -> None:
    edges = [Case("split", "normal", 16384 - head + step, 512, head=head) for step in (-1, 0, 1)]
    assert failures(split_host(wave), edges, ("ascending",)) == []


@pytest.mark.parametrize("score_dtype", ["f32", "bf16"])
@pytest.mark.parametrize("rules", [ANY, Rules(nan_policy="drop")], ids=["lowest", "drop"])
def test_other_scores_and_other_rules_for_nan(score_dtype: str, rules: Rules) -> None:
    kinds = (("nan_1", 512), ("nan_4096", 2048), ("nan_all", 512), ("fewer_numbers_than_k", 2048), ("one_bin", 1024))
    cases = [
        Case("split", kind, 30001, k, "dual", head=1, page_bits=4, score_dtype=score_dtype, rules=rules)
        for kind, k in kinds
    ]
    assert failures(split_host(64), cases, ("random:1",)) == []


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_planted_defects_are_rejected(wave: int, mutation: str) -> None:
    assert failures(split_host(wave, mutation), CASES, ("ascending", "random:1"))
