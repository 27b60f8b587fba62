"""`dsv4gen emulate`: AMD machine code run, compared and counted from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dsv4gen.cli import main
from dsv4gen.verify.amdgcn import AmdgcnFamily
from dsv4gen.verify.triton_machine import TritonMachine
from tests.amdgcn.compiled import compile_hip
from tests.tools import need_module, need_tool


def emulate(*words: str) -> Result:
    need_tool("clang++-22")
    return CliRunner().invoke(main, ["emulate", *words])


@pytest.mark.parametrize("target", ["gfx950", "gfx1201"])
def test_topk_is_right_and_counted(target: str) -> None:
    done = emulate("topk", "--target", target, "width=3000", "k=512", "--json", "--order", "random:3")
    assert done.exit_code == 0, done.output
    outcome = json.loads(done.stdout)
    assert outcome["problem"] == ""
    (launch,) = outcome["launches"]
    assert launch["symbol"] == "topk_short2_page_table_t512"
    assert launch["instructions"] > 1000
    assert launch["counters"]["lds_atomics"] > 0


@pytest.mark.parametrize(
    ("words", "symbol"),
    [
        ("batch=8192 width=4096 k=512", "topk_short4_page_table_t256"),
        ("batch=1 width=4096 k=512", "topk_short2_page_table_t512"),
        ("batch=1 width=4097 k=512", "topk_short2_page_table_t1024"),
        ("batch=8192 width=17920 k=1024", "topk_page_table_t256"),
    ],
)
def test_a_row_stands_for_the_batch_that_was_asked_for(words: str, symbol: str) -> None:
    """Its tile is the batch's, and the buffer is no wider than the row."""
    done = emulate("topk", "--target", "gfx950", *words.split(), "--json")
    assert done.exit_code == 0, done.output
    outcome = json.loads(done.stdout)
    assert [(launch["symbol"], launch["grid"]) for launch in outcome["launches"]] == [(symbol, [1, 1, 1])]
    assert ("tiles of batch=8192" in outcome["case"]) == ("8192" in words)


@pytest.mark.parametrize(
    ("words", "symbols"),
    [
        ("--variant v1", ["topk_v1_page_table_t512"]),
        ("--path single", ["topk_page_table_t512"]),
        ("--path split", ["topk_split_count_page_table_t512", "topk_split_select_page_table_t512"]),
    ],
)
def test_another_variant_or_path_can_be_asked_for(words: str, symbols: list[str]) -> None:
    done = emulate("topk", "--target", "gfx950", "batch=1", "width=4096", "k=512", *words.split(), "--json")
    assert done.exit_code == 0, done.output
    assert [launch["symbol"] for launch in json.loads(done.stdout)["launches"]] == symbols


def test_a_path_that_is_not_right_for_the_shape_is_refused_with_all_reasons() -> None:
    done = emulate("topk", "--target", "gfx950", "--path", "cluster", "width=4096")
    assert done.exit_code == 3
    assert "split: cluster was asked for; cluster: not on this target: requires cluster.remote_shared" in done.output
    assert "leave out --path cluster" in done.output


def test_a_planted_defect_is_reported_with_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    real = AmdgcnFamily.__init__
    monkeypatch.setattr(
        AmdgcnFamily, "__init__", lambda self, plan, record: real(self, plan, record, frozenset({"missing_barrier"}))
    )
    done = emulate("topk", "--target", "gfx1201", "width=8192", "k=512")
    assert done.exit_code == 1
    assert "LDS race" in done.output


SPARSE = ("tokens=2", "heads=16", "width=40", "page_size=64", "pages=2", "extra_width=24", "extra_pages=2")


def test_a_triton_family_is_right_and_counted_by_function() -> None:
    need_module("triton")
    done = CliRunner().invoke(main, ["emulate", "sparse_decode", "--target", "gfx1201", "--json", *SPARSE])
    assert done.exit_code == 0, done.output
    outcome = json.loads(done.stdout)
    assert (outcome["problem"], outcome["unit"]) == ("", ["KV token", 128])
    launch, merge = outcome["launches"]
    assert merge["symbol"] == "merge_parts"
    functions = launch["functions"]
    assert (launch["symbol"], launch["block"]) == ("attend_scopes", 256)
    assert sum(sum(counts.values()) for counts in functions.values()) == launch["instructions"]
    assert sum(counts.get("matrix", 0) for counts in functions.values()) == launch["counters"]["matrix"]
    assert functions["attend_block"]["matrix"] > 0
    assert functions["dequantize"]["vector"] > functions["load_tile"]["vector"] > 0


