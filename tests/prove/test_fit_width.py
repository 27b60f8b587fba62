"""Tiles that do not fit and indices that overflow are refused with value, limit and the shape that shows it."""

from __future__ import annotations

import random

import pytest

from dsv4gen.base.errors import ExpressionError, Place, ProofError
from dsv4gen.prove import (
    COLUMNS,
    Axis,
    Expr,
    Proof,
    measure_fit,
    prove_buckets,
    prove_fit,
    prove_width,
    search,
    tile_assignments,
)

PLACE = Place("specs/families/topk.yaml", 61, 21)
SHARED = Expr.parse("max(4 * 2 ** coarse_bits, 8 * tie_capacity) + 4 * block_threads + 512", PLACE)
CONSTANTS = {"coarse_bits": 12, "tie_capacity": 2048}
AXES = (
    Axis.of("batch", 0, 1 << 20),
    Axis.of("width", 0, 1 << 22),
    Axis.of("k", 1, 2048),
    Axis.of("seq_len", 0, "width"),
)


def width(text: str, bits: int = 32, signed: bool = False, **constants: int) -> Proof:
    return prove_width("column", Expr.parse(text, PLACE), AXES, bits, signed, constants=constants)


def test_tile_assignments() -> None:
    assert list(tile_assignments({"t": [1, 2], "u": [3, 4]})) == [
        {"t": 1, "u": 3},
        {"t": 1, "u": 4},
        {"t": 2, "u": 3},
        {"t": 2, "u": 4},
    ]
    assert list(tile_assignments({})) == [{}]


def test_a_tile_that_fits() -> None:
    proof = prove_fit("select shared_bytes", {"block_threads": 512}, SHARED, 65536, constants=CONSTANTS)
    assert (proof.value, proof.slack, proof.verdict) == (18944, 46592, "fits")
    assert proof.describe() == (
        "select shared_bytes [block_threads=512]: max(4 * 2 ** coarse_bits, 8 * tie_capacity) + "
        "4 * block_threads + 512 = 18944 of 65536 bytes, slack 46592: fits"
    )
    assert proof.to_json()["tile"] == {"block_threads": 512}
    assert len(proof.row()) == len(COLUMNS)


def test_a_tile_that_just_fits() -> None:
    assert prove_fit("threads", {"t": 1024}, Expr.parse("t"), 1024, unit="threads").slack == 0


def test_a_tile_that_does_not_fit() -> None:
    with pytest.raises(ProofError) as caught:
        prove_fit("select shared_bytes", {"block_threads": 1024}, SHARED, 20000, constants=CONSTANTS)
    assert caught.value.message == (
        "select shared_bytes does not fit at block_threads=1024: max(4 * 2 ** coarse_bits, 8 * tie_capacity) + "
        "4 * block_threads + 512 = 20992 bytes, 992 over the limit of 20000"
    )
    assert caught.value.place == PLACE
    other = Place("specs/tuning/gfx950/topk.yaml", 3, 9)
    with pytest.raises(ProofError) as caught:
        prove_fit("select", {"block_threads": 1024}, SHARED, 20000, other, constants=CONSTANTS)
    assert caught.value.place == other


def test_measuring_does_not_refuse() -> None:
    proof = measure_fit("select", {"block_threads": 1024}, SHARED, 20000, constants=CONSTANTS)
    assert (proof.fits, proof.verdict, proof.slack) == (False, "too large", -992)


@pytest.mark.parametrize(
    ("text", "message"),
    [("4 * blok", "unknown name 'blok'"), ("t < 4", "is not a number of bytes"), ("4 - t", "= -4 is negative at t=8")],
)
def test_formulas_that_are_no_sizes(text: str, message: str) -> None:
    with pytest.raises((ProofError, ExpressionError)) as caught:
        prove_fit("x", {"t": 8}, Expr.parse(text, PLACE), 100)
    assert message in caught.value.message
    assert caught.value.place is not None and caught.value.place.line == PLACE.line


def test_an_index_that_fits() -> None:
    proof = prove_width("score_offset", Expr.parse("batch * width"), AXES, 64)
    assert (proof.value, proof.limit, proof.type, proof.exact) == (1 << 42, (1 << 63) - 1, "i64", True)
    assert proof.describe() == (
        "score_offset: maximum of batch * width = 4398046511104 of 9223372036854775807 (i64), "
        "slack 9223367638808264703: fits"
    )
    assert proof.to_json()["exact"] is True
    assert len(proof.row()) == len(COLUMNS)


