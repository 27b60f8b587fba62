"""A user's mistake gives a named error with its place and the way out, an exit code, and no traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.specs import Copy, copy_specs, tree_bytes


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return copy_specs(tmp_path)


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        (["build"], 2, "no target given"),
        (["build", "--target", "gfx95"], 2, "did you mean 'gfx950'?"),
        (["build", "--target", "gfx950", "--family", "tpk"], 2, "did you mean 'topk'?"),
        (["explain", "topk", "--target", "gfx950", "batch"], 2, "'batch' is not KEY=VALUE"),
        (["explain", "topk", "--target", "gfx950", "batch=1", "widht=3", "k=3"], 2, "did you mean 'width'?"),
        (["explain", "topk", "--target", "gfx950", "batch=1", "k=3"], 2, "no value for 'width'"),
        (["explain", "topk", "--target", "gfx950", "batch=1"], 2, "select reads: width=N, "),
        (
            ["explain", "topk", "--target", "gfx950", "batch=1.5", "width=3", "k=3"],
            2,
            "batch='1.5' is not a whole number",
        ),
        (
            ["explain", "topk", "--target", "gfx950", "batch=1", "width=9", "k=4000"],
            2,
            "give k=N, entries selected per row in that range",
        ),
        (
            ["explain", "topk", "--target", "gfx950", "batch=1", "width=9", "k=4", "mode=pages"],
            2,
            "mode='pages' is not one of",
        ),
        (["explain", "topk", "--target", "gfx950", "--op", "plan", "width=9"], 2, "topk has no op 'plan'"),
        (["build", "--target", "gfx950", "--out", "/dev/null/x"], 2, "--out /dev/null/x: /dev/null is not a folder"),
    ],
)
def test_mistakes_are_named(copy: Copy, words: list[str], status: int, expected: str) -> None:
    done = copy.run(*words)
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == status


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "indexer_logits batch=2 width=64 heads=64 queries=1",
            "floor    34,304 bytes moved at least: batch * width * 132 +",
        ),
        ("indexer_logits batch=2 width=64 queries=1", "floor    needs heads: batch * width * 132 +"),
        ("gather_dequant tokens=3 width=128", "floor    619,392 bytes moved at least: "),
        (
            "sparse_decode --op merge_lse tokens=1 heads=1 value_width=8 splits=2",
            "floor    the spec states none for merge_lse",
        ),
    ],
)
def test_explain_has_the_floor_of_the_op(copy: Copy, words: str, expected: str) -> None:
    done = copy.run("explain", *words.split(), "--target", "gfx950")
    assert expected in done.stdout
    assert done.returncode == 0


def test_a_wrong_variant_flag_lists_the_right_ones(copy: Copy) -> None:
    done = copy.run("explain", "topk", "--target", "gfx950", "batch=1", "width=9", "k=4", DSV4GEN_TOPK="v3")
    assert "DSV4GEN_TOPK='v3' is not one of v2, v1" in done.stderr
    assert done.returncode == 2


def test_the_variant_flag_chooses_the_legacy_kernel(copy: Copy) -> None:
    words = ("explain", "topk", "--target", "gfx950", "batch=1", "width=9", "k=4")
    assert "topk_v1_page_table" in copy.run(*words, DSV4GEN_TOPK="v1").stdout
    assert "topk_v1" not in copy.run(*words).stdout


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("language: hip_cuda", "langauge: hip_cuda", "unknown key 'langauge' (did you mean 'language'?)"),
        ("family: topk", "family: topk\nfamily: topk", "the key 'family' is already set on line 2"),
        ("k_max: 2048", 'k_max: "2048"', "k_max"),
        ("k_max: 2048", "k_max: true", "k_max"),
        ('prefer: "true"', 'prefer: "widht > 3"', "did you mean 'width'?"),
        ('prefer: "true"', 'prefer: "__import__(1)"', "__import__"),
        ("rank_limit: 128", "rank_limt: 128", "rank_limit"),
    ],
)
def test_a_mistake_in_a_spec_is_placed_and_nothing_is_written(copy: Copy, old: str, new: str, expected: str) -> None:
    assert copy.run("build", "--target", "gfx950").returncode == 0
    before = tree_bytes(copy.generated)
    copy.edit("specs/families/topk.yaml", old, new)
    done = copy.run("build", "--target", "gfx950")
    assert done.returncode in (2, 3)
    assert expected in done.stderr
    assert "topk" in done.stderr.split("] ", 1)[1].split(": ", 1)[0]
    assert "Traceback" not in done.stderr
    assert tree_bytes(copy.generated) == before


def test_a_family_of_several_ops_says_which_is_the_main_one(copy: Copy) -> None:
    done = copy.run("explain", "qk_norm_rope", "-t", "gfx950", "tokens=3", "heads=4")
    assert "qk_norm_rope.qk_norm_rope_store on gfx950" in done.stdout
    copy.edit("specs/families/qk_norm_rope.yaml", "main: qk_norm_rope_store\n", "")
    done = copy.run("build", "--target", "gfx950")
    assert (done.returncode, "add `main: OP`" in done.stderr) == (2, True)
    assert "specs/families/qk_norm_rope.yaml:" in done.stderr


def test_a_mistake_in_a_template_is_placed_and_nothing_is_written(copy: Copy) -> None:
    copy.edit("templates/hip_cuda/topk.cu.jinja", "constexpr u32 kSign", "{{ plan.famly }}\nconstexpr u32 kSign")
    done = copy.run("build", "--target", "gfx950")
    assert "templates/hip_cuda/topk.cu.jinja:" in done.stderr and "famly" in done.stderr
    assert done.returncode == 3
    assert not copy.generated.exists()


def test_a_foreign_word_in_a_template_is_found_before_anything_is_written(copy: Copy) -> None:
    copy.edit(
        "templates/hip_cuda/topk.cu.jinja",
        "constexpr u32 kSign",
        "constexpr int kLanes = warpSize;\nconstexpr u32 kSign",
    )
    done = copy.run("build", "--target", "gfx950")
    assert "'warpSize' is foreign" in done.stderr
    assert "templates/hip_cuda/topk.cu.jinja:" in done.stderr
    assert not copy.generated.exists()


def test_json_output_is_json_on_every_command(copy: Copy) -> None:
    import json

    for words in (
        ["build", "--target", "gfx950", "--json"],
        ["build", "--target", "gfx950", "--check", "--json"],
        ["list", "--json"],
        ["explain", "topk", "--target", "sm_90", "batch=1", "width=9", "k=4", "--json"],
        ["schema", "family"],
    ):
        done = copy.run(*words)
        assert done.returncode == 0, done.stderr
        json.loads(done.stdout)


def test_spellings_of_a_target_mean_the_same(copy: Copy) -> None:
    for word in ("gfx942:sramecc+:xnack-", "GFX942"):
        assert "gfx942" in copy.run("explain", "topk", "--target", word, "batch=1", "width=9", "k=4").stdout
    for word in ("sm_90a", "9.0", "90"):
        assert "sm_90" in copy.run("explain", "topk", "--target", word, "batch=1", "width=9", "k=4").stdout
