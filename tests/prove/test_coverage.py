"""Tables with a gap, a dead row or a prefer outside its domain are refused with the smallest shape that shows it."""

from __future__ import annotations

import itertools
import random

import pytest

from dsv4gen.base.errors import DsvError, ExpressionError, Place, Problems, ProofError
from dsv4gen.prove import Axis, CoverageProof, Expr, PathRule, coverage, prove_buckets, prove_coverage, search

AXES = (
    Axis.of("batch", 0, 1 << 20),
    Axis.of("width", 0, 1 << 22),
    Axis.of("k", 1, 2048),
    Axis.of("page_bits", 0, 20),
    Axis.of("seq_len", 0, "width"),
    Axis.of("head", 0, 3),
)
LINE = 60


def rule(name: str, prefer: str, domain: str | None = None) -> PathRule:
    """A path whose prefer is written at line 60, its domain at line 59."""
    return PathRule(
        name,
        Expr.parse(domain if domain is not None else prefer, Place("topk.yaml", LINE - 1, 5)),
        Expr.parse(prefer, Place("topk.yaml", LINE, 5)),
    )


def refusal(*paths: PathRule, **options: object) -> DsvError:
    with pytest.raises((ProofError, ExpressionError, Problems)) as caught:
        prove_coverage("select", paths, AXES, {"vector": 4}, **options)  # type: ignore[arg-type]
    return caught.value


def buckets(*whens: str) -> CoverageProof:
    return prove_buckets("select buckets", [Expr.parse(when, Place("topk.yaml", LINE, 5)) for when in whens], AXES)


def row_paths(block_threads: int) -> CoverageProof:
    paths = [
        rule("trivial", "seq_len <= k"),
        rule("register2", "head + seq_len <= 2 * vector * block_threads"),
        rule("register4", "head + seq_len <= 4 * vector * block_threads"),
        rule("streaming", "true"),
    ]
    return prove_coverage("select row_paths", paths, AXES, {"vector": 4, "block_threads": block_threads})


@pytest.mark.parametrize("block_threads", [256, 512, 1024])
def test_the_row_paths_of_topk(block_threads: int) -> None:
    proof = row_paths(block_threads)
    assert proof.paths == ("trivial", "register2", "register4", "streaming")
    assert proof.describe() == (
        "select row_paths: 4 paths (trivial, register2, register4, streaming) cover "
        "width 0..4194304, k 1..2048, seq_len 0..width, head 0..3, all in use"
    )
    assert proof.to_json()["axes"] == ["width 0..4194304", "k 1..2048", "seq_len 0..width", "head 0..3"]


def test_small_tiles_make_a_register_path_dead() -> None:
    with pytest.raises(Problems) as caught:
        row_paths(0)
    assert [str(error).partition(": ")[2].partition("\n")[0] for error in caught.value.errors] == [
        "select row_paths: path 'register2' is never chosen: earlier paths take every shape it prefers",
        "select row_paths: path 'register4' is never chosen: earlier paths take every shape it prefers",
    ]


def test_a_gap() -> None:
    error = refusal(rule("cluster", "width > 16384 and batch <= 512"), rule("single", "width <= 16384"))
    assert error.message == "select: no path takes batch=513 width=16385"
    assert error.place == Place("topk.yaml", LINE, 5)
    assert "end the table with one that always holds" in error.remedy


def test_a_gap_behind_a_division() -> None:
    error = refusal(rule("few", "ceil_div(width, 4096) < 8"), rule("many", "width > 8 * 4096"))
    assert error.message == "select: no path takes width=28673"


def test_a_gap_of_one_shape() -> None:
    error = refusal(rule("one", "seq_len != 777 or head < 3 or k != 5"))
    assert error.message == "select: no path takes width=777 k=5 seq_len=777 head=3"


def test_prefer_outside_domain() -> None:
    error = refusal(rule("cluster", "width > 16384", domain="batch <= 512"), rule("single", "true"))
    assert error.message == ("select: path 'cluster' prefers batch=513 width=16385, outside its domain 'batch <= 512'")
    assert error.place == Place("topk.yaml", LINE, 5)


