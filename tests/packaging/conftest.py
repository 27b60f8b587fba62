"""The distribution as a stranger gets it: an sdist of this tree, a wheel of the sdist, an empty environment."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from dsv4gen.scaffold.family import new_family
from tests.checkout import ROOT
from tests.tools import need_module

#: numbers of linux/prctl.h and linux/capability.h
_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE = 24, 1


@dataclass(frozen=True)
class Installed:
    """An environment that holds the wheel and sees the test environment's other packages."""

    folder: Path
    sdist: Path
    wheel: Path

    @property
    def package(self) -> Path:
        """The installed package."""
        (found,) = self.folder.glob("env/lib/python*/site-packages/dsv4gen")
        return found

    def run(self, *words: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        """A program of the environment, outside of the checkout, with only the given variables of ours."""
        program = self.folder / "env" / "bin" / words[0]
        own = {"DSV4GEN_CACHE_DIR": str(self.folder / "cache")}
        return run([str(program), *words[1:]], cwd or self.folder, {**own, **variables})


def run(command: Sequence[str], cwd: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A command in a folder; PYTHONPATH and our variables are not inherited.

    File modes count even for root: the process gives up the right to ignore them.
    """
    kept = {n: v for n, v in os.environ.items() if n != "PYTHONPATH" and not n.startswith("DSV4GEN_")}
    return subprocess.run(
        command,
        cwd=cwd,
        env={**kept, **variables},
        preexec_fn=_obey_file_modes,
        capture_output=True,
        text=True,
        check=False,
    )


def _obey_file_modes() -> None:
    """Drop CAP_DAC_OVERRIDE from what the next program may have; refused, and not needed, for other users."""
    ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_DAC_OVERRIDE, 0, 0, 0)


def hatchling(folder: Path, kind: str, out: Path, **variables: str) -> Path:
    """Build one kind of distribution of a tree, without fetching anything."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(out)]
    done = run(command, folder, variables)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = out.glob("*.tar.gz" if kind == "sdist" else "*.whl")
    return found


@pytest.fixture(scope="session")
def installed() -> Iterator[Installed]:
    """Build, unpack, build, install. Variables and extensions of the builder must not matter, so some are set."""
    need_module("hatchling")
    folder = Path(tempfile.mkdtemp(prefix="dsv4gen-packaging-"))
    folder.chmod(0o755)
    try:
        sdist = hatchling(ROOT, "sdist", folder / "sdist")
        with tarfile.open(sdist) as archive:
            archive.extractall(folder / "tree", filter="data")
        (tree,) = (folder / "tree").iterdir()
        new_family("stranger", folder=folder / "ext")
        strange = {"DSV4GEN_EXTENSIONS": str(folder / "ext"), "DSV4GEN_SPECS_DIR": str(folder), "PYTHONHASHSEED": "5"}
        wheel = hatchling(tree, "wheel", folder / "wheel", **strange)
        venv.create(folder / "env", symlinks=True, with_pip=False)
        _see_other_packages(folder / "env")
        pip = [sys.executable, "-m", "pip", "--python", str(folder / "env" / "bin" / "python")]
        done = run([*pip, "install", "-q", "--no-compile", "--no-deps", "--no-index", str(wheel)], folder, {})
        assert done.returncode == 0, done.stderr
        yield Installed(folder, sdist, wheel)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _see_other_packages(environment: Path) -> None:
    """Name the test environment's packages in a .pth file; its own .pth files, editable installs too, do not count."""
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
