"""Builds: nothing is written twice, bytes do not depend on anything but the specs, drift is named with its repair."""

from __future__ import annotations

import json
import re
import shutil
import threading
from pathlib import Path

import pytest

from tests.specs import Copy, copy_specs, tree_bytes

TARGETS = ("gfx950", "gfx1201", "sm_90")
WORDS = [word for target in TARGETS for word in ("--target", target)]


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return copy_specs(tmp_path)


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """A copy in which all of TARGETS are built; for reading only."""
    made = copy_specs(tmp_path_factory.mktemp("built"))
    build(made, PYTHONHASHSEED="0", LC_ALL="C", TZ="UTC")
    return made


@pytest.fixture
def built(first: Copy, tmp_path: Path) -> Copy:
    """The same for a test to change, time stamps and cache included."""
    return Copy(Path(shutil.copytree(first.folder, tmp_path / "built", symlinks=True)))


def build(copy: Copy, *words: str, **environment: str) -> str:
    done = copy.run("build", *(words or WORDS), **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_second_build_writes_nothing(built: Copy) -> None:
    before = {path: path.stat().st_mtime_ns for path in built.generated.rglob("*")}
    assert build(built) == f"nothing to do: {', '.join(TARGETS)} up to date\n"
    built.edit("specs/families/topk.yaml", "family: topk", "# a comment\nfamily: topk")
    build(built)
    assert before == {path: path.stat().st_mtime_ns for path in built.generated.rglob("*")}


def test_bytes_depend_on_nothing_but_the_specs(first: Copy, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = copy_specs(tmp_path_factory.mktemp("elsewhere with blank"))
    spec = other.folder / "specs/families/topk.yaml"
    spec.write_text(_reordered(spec.read_text(encoding="utf-8")), encoding="utf-8")
    for template in (other.folder / "templates").rglob("*.jinja"):
        template.write_bytes(template.read_bytes().replace(b"\n", b"\r\n"))
    reverse = [word for target in reversed(TARGETS) for word in ("--target", target)]
    build(other, *reverse, PYTHONHASHSEED="7", LC_ALL="de_DE.UTF-8", TZ="Asia/Tokyo")
    assert tree_bytes(first.generated) == tree_bytes(other.generated)


def _reordered(text: str) -> str:
    """Top-level blocks in reverse order and every comment reworded."""
    blocks = re.split(r"(?m)^(?=[a-z]+:)", text)
    return "".join([blocks[0], *reversed(blocks[1:])]).replace("#", "# other words:")


def test_outputs_name_no_machine_and_no_day(first: Copy) -> None:
    for name, data in tree_bytes(first.generated).items():
        assert str(first.folder).encode() not in data, name
        assert not re.search(rb"\b20\d\d-\d\d-\d\d\b", data), name
        assert data.endswith(b"\n") and b"\r" not in data and not re.search(rb"[ \t]\n", data), name


def test_building_one_target_leaves_the_others_alone(built: Copy) -> None:
    built.edit("specs/families/topk.yaml", "rank_limit: 128", "rank_limit: 64")
    before = tree_bytes(built.generated)
    written = build(built, "--target", "gfx950")
    assert "gfx950: wrote" in written and "topk.hip" in written
    after = tree_bytes(built.generated)
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"gfx950/manifest.json", "gfx950/plans/topk.json", "gfx950/topk.hip"}


def test_the_kernel_body_is_the_same_bytes_on_targets_with_the_same_capabilities(copy: Copy) -> None:
    build(copy, "--target", "gfx90a", "--target", "gfx942")
    bodies = {
        target: (copy.generated / target / "topk.hip").read_text(encoding="utf-8").split("// ==== kernel body ====")[1]
        for target in ("gfx90a", "gfx942")
    }
    assert bodies["gfx90a"] == bodies["gfx942"]


def drift(copy: Copy) -> dict[str, str]:
    done = copy.run("build", "--check", "--json", "--target", "gfx950")
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    assert done.returncode == (1 if found else 0)
    assert all(row["repair"] == "dsv4gen build --target gfx950" for row in found)
    return {Path(row["file"]).name: row["kind"] for row in found}


def test_check_tells_stale_from_edited_from_missing_from_orphan(built: Copy) -> None:
    assert drift(built) == {}
    folder = built.generated / "gfx950"
    before = tree_bytes(built.generated)
    built.edit("specs/families/topk.yaml", "rank_limit: 128", "rank_limit: 64")
    assert drift(built)["topk.hip"] == "stale"
    (folder / "topk.hip").write_text("// mine\n", encoding="utf-8")
    (folder / "topk.pyi").unlink()
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["outputs"]["old.hip"] = "0" * 64
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (folder / "old.hip").write_text("", encoding="utf-8")
    assert drift(built) == {"topk.json": "stale", "topk.hip": "edited", "topk.pyi": "missing", "old.hip": "orphan"}
    built.edit("specs/families/topk.yaml", "rank_limit: 64", "rank_limit: 128")
    build(built, "--target", "gfx950")
    assert drift(built) == {}
    assert tree_bytes(built.generated) == before


def test_check_says_missing_for_a_target_that_was_never_built(copy: Copy) -> None:
    assert drift(copy) == {"manifest.json": "missing"}
    assert not copy.generated.exists()


def test_two_builds_at_once_leave_one_whole_tree(copy: Copy) -> None:
    outcomes: list[int] = []
    threads = [threading.Thread(target=lambda: outcomes.append(copy.run("build", *WORDS).returncode)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == [0, 0]
    assert build(copy).startswith("nothing to do")
    assert drift(copy) == {}


def test_a_family_can_be_built_alone_and_the_rest_is_carried(built: Copy) -> None:
    before = tree_bytes(built.generated)
    build(built, "--target", "gfx950", "--family", "topk")
    assert tree_bytes(built.generated) == before


@pytest.mark.parametrize("folder", ["a b", "ü'$(touch x)", "x" * 120])
def test_odd_output_folders_work_and_run_nothing(copy: Copy, folder: str) -> None:
    build(copy, "--target", "gfx950", "--family", "topk", "--out", folder)
    assert (copy.folder / folder / "gfx950" / "manifest.json").is_file()
    assert not (copy.folder / "x").exists()


def test_a_template_without_an_entry_for_a_planned_kernel_is_refused(copy: Copy) -> None:
    copy.edit("templates/hip_cuda/topk.cu.jinja", "// ---- entry: {{ instance.symbol }} ----", "//")
    done = copy.run("build", "--target", "gfx950", "--family", "topk")
    assert done.returncode == 3
    assert re.search(r"specs/families/topk\.yaml:\d+:\d+: templates/hip_cuda/topk\.cu\.jinja has no entry", done.stderr)
    assert not copy.generated.exists()


def test_an_import_from_a_checkout_explains_without_any_gpu(built: Copy) -> None:
    script = "from generated.gfx950 import topk; print(topk.explain(batch=4, width=8192, k=512).launches[0].symbol)"
    done = built.run_python(script)
    assert done.stdout == "topk_short2_page_table_t1024\n", done.stderr