def test_a_dead_path_behind_others() -> None:
    error = refusal(rule("a", "width <= 4096"), rule("b", "width <= 4096 and batch < 3"), rule("c", "true"))
    assert error.message == "select: path 'b' is never chosen: earlier paths take every shape it prefers"
    assert error.place == Place("topk.yaml", LINE, 5)


def test_a_path_that_no_shape_fulfils() -> None:
    error = refusal(rule("a", "seq_len > width"), rule("c", "true"))
    assert error.message == "select: path 'a' is never chosen: no declared shape fulfils it"


def test_several_mistakes_are_reported_together() -> None:
    error = refusal(rule("a", "width > 8", domain="width > 9"), rule("b", "width < 4", domain="width < 3"))
    assert isinstance(error, Problems)
    assert [one.message for one in error.errors if isinstance(one, DsvError)] == [
        "select: path 'a' prefers width=9, outside its domain 'width > 9'",
        "select: path 'b' prefers width=3, outside its domain 'width < 3'",
        "select: no path takes width=4",
    ]


def test_division_by_an_axis_that_can_be_zero() -> None:
    error = refusal(rule("a", "width // batch > 4"), rule("b", "true"))
    assert error.message == ("select: path 'a': 'width // batch' divides by a number that is not positive at batch=0")
    guarded = [rule("none", "batch == 0"), rule("a", "width // batch > 4", domain="batch > 0"), rule("b", "true")]
    assert prove_coverage("select", guarded, AXES).paths == ("none", "a", "b")


def test_exponents_are_checked() -> None:
    error = refusal(rule("a", "2 ** width > 4"), rule("b", "true"))
    assert error.message == "select: path 'a': '2 ** width' has an exponent outside 0..62 at width=63"


def test_powers_of_an_axis() -> None:
    assert prove_coverage(
        "pages",
        [rule("fits", "width // 2 ** page_bits <= 4"), rule("no", "width >= 5 * 2 ** page_bits")],
        AXES,
    )
    error = refusal(rule("fits", "width // 2 ** page_bits <= 4"), rule("no", "width > 5 * 2 ** page_bits"))
    assert error.message == "select: no path takes width=5 page_bits=0"


def test_options_are_tried_one_by_one() -> None:
    modes = {"mode": ["indices", "page_table", "dual"]}
    paths = [rule("plain", "mode == 'indices'"), rule("mapped", "mode != 'indices' and width > 0")]
    error = refusal(*paths, choices=modes)
    assert error.message == "select: no path takes mode=page_table width=0"
    proof = prove_coverage("select", [*paths, rule("rest", "true")], AXES, choices=modes)
    assert proof.paths == ("plain", "mapped", "rest")


def test_truth_valued_options() -> None:
    error = refusal(rule("a", "sorted"), choices={"sorted": [True, False]})
    assert error.message == "select: no path takes sorted=false"


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([], "select has no path"),
        ([rule("a", "true"), rule("a", "true")], "path 'a' is declared twice"),
        ([rule("a", "widht > 3")], "unknown name 'widht' (did you mean 'width'?)"),
        ([rule("a", "width + 3")], "'width + 3' is not a predicate"),
        ([rule("a", "width")], "'width' is not a predicate"),
        ([rule("a", "width and true")], "axis 'width' is a number"),
    ],
)
def test_tables_that_are_not_tables(paths: list[PathRule], message: str) -> None:
    assert message in refusal(*paths).message


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ([Axis.of("a", 3, 2)], "axis 'a 3..2' has no values"),
        ([Axis.of("a", 0, "b"), Axis.of("b", 0, "a")], "the bounds of a, b depend on each other"),
        ([Axis.of("a", 0, 3), Axis.of("a", 0, 3)], "'a' is declared twice"),
        ([Axis.of("vector", 0, 3)], "'vector' is declared twice"),
        ([Axis.of("a", 0, "zz")], "unknown name 'zz'"),
        ([Axis.of("a", 0, "8 // b"), Axis.of("b", 0, 4)], "no least or largest value"),
        ([Axis.of("a", 0, "a + 1")], "unknown name 'a'"),
    ],
)
def test_axes_that_span_nothing(axes: list[Axis], message: str) -> None:
    with pytest.raises((ProofError, ExpressionError)) as caught:
        prove_coverage("select", [rule("all", "true")], axes, {"vector": 4})
    assert message in caught.value.message


