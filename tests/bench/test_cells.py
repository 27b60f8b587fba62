"""What is timed: lists of the manifest, words of the command line, floors."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from click.testing import CliRunner

from dsv4gen.base.errors import ArgumentError, DsvError, ManifestError, UsageError
from dsv4gen.bench.cells import Wanted, cells_of
from dsv4gen.bench.prepare import LEAST_BYTES, prepare, request_for, set_count
from dsv4gen.cli import main
from dsv4gen.reference.workload import Workload
from dsv4gen.runtime.load import any_entry, families

TOPK = any_entry("topk")


def wanted(*groups: str, **words: int | str) -> Wanted:
    """Words of a command line."""
    sizes = {name: value for name, value in words.items() if isinstance(value, int)}
    return Wanted(groups, sizes, {name: value for name, value in words.items() if isinstance(value, str)})


def test_lists_of_values_stand_for_every_combination() -> None:
    cells = cells_of("topk", TOPK, wanted("short"))
    assert len(cells) == 6 * 3 * 2
    assert len({cell.key for cell in cells}) == len(cells)


def test_sizes_select_and_a_shape_of_ones_own_is_timed_as_given() -> None:
    found = cells_of("topk", TOPK, wanted(batch=8, k=512))
    assert {cell.shape["batch"] for cell in found} == {8} and len(found) == 7
    (given,) = cells_of("topk", TOPK, wanted(batch=3, width=5000, mode="dual"))
    assert given.group == "given" and given.shape["width"] == 5000 and given.options["mode"] == "dual"


def test_floors_are_those_of_the_list_or_of_the_family() -> None:
    (cell,) = cells_of("topk", TOPK, wanted(batch=8, width=4096, k=512))
    assert (cell.floor_bytes, cell.floor_flops) == (4 * 8 * (4096 + 512), 0)
    prefill = cells_of("compress", any_entry("compress"), wanted("prefill", ratio=4, tokens=1024))
    assert [cell.floor_bytes for cell in prefill] == [4 * 1024 * 4 * 512 + 584 * 256]


@pytest.mark.parametrize(("rows", "width"), [(2048, 512), (64, 160), (37, 1000)])
def test_the_floor_of_a_prefill_counts_the_keys_that_its_rows_see(rows: int, width: int) -> None:
    """At most those of the timed inputs, and all of them but for rounding."""
    entry = any_entry("indexer_logits")
    (cell,) = cells_of("indexer_logits", entry, wanted("prefill", batch=1, heads=2, rows=rows, width=width))
    prepared = prepare(request_for(cell, entry, "cpu"), entry["reference"], 0)
    lens: Any = prepared.arguments["seq_lens"]
    seen = 2 * 2 * 128 * int(lens.sum())
    assert 0.99 * seen < cell.floor_flops <= seen


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        (wanted("shrot"), UsageError, "did you mean 'short'"),
        (wanted(widht=3), UsageError, "did you mean 'width'"),
        (wanted(mode="duel"), ArgumentError, "not one of indices, page_table, dual"),
    ],
)
def test_mistakes(words: Wanted, error: type[DsvError], message: str) -> None:
    with pytest.raises(error, match=message):
        cells_of("topk", TOPK, words)


def test_a_family_without_shapes_says_where_to_add_them() -> None:
    with pytest.raises(ManifestError, match=r"lists no shapes.*\n.*specs/families/topk.yaml"):
        cells_of("topk", {**TOPK, "bench": {}}, wanted())


def test_every_family_lists_shapes() -> None:
    assert all(cells_of(name, any_entry(name), wanted()) for name in families())


@pytest.mark.parametrize(
    ("size", "cache", "most", "sets"),
    [(1, 0, 64, 64), (LEAST_BYTES, 0, 64, 2), (10 << 20, 60 << 20, 64, 15), (1 << 40, 60 << 20, 64, 2), (1, 1, 9, 9)],
)
def test_sets_exceed_the_cache_within_reason(size: int, cache: int, most: int, sets: int) -> None:
    assert set_count(Workload(size, lambda: [], lambda *_: None, most), cache) == sets


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["bench", "topk"], 3, "no GPU number 0"),
        (["bench", "topkk"], 2, "no family 'topkk'"),
        (["bench", "topk", "k"], 2, "not KEY=VALUE"),
        (["bench", "topk", "--list", "none"], 2, "no list of shapes"),
        (["bench", "topk", "--peers", "none,torch"], 2, "excludes every other"),
        (["bench", "topk", "--compare", "/no/such/file"], 2, "no result of bench"),
    ],
)
def test_command_line(words: list[str], status: int, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    done = CliRunner().invoke(main, words)
    assert done.exit_code == status and message in done.output
    assert "Traceback" not in done.output


def test_a_machine_without_the_generator_can_time() -> None:
    """Up to the point where a card is missing, nothing needs the generator's libraries."""
    missing = "import sys; sys.modules.update(dict.fromkeys(('pydantic', 'ruamel.yaml', 'z3', 'jinja2', 'sympy')))"
    script = f"{missing}; from dsv4gen.cli import main; import dsv4gen.bench.run, dsv4gen.bench.show; main()"
    words = [sys.executable, "-c", script, "bench", "topk"]
    done = subprocess.run(words, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}, capture_output=True, text=True)
    assert done.returncode == 3 and "no GPU number 0" in done.stderr
