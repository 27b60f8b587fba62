"""The scripts for a card, where there is none: each is named once in the list of all, and says that it needs one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dsv4gen.commands.measure import tune
from dsv4gen.runtime import platform
from dsv4gen.runtime.platform import HostPlatform
from tests.checkout import ROOT
from tests.device import run_all, run_sanitizer, topk_costs
from tests.runtime import stubs

SCRIPTS = sorted(path.stem for path in (ROOT / "tests" / "device").glob("run_*.py"))


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", SCRIPTS)
def test_without_a_card_a_script_says_so(name: str) -> None:
    done = _run(f"tests/device/{name}.py")
    assert (done.returncode, done.stderr) == (2, "needs a CUDA card: torch sees none on this machine\n")


def test_the_list_of_all_names_every_script_and_every_family(tmp_path: Path) -> None:
    commands = [" ".join(part.command) for part in run_all.parts(tmp_path)]
    for name in set(SCRIPTS) - {"run_all"}:
        assert any(f"{name}.py" in command for command in commands)
    for family in (path.stem for path in (ROOT / "specs" / "families").glob("*.yaml")):
        assert any(f"bench {family} " in command for command in commands)
    assert len({part.name for part in run_all.parts(tmp_path)}) == len(commands)
    assert "topk-race" in _run("tests/device/run_all.py", "--list", "--only", "topk").stdout


def test_packs_are_measured_one_after_the_other(tmp_path: Path) -> None:
    for family in ("topk", "compress"):
        (tmp_path / f"{family}.pack").touch()
    listed = _run("tests/device/run_all.py", "--list", "--only", "tune", "--packs", str(tmp_path)).stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["compress-tune", "topk-tune"]
    assert f"tune --measure {tmp_path}/topk.pack --journal" in listed[1]
    words = run_all.tunings(tmp_path, tmp_path)[0].command[2:]
    with tune.make_context("tune", [*words[1:]]) as context:
        assert context.params["measure_file"] == tmp_path / "compress.pack" and context.params["family"] is None


def test_a_part_is_right_wrong_or_stopped(tmp_path: Path) -> None:
    outcomes = {
        "print(1)": "right",
        "raise SystemExit(3)": "exit status 3",
        "import time; time.sleep(60)": "stopped after 1 s",
    }
    for number, (text, outcome) in enumerate(outcomes.items()):
        assert run_all.run(run_all.Part(f"p{number}", ("-c", text), 1), tmp_path, 1) == outcome
    assert (tmp_path / "p0.log").read_text() == "1\n"


def test_cards_share_the_parts_and_the_host_is_timed_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two parts meet, each waiting for the other's file; the one that times the host comes when both have ended."""
    meet = (
        "import os, sys, time\nfrom pathlib import Path\nhere, other = map(Path, sys.argv[1:])\n"
        "here.write_text(os.environ['CUDA_VISIBLE_DEVICES'])\n"
        "while not other.exists(): time.sleep(0.01)\ntime.sleep(0.3)\nhere.with_suffix('.end').touch()"
    )
    left, right = tmp_path / "left.gpu", tmp_path / "right.gpu"
    last = f"from pathlib import Path\nassert len(list(Path({str(tmp_path)!r}).glob('*.end'))) == 2"
    wanted = [
        run_all.Part("host", ("-c", last), 20, alone=True),
        run_all.Part("left", ("-c", meet, str(left), str(right)), 20),
        run_all.Part("right", ("-c", meet, str(right), str(left)), 20),
    ]
    assert run_all.run_parts(wanted, tmp_path, ["2", "5"], time.monotonic() + 60) == 0
    assert {left.read_text(), right.read_text()} == {"2", "5"}
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[-1].startswith("host") and lines[-1].endswith("right  on 2")


def test_parts_that_have_no_time_left_are_named_and_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_all.run_parts([run_all.Part("late", ("-c", ""), 9)], tmp_path, ["0", "1"], time.monotonic()) == 1
    assert "left out: no time" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "status", "code", "words"),
    [
        ("  single/512 indices\n========= ERROR SUMMARY: 0 errors\n", 0, 0, "1 calls, ERROR SUMMARY: 0 errors"),
        ("  a/1 x\n========= Invalid __global__ write of size 4 bytes\n", 9, 1, "1 findings in 1 calls: Invalid"),
        ("  a/1 x\n========= Error: Race reported between Write access\n", None, 1, "Race reported"),
        ("  a/1 x\n  b/1 y\n", None, 1, "stopped after 2 calls, nothing found"),
        ("========= Error: Device not supported\n", 1, 3, "does not run here: Device not supported"),
        ("FAIL every kernel\n", 1, 1, "exit status 1"),
        ("", 0, 1, "no summary"),
    ],
)
def test_what_a_sanitizer_says_becomes_a_verdict(text: str, status: int | None, code: int, words: str) -> None:
    found, line = run_sanitizer.verdict(text, status)
    assert found == code and words in line


def test_the_bare_call_launches_what_the_loaded_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("TOPK_PEER", raising=False)
    driver, compiler = (stubs.build_library(tmp_path, name) for name in ("libcuda.so.1", "libnvrtc.so.13"))
    stubs.place(monkeypatch, driver, compiler)
    stub = stubs.open_stub(driver, "cuda")
    stub.set("params_bytes", 144)
    with platform.use(HostPlatform("sm_90", 132)):
        for batch, width in ((1, 1024), (64, 4096)):
            ways = topk_costs.ways_to_call(*topk_costs.short_rows(batch, width, "cpu"))
            for name in (topk_costs.BARE, "loaded, checked", "loaded, unchecked", "torch.ops"):
                ways[name]()
            last = stub.launches()[-4:]
            launches = [(bytes(one.params[:144]), stub.symbol(one), list(one.grid), one.stream) for one in last]
            assert launches.count(launches[0]) == 4 and launches[0][0].count(0) < 144