def test_a_defect_of_a_triton_family_is_reported_with_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    need_module("triton")
    real = TritonMachine.__init__
    monkeypatch.setattr(
        TritonMachine,
        "__init__",
        lambda self, plan, record, lines: real(self, plan, record, frozenset({"unmasked_logits"}), lines=lines),
    )
    done = CliRunner().invoke(main, ["emulate", "sparse_decode", "--target", "gfx950", *SPARSE])
    assert done.exit_code == 1
    assert "WRONG: " in done.output and "lse" in done.output
    assert "dequantize" in done.output and "all per KV token" in done.output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "nothing to run"),
        (("topk", "--target", "sm_90"), "is no AMD target"),
        (("tpk", "--target", "gfx950"), "did you mean 'topk'?"),
        (("topk", "--target", "gfx950", "rows=3"), "no size or option 'rows'"),
        (("topk", "--target", "gfx950", "width=1e3"), "width='1e3' is not a whole number"),
        (("topk", "--target", "gfx950", "mode=5"), "mode=5 is not one of indices, page_table"),
        (("topk", "--target", "gfx950", "scores=zeros_59"), "no scores 'zeros_59' (did you mean 'zeros_"),
        (("topk", "--target", "gfx950", "score_dtype=f16"), "score_dtype='f16' is not one of f32, bf16"),
        (("topk", "--target", "gfx950", "k=-1"), "k=-1 is outside 1..2048"),
        (("topk", "--target", "gfx950", "width=99999999999"), "width=99999999999 is outside 0..4194304"),
        (("topk", "--target", "gfx950", "batch=0"), "batch=0 launches nothing"),
        (("topk", "--target", "gfx950", "order=random"), "no size or option 'order'"),
        (("topk", "--target", "gfx950", "--order", "random:"), "unknown order 'random:'"),
        (("topk", "--target", "gfx950", "--grid", "4"), "--grid says nothing about a family"),
        (("topk", "--target", "gfx1250"), "gfx1250 is compile-only"),
        (("gather_dequant", "--target", "gfx950", "tokens=0", "width=8"), "tokens=0 leaves nothing to run"),
        (("--hsaco", "k.hsaco"), "--hsaco without a kernel"),
        (("--hsaco", "k.hsaco", "--kernel", "x", "--path", "split"), "--path says nothing about --hsaco"),
        (("topk", "--target", "gfx950", "--path", "spilt"), "no path 'spilt' (did you mean 'split'?)"),
        (("topk", "--target", "gfx950", "--variant", "v3"), "no variant 'v3'"),
        (("sparse_decode", "--target", "gfx950", "--path", "split"), "whose launcher chooses paths itself"),
        (("sparse_decode", "--target", "gfx950", "rows=3"), "no size 'rows'"),
        (("sparse_decode", "--target", "gfx950", "heads=3"), "no value for tokens, width"),
        (("sparse_decode", "--target", "gfx950", "--op", "attends"), "no op 'attends' (did you mean 'attend'?)"),
        (("--hsaco", "nowhere.hsaco", "--kernel", "x"), "cannot read nowhere.hsaco"),
        (("--hsaco", "k.hsaco", "--kernel", "x", "--grid", "4,x"), "--grid '4,x' is not X, X,Y or X,Y,Z"),
        (("--hsaco", "k.hsaco", "--kernel", "x", "--grid", "0"), "--grid '0' is not X, X,Y or X,Y,Z"),
    ],
)
def test_mistakes_are_named(words: tuple[str, ...], expected: str) -> None:
    done = emulate(*words)
    assert expected in done.output
    assert done.exit_code == 2


def test_the_familys_flag_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_TOPK", "v1")
    done = emulate("topk", "--target", "gfx950", "width=600", "k=512", "--json")
    assert [launch["symbol"] for launch in json.loads(done.stdout)["launches"]] == ["topk_v1_page_table_t512"]
    monkeypatch.setenv("DSV4GEN_TOPK", "v9")
    assert "DSV4GEN_TOPK='v9' is not one of v2, v1" in emulate("topk", "--target", "gfx950", "width=600").output


@pytest.mark.parametrize("word", ["f33[4]", "f32[x]", "i32:a", "i8:300", "what"])
def test_wrong_kernel_arguments_are_named(tmp_path: Path, word: str) -> None:
    need_tool("llvm-objdump-22")
    file = tmp_path / "k.hsaco"
    file.write_bytes(compile_hip("topk", "gfx950", output="-c"))
    done = emulate("--hsaco", str(file), "--kernel", "topk", word)
    assert done.exit_code == 2
    assert word.split("[")[0].split(":")[0] in done.output


def test_any_code_object_runs_with_arguments_in_words(tmp_path: Path) -> None:
    need_tool("llvm-objdump-22")
    file = tmp_path / "k.hsaco"
    file.write_bytes(compile_hip("topk", "gfx950", output="-c"))
    words = ("i32[64]=-1", "f32[8192]", "i32:8192", "i32:64")
    done = emulate("--hsaco", str(file), "--kernel", "topk", "--block", "1024", *words)
    assert done.exit_code == 0, done.output
    assert "clean: no race" in done.output
