"""Plain scalars are YAML 1.2's, BL-37's list among them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsv4gen.spec.scalars import read_plain


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no", "no"),
        ("on", "on"),
        ("y", "y"),
        ("true", True),
        ("FALSE", False),
        ("tRue", "tRue"),
        ("", None),
        ("~", None),
        ("null", None),
        ("90", 90),
        ("-7", -7),
        ("+7", 7),
        ("0", 0),
        ("0xFFFFFFFF", 4294967295),
        ("0o17", 15),
        ("0b11", "0b11"),
        ("1_28", "1_28"),
        ("1:4", "1:4"),
        ("2026-05-26", "2026-05-26"),
        ("-inf", "-inf"),
        ("9.0", 9.0),
        ("7.10", 7.1),
        ("1e-6", 1e-6),
        (".5", 0.5),
        ("5.", 5.0),
        ("64.0", 64.0),
        ("-.inf", -math.inf),
        (".INF", math.inf),
        ("1e5", 1e5),
        ("gfx942", "gfx942"),
        ("٣", "٣"),
    ],
)
def test_value_and_type(text: str, expected: object) -> None:
    found = read_plain(text)
    assert (type(found), found) == (type(expected), expected)


def test_nan() -> None:
    found = read_plain(".nan")
    assert isinstance(found, float) and math.isnan(found)


@pytest.mark.parametrize("text", ["0512", "-007", "00"])
def test_leading_zeros_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="leading zero"):
        read_plain(text)


@pytest.mark.parametrize("text", ["9" * 5000, "1." + "0" * 60])
def test_endless_numbers_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="longer than"):
        read_plain(text)


@given(st.integers(-(2**64), 2**64))
def test_integers_round_trip(number: int) -> None:
    assert read_plain(str(number)) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_round_trip(number: float) -> None:
    assert read_plain(repr(number)) == number
