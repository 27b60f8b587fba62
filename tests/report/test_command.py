"""`dsv4gen report` on a terminal and as files: what it prints, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.report import planted as plant
from tests.report.planted import Planted


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    return plant.all_failures(tmp_path_factory.mktemp("failing"))[0]


WORDS = ("report", "-t", "gfx90a", "-t", "gfx950", "-t", "sm_90", "-f", "gather_dequant", "-f", "topk")


def test_the_matrix_and_what_needs_attention(failing: Planted) -> None:
    done = failing.copy.run(*WORDS, "--verify", str(failing.results), "--bench", str(failing.times))
    assert done.returncode == 1
    assert "✗✗··– does not fit" in done.stdout
    assert "✓✓✗✓✓ spills" in done.stdout
    assert "△ gfx950/gather_dequant compiled: older results" in done.stdout
    assert "AMD results are emulated on a CPU, not measured on AMD hardware." in done.stdout
    assert "\x1b" not in done.stdout


def test_one_cell_with_all_its_reasons(failing: Planted) -> None:
    done = failing.copy.run("report", "gfx950/topk", "-t", "gfx950", "-f", "topk", "--verify", str(failing.results))
    assert done.returncode == 1
    assert "topk on gfx950: stale tuning" in done.stdout
    assert "not executed: gfx950 topk topk_t256: row path register2: no case reached it" in done.stdout
    assert "select.cluster: rejected, requires cluster.remote_shared, but cluster.remote_shared is False" in done.stdout


def test_nothing_wrong_is_exit_0_and_writes_one_file(tmp_path: Path) -> None:
    planted = plant.sound(tmp_path)
    assert "did you mean 'gfx950'?" in planted.copy.run("report", "-t", "gfx95").stderr
    done = planted.copy.run(*WORDS, "--html", "out")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("index.html: 6 cells\n")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["index.html"]


def test_json_is_the_model_without_the_texts(failing: Planted) -> None:
    done = failing.copy.run("report", "-t", "sm_90", "-f", "topk", "--json", "--bench", str(failing.times))
    data = json.loads(done.stdout)
    assert (data["kind"], data["schema"]) == ("dsv4gen report", 1)
    assert "texts" not in data
    assert data["cells"][0]["bench"][0]["charts"][0]["axis"] == "width"


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        (("-f", "tpk"), 2, "did you mean 'topk'?"),
        (("gfx950/tpk", "-t", "gfx950"), 2, "did you mean 'topk'?"),
        (("-t", "gfx950", "-f", "topk", "--html", "/dev/null/x"), 2, "--html /dev/null/x: /dev/null is not a folder"),
    ],
)
def test_mistakes_are_named(failing: Planted, words: tuple[str, ...], status: int, expected: str) -> None:
    done = failing.copy.run("report", *words)
    assert expected in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == status