def test_an_index_that_overflows() -> None:
    with pytest.raises(ProofError) as caught:
        width("batch * width")
    assert caught.value.message == "column is 4294967296 at batch=1024 width=4194304, above 4294967295 (u32)"
    assert caught.value.place == PLACE
    assert "wider type" in caught.value.remedy


def test_signed_types_have_half_the_room() -> None:
    assert width("512 * width + k", constant=0)
    with pytest.raises(ProofError, match=r"column is 2147483648 at width=4194304, above 2147483647 \(i32\)"):
        width("512 * width", signed=True)


def test_an_index_below_zero() -> None:
    with pytest.raises(ProofError) as caught:
        width("seq_len - k")
    assert caught.value.message == "column is -1 at width=0 k=1 seq_len=0, below 0 (u32)"
    assert width("seq_len - k", signed=True)


def test_bounds_that_depend_on_each_other_are_used() -> None:
    proof = width("width - seq_len")
    assert proof.describe() == (
        "column: maximum of width - seq_len = 4194304 of 4294967295 (u32), slack 4290772991: fits"
    )


def test_every_part_is_computed_in_the_type() -> None:
    with pytest.raises(ProofError) as caught:
        width("batch * width // 4096")
    assert caught.value.message == (
        "column: its part 'batch * width' is 4294967296 at batch=1024 width=4194304, above 4294967295 (u32)"
    )
    assert width("batch * width // 4096", bits=64)


def test_constants_take_part() -> None:
    text = "seq_len + vector * block_threads * loads"
    assert width(text, vector=4, block_threads=1024, loads=4)
    with pytest.raises(ProofError, match="above 4294967295"):
        width(text, vector=4, block_threads=1 << 20, loads=1024)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("width // batch", "column: 'width // batch' divides by a number that is not positive at batch=0"),
        ("seq_ln + 1", "unknown name 'seq_ln' (did you mean 'seq_len'?)"),
        ("width < 3", "column: 'width < 3' is not a number"),
        ("width + (1 if width else 2)", "'width' is used as a number and as a truth value"),
    ],
)
def test_indices_without_a_value(text: str, message: str) -> None:
    with pytest.raises((ProofError, ExpressionError)) as caught:
        width(text)
    assert message in caught.value.message


def test_an_undecided_index_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SOLVER_UNITS", 50_000)
    with pytest.raises(ProofError, match=r"cannot decide whether .* fits i64 within the solver's budget"):
        width("(batch ** 2 - 2 * width ** 2 - 1) ** 2 * (batch + 1)", bits=64, signed=True)


@pytest.mark.parametrize("seed", range(60))
def test_verdicts_equal_brute_force(seed: int) -> None:
    source = random.Random(seed)
    term = ["a", "b", "a * b", "a - b", "b // 2", "a % 3", "min(a, b)", "round_up(b, 4)", "2 ** b", "7"]
    text = f"{source.choice(term)} {source.choice('+-*')} {source.choice(term)}"
    bits, signed = source.randint(3, 7), source.random() < 0.5
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    shapes = [{"a": a, "b": b} for a in range(7) for b in range(a + 1)]
    values = [Expr.parse(text).evaluate(shape) for shape in shapes]
    try:
        proof = prove_width("x", Expr.parse(text), (Axis.of("a", 0, 6), Axis.of("b", 0, "a")), bits, signed)
    except ProofError as error:
        assert "its part" in error.message or min(values) < low or max(values) > high
    else:
        assert low <= min(values) and max(values) <= high
        assert proof.smallest <= min(values) and max(values) <= proof.value
        assert not proof.exact or (proof.smallest, proof.value) == (min(values), max(values))


def test_every_proof_has_the_same_columns() -> None:
    proofs: list[Proof] = [
        measure_fit("a", {}, Expr.parse("3"), 4),
        prove_buckets("b", [Expr.parse("true")], AXES),
        width("k"),
    ]
    assert {len(proof.row()) for proof in proofs} == {len(COLUMNS)}
    assert all("\n" not in proof.describe() for proof in proofs)
