"""Expressions whose branches options decide."""

from __future__ import annotations

from dsv4gen.base.expression_json import choose_json, plain_names_json

TABLE = ["if", ["==", "mode", ["choice", "packed"]], "tables", "batch"]


def test_branches_that_options_decide_are_taken() -> None:
    assert choose_json(TABLE, {"mode": "packed"}) == "tables"
    assert choose_json(TABLE, {"mode": "dual"}) == "batch"
    assert choose_json(["*", 2, TABLE], {"mode": "packed", "other": "x"}) == ["*", 2, "tables"]
    nested = ["if", ["==", "mode", ["choice", "dual"]], 4, TABLE]
    assert choose_json(nested, {"mode": "packed"}) == "tables"


def test_other_branches_stay() -> None:
    by_size = ["if", ["<", "batch", 4], "tables", "batch"]
    for tree in (by_size, 8, "batch", ["choice", "if"], TABLE):
        assert choose_json(tree, {}) == tree
    assert choose_json(by_size, {"mode": "packed"}) == by_size


def test_names_that_a_tree_may_be() -> None:
    assert list(plain_names_json(TABLE)) == ["tables", "batch"]
    assert list(plain_names_json("width")) == ["width"]
    assert list(plain_names_json(["*", 2, TABLE])) == []
