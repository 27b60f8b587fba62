"""sdist, wheel and an empty environment: complete, the same bytes, and nothing of the builder's machine."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsv4gen.emit.build import Request, make_trees
from dsv4gen.emit.select import known_targets
from tests.checkout import ROOT
from tests.packaging.conftest import Installed, hatchling
from tests.specs import tree_bytes
from tests.tools import need_extension


def tracked(folder: str, suffix: str) -> set[str]:
    return {path.relative_to(ROOT / folder).as_posix() for path in (ROOT / folder).rglob(f"*{suffix}")}


def test_the_wheel_is_complete(installed: Installed) -> None:
    names = set(zipfile.ZipFile(installed.wheel).namelist())
    assert {f"dsv4gen/_data/templates/{name}" for name in tracked("templates", ".jinja")} <= names
    assert {f"dsv4gen/_data/specs/{name}" for name in tracked("specs", ".yaml")} <= names
    assert {f"dsv4gen/{name}" for name in tracked("dsv4gen", ".py") | tracked("dsv4gen", ".txt")} <= names
    assert {f"dsv4gen/{name}" for suffix in (".h", ".c", ".cpp") for name in tracked("dsv4gen", suffix)} <= names
    assert {f"dsv4gen/_data/generated/{target}/manifest.json" for target in known_targets()} <= names


def test_the_wheel_holds_nothing_else(installed: Installed) -> None:
    wheel = zipfile.ZipFile(installed.wheel)
    names = wheel.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"dsv4gen"}
    assert not [name for name in names if "stranger" in name or name.endswith(".pyc") or "test" in name.split("/")]
    for name in names:
        assert str(installed.folder).encode() not in wheel.read(name), name


def test_the_wheel_carries_the_extension_and_says_so(installed: Installed) -> None:
    need_extension(installed.folder)
    wheel = zipfile.ZipFile(installed.wheel)
    assert "dsv4gen/runtime/_native.abi3.so" in wheel.namelist()
    assert re.search(r"-cp310-abi3-[a-z0-9_]+\.whl$", installed.wheel.name)
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/WHEEL"))
    assert b"Root-Is-Purelib: false" in wheel.read(name)
    assert _way_of_calls(installed.run("dsv4gen", "doctor", "--json")) == "_native.abi3.so"
    done = installed.run("dsv4gen", "doctor", "--json", DSV4GEN_NATIVE="0")
    assert _way_of_calls(done) == "DSV4GEN_NATIVE=0"


def _way_of_calls(done: subprocess.CompletedProcess[str]) -> str:
    """What doctor says of the extension: its file, or why it is not used."""
    assert done.returncode == 0, done.stderr
    (row,) = (row for row in json.loads(done.stdout) if row["name"] == "extension")
    return str(row["found"] or row["remedy"])


def test_without_a_compiler_the_wheel_is_pure_and_works(installed: Installed, tmp_path: Path) -> None:
    (tree,) = (installed.folder / "tree").iterdir()
    wheel = hatchling(tree, "wheel", tmp_path / "wheel", PATH=str(tmp_path), CC="")
    assert wheel.name.endswith("-py3-none-any.whl")
    archive = zipfile.ZipFile(wheel)
    assert not [name for name in archive.namelist() if name.endswith(".so")]
    archive.extractall(tmp_path / "here")
    words = ("-c", "import dsv4gen.cli; print(dsv4gen.__file__); dsv4gen.cli.main(['doctor', '--json'])")
    done = installed.run("python", *words, cwd=tmp_path, PYTHONPATH=str(tmp_path / "here"))
    first, rest = done.stdout.split("\n", 1)
    assert Path(first).is_relative_to(tmp_path / "here"), done.stderr
    assert "was not built" in next(row["remedy"] for row in json.loads(rest) if row["name"] == "extension")


def test_both_distributions_carry_the_license(installed: Installed) -> None:
    text = (ROOT / "LICENSE").read_bytes()
    wheel = zipfile.ZipFile(installed.wheel)
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/licenses/LICENSE"))
    (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    with tarfile.open(installed.sdist) as archive:
        (member,) = (member for member in archive if member.name.endswith("/LICENSE"))
        packed = archive.extractfile(member)
        assert packed is not None
        assert wheel.read(name) == packed.read() == text
    assert b"License-Expression: MIT\nLicense-File: LICENSE\n" in wheel.read(metadata)


def test_the_environment_runs_the_installed_package(installed: Installed) -> None:
    done = installed.run("python", "-c", "import dsv4gen; print(dsv4gen.__file__)")
    assert Path(done.stdout.strip()).parent == installed.package, done.stderr


def test_a_build_outside_of_the_checkout_gives_the_same_bytes(installed: Installed, tmp_path: Path) -> None:
    tree = make_trees(Request(("gfx950",)))["gfx950"]
    expected = {**tree.files, "manifest.json": tree.manifest.to_text().encode()}
    done = installed.run("dsv4gen", "build", "--target", "gfx950", "--out", str(tmp_path / "out"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    built = tree_bytes(tmp_path / "out" / "gfx950")
    carried = tree_bytes(installed.package / "_data" / "generated" / "gfx950")
    assert built == dict(sorted(expected.items()))
    assert carried == built


def test_every_target_is_there_without_a_build(installed: Installed) -> None:
    done = installed.run("dsv4gen", "list", "--json")
    assert done.returncode == 0, done.stderr
    assert {row["target"]: row["built"] for row in json.loads(done.stdout)} == dict.fromkeys(known_targets(), "yes")


def test_the_page_of_a_report_is_made_there(installed: Installed, tmp_path: Path) -> None:
    words = ("-t", "gfx950", "-f", "topk", "--html", str(tmp_path))
    done = installed.run("dsv4gen", "report", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'data-cell="gfx950/topk"' in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_explain_works_there(installed: Installed) -> None:
    done = installed.run("dsv4gen", "explain", "topk", "--target", "sm_90a", "batch=4", "width=131072", "k=512")
    assert "topk.select on sm_90" in done.stdout, done.stderr


def test_an_installed_package_takes_no_new_files(installed: Installed) -> None:
    done = installed.run("dsv4gen", "new-family", "mine")
    assert done.returncode == 2
    assert "--folder" in done.stderr


@pytest.fixture
def locked(installed: Installed) -> Iterator[Path]:
    """A folder nobody can write to, while the installed package is like that too."""
    folder = installed.folder / "locked"
    folder.mkdir()
    entries = [folder, installed.package, *installed.package.rglob("*")]
    modes = {path: path.stat().st_mode for path in entries}
    for path in entries:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield folder
    for path, mode in modes.items():
        path.chmod(mode)
    folder.rmdir()


def test_a_user_who_may_write_nothing_can_import_and_build(installed: Installed, locked: Path, tmp_path: Path) -> None:
    """BL-34: no writable HOME or cache, the package read-only, an odd path for the output."""
    before = tree_bytes(installed.package)
    variables = {"HOME": str(locked), "DSV4GEN_CACHE_DIR": str(locked / "cache")}
    done = installed.run("python", "-c", "import dsv4gen, dsv4gen.runtime", cwd=tmp_path, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    out = tmp_path / "a b" / "ü'$(touch x)" / ("long" * 30) / ("longer" * 20)
    done = installed.run(
        "dsv4gen", "build", "--target", "gfx950", "-f", "topk", "--out", str(out), cwd=tmp_path, **variables
    )
    assert done.returncode == 0, done.stderr
    assert (out / "gfx950" / "manifest.json").is_file()
    assert not list(tmp_path.rglob("x"))
    assert tree_bytes(installed.package) == before
    done = installed.run(
        "dsv4gen", "build", "--target", "gfx950", "--out", str(locked / "x"), cwd=tmp_path, **variables
    )
    assert done.returncode == 2
    assert f"--out {locked / 'x'} cannot be written" in done.stderr and "Traceback" not in done.stderr


def test_without_any_compiler_or_toolkit_everything_but_compiling_works(installed: Installed, tmp_path: Path) -> None:
    """BL-35: no nvcc, no hipcc, a CUDA_HOME that is not there."""
    bare = {"PATH": str(tmp_path), "CUDA_HOME": "/nowhere", "ROCM_PATH": "/nowhere"}
    done = installed.run(
        "dsv4gen", "build", "--target", "sm_90", "-f", "topk", "--out", str(tmp_path / "out"), cwd=tmp_path, **bare
    )
    assert done.returncode == 0, done.stderr
    done = installed.run("dsv4gen", "doctor", cwd=tmp_path, **bare)
    assert done.returncode == 0, done.stderr


def test_an_editable_install_carries_nothing_generated(tmp_path: Path) -> None:
    """A checkout builds what is missing; only the extension is compiled, in place."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    place = tmp_path / "dsv4gen" / "runtime"
    place.mkdir(parents=True)
    (place / "native_calls.c").write_bytes((ROOT / "dsv4gen" / "runtime" / "native_calls.c").read_bytes())
    hook = module.GenerateHook(str(tmp_path), {}, None, None, str(tmp_path), "wheel")
    build_data: dict[str, dict[str, str]] = {"force_include": {}}
    hook.initialize("editable", build_data)
    hook.finalize("editable", build_data, "")
    assert build_data == {"force_include": {}}
    need_extension(tmp_path)
    assert (tmp_path / module.EXTENSION).is_file()