def test_buckets() -> None:
    assert buckets("width <= 4096", "width <= 16384", "true").paths[-1] == "true"
    with pytest.raises(ProofError, match="select buckets: no bucket takes width=16385"):
        buckets("width <= 4096", "width <= 16384")
    with pytest.raises(ProofError, match="bucket 'width <= 100' is never chosen"):
        buckets("width <= 4096", "width <= 100", "true")


def test_an_undecided_question_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SOLVER_UNITS", 50_000)
    error = refusal(rule("a", "batch * width * k == 12345679 and batch > 2"), rule("b", "true"))
    assert error.message == "select: the solver cannot decide this path within its budget"
    assert error.place == Place("topk.yaml", LINE, 5)


def test_small_domains_are_enumerated_when_the_solver_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(_: object) -> None:
        raise search.Undecided

    monkeypatch.setattr(search._Question, "smallest", give_up)
    search._smallest.cache_clear()
    axes = (Axis.of("a", 0, 40), Axis.of("b", "a", "a + 9"))
    paths = [rule("x", "a * b % 7 != 3 or a * a + b * b < 200")]
    with pytest.raises(ProofError, match="no path takes a=8 b=17"):
        prove_coverage("small", paths, axes)
    search._smallest.cache_clear()


def random_predicate(source: random.Random) -> str:
    left = source.choice(["a", "b", "a + b", "a * b", "b // 3", "a % 4", "max(a, b)", "ceil_div(a, c)"])
    comparison = f"{left} {source.choice(['<', '<=', '>', '!=', '=='])} {source.randint(0, 14)}"
    return comparison if source.random() < 0.6 else f"{comparison} and b >= {source.randint(0, 6)}"


def brute_force(prefers: list[Expr], domains: list[Expr]) -> bool:
    """Whether the table is right, by trying every shape."""
    chosen = set()
    for a, c in itertools.product(range(9), range(1, 4)):
        for b in range(a + 1):
            shape = {"a": a, "b": b, "c": c}
            if any(p.evaluate(shape) and not d.evaluate(shape) for p, d in zip(prefers, domains, strict=True)):
                return False
            first = next((row for row, prefer in enumerate(prefers) if prefer.evaluate(shape)), None)
            if first is None:
                return False
            chosen.add(first)
    return len(chosen) == len(prefers)


@pytest.mark.parametrize("seed", range(60))
def test_verdicts_equal_brute_force(seed: int) -> None:
    source = random.Random(seed)
    axes = (Axis.of("a", 0, 8), Axis.of("b", 0, "a"), Axis.of("c", 1, 3))
    prefers = [Expr.parse(random_predicate(source)) for _ in range(source.randint(0, 2))] + [Expr.parse("true")]
    if source.random() < 0.3:
        prefers[-1] = Expr.parse(random_predicate(source))
    domains = [prefer if source.random() < 0.8 else Expr.parse(random_predicate(source)) for prefer in prefers]
    rules = [
        PathRule(str(row), domain, prefer) for row, (domain, prefer) in enumerate(zip(domains, prefers, strict=True))
    ]
    try:
        prove_coverage("t", rules, axes)
        proven = True
    except (ProofError, Problems):
        proven = False
    assert proven == brute_force(prefers, domains)


def test_brute_force_notices_a_prover_that_skips_dead_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage, "_dead_rows", lambda *_: ())
    with pytest.raises(AssertionError):
        for seed in range(60):
            test_verdicts_equal_brute_force(seed)
