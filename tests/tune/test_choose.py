"""Choices: the spec's tile unless beaten by more than noise, divisions that repay, one tile per symbol."""

from __future__ import annotations

from collections.abc import Mapping

from dsv4gen.tune.choose import Choice, choose
from dsv4gen.tune.journal import Entry

SMALL, LARGE, OWN = {"w": 1}, {"w": 8}, {"w": 4}
BUCKETS = [("width > 16", OWN), ("true", SMALL)]
AXES = ["tokens", "heads", "width"]


def entry(tile: Mapping[str, int], us: float, *, bucket: str = "width > 16", final: bool = True, **shape: int) -> Entry:
    """A measurement of kernel k."""
    return Entry("run", {}, {"width": 640, "heads": 16, **shape}, "k", tile, bucket, us, final)


def times(own: float, small: float, large: float, **shape: int) -> list[Entry]:
    """Three tiles on one shape."""
    return [entry(OWN, own, **shape), entry(SMALL, small, **shape), entry(LARGE, large, **shape)]


def rows(choices: list[Choice]) -> list[tuple[str, int]]:
    """Predicate and tile."""
    return [(choice.when, choice.tile["w"]) for choice in choices]


def test_a_gain_within_noise_changes_nothing() -> None:
    found = choose("k", BUCKETS, AXES, times(10, 9.8, 12, tokens=1))
    assert rows(found) == [("width > 16", 4), ("true", 1)]
    assert found[0].entry is not None and found[0].entry.value == 10
    assert found[1].entry is None


def test_a_faster_tile_replaces_the_specs() -> None:
    found = choose("k", BUCKETS, AXES, times(10, 12, 8, tokens=1) + times(20, 25, 16, tokens=64))
    assert rows(found) == [("width > 16", 8), ("true", 1)]


def test_a_bucket_is_divided_where_that_repays() -> None:
    entries = times(10, 7, 12, tokens=1) + times(20, 16, 25, tokens=16) + times(40, 50, 30, tokens=64)
    assert rows(choose("k", BUCKETS, AXES, entries)) == [
        ("width > 16 and tokens <= 16", 1),
        ("width > 16", 8),
        ("true", 1),
    ]
    assert len(rows(choose("k", [("width > 16", OWN), ("true", OWN)], ["heads"], entries))) == 2


def test_predicates_with_or_are_wrapped() -> None:
    entries = [Entry(**{**vars(e), "bucket": "a or b"}) for e in times(9, 5, 9, tokens=1) + times(9, 9, 5, tokens=2)]
    found = choose("k", [("a or b", OWN), ("true", OWN)], AXES, entries)
    assert rows(found)[:2] == [("(a or b) and tokens <= 1", 1), ("a or b", 8)]


def test_wrong_candidates_and_passing_times_do_not_count() -> None:
    entries = times(10, 5, 9.9, tokens=1)
    wrong = Entry(**{**vars(entries[1]), "problem": "VerifyError: out differs"})
    assert rows(choose("k", BUCKETS, AXES, [*entries, wrong]))[0] == ("width > 16", 4)
    passing = entry(SMALL, 5, tokens=1, final=False)
    assert rows(choose("k", BUCKETS, AXES, [passing, *times(10, 11, 12, tokens=1)]))[0] == ("width > 16", 4)
    assert rows(choose("k", BUCKETS, AXES, [*times(10, 11, 12, tokens=1), passing]))[0] == ("width > 16", 4)


def test_one_symbol_stands_for_one_tile() -> None:
    """Tiles 1 and 8 share a name; where nothing was measured the spec's tile keeps it."""

    def symbol(tile: Mapping[str, int]) -> object:
        return tile["w"] == 4

    entries = times(10, 7, 12, tokens=1) + times(10, 12, 5, tokens=64)
    free = choose("k", [("width > 16", OWN), ("true", OWN)], AXES, entries, symbol)
    assert {choice.tile["w"] for choice in free if choice.tile["w"] != 4} == {8}
    fixed = choose("k", BUCKETS, AXES, entries, symbol)
    assert {choice.tile["w"] for choice in fixed} <= {1, 4}


def test_the_specs_tile_keeps_its_name_unless_it_is_beaten() -> None:
    """Tiles 4 and 8 share a name: 8 is faster on one shape by what is noise over all, so 1 does not get the bucket."""

    def symbol(tile: Mapping[str, int]) -> object:
        return tile["w"] == 1

    near = times(10, 12, 9.7, tokens=1) + times(20, 21, 20.2, tokens=64)
    assert rows(choose("k", BUCKETS, AXES, near, symbol))[0] == ("width > 16", 4)
    far = times(10, 12, 9, tokens=1) + times(20, 21, 18, tokens=64)
    assert rows(choose("k", BUCKETS, AXES, far, symbol))[0] == ("width > 16", 8)


def test_rows_that_a_following_row_makes_superfluous_are_merged() -> None:
    entries = [entry(SMALL, 5, tokens=1), entry(OWN, 9, tokens=1)]
    (row,) = choose("k", BUCKETS, AXES, entries)
    assert (row.when, row.tile) == ("true", SMALL)
    assert [one.value for one in row.entries] == [5]
