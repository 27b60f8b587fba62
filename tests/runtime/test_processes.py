"""Several processes and killed ones: the same code for all, no manual cleaning, no writes outside the cache."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.runtime import stubs, synthetic

ROOT = Path(__file__).parents[2]
NOBODY = 65534


def _start(
    generated: Path, library: Path, *, symbol: str = "demo_small", **environment: str | None
) -> subprocess.Popen[str]:
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    for name, value in environment.items():
        variables.pop(name, None)
        if value is not None:
            variables[name] = value
    command = [sys.executable, "-m", "tests.runtime.worker", str(generated / "sm_90"), str(library.parent), symbol]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=variables, cwd="/")


def _finish(process: subprocess.Popen[str]) -> dict[str, str]:
    out, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    result: dict[str, str] = json.loads(out)
    return result


@pytest.fixture
def library(build: stubs.Builder) -> Path:
    return build("libnvrtc.so.13")


def test_eight_processes_start_cold_together(generated: Path, library: Path, tmp_path: Path) -> None:
    log = tmp_path / "compiles.log"
    for turn in range(2):
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        log.write_text("")
        started = [_start(generated, library, STUB_COMPILE_MS="200", STUB_COMPILE_LOG=str(log)) for _ in range(8)]
        results = [_finish(process) for process in started]
        assert len({result["digest"] for result in results}) == 1, turn
        assert sorted(result["origin"] for result in results) == ["cache"] * 7 + ["compiled"]
        assert len(log.read_text().splitlines()) == 1, "the others wait and take the first one's"
        assert not list((tmp_path / "cache").rglob(".staging-*"))


def test_eight_processes_without_locks_get_the_same(generated: Path, library: Path, tmp_path: Path) -> None:
    """A folder in the locks' place: nobody can lock, everybody compiles, nobody gets half a file."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "locks").write_text("in the way")
    started = [_start(generated, library, TMPDIR="/nonexistent", STUB_COMPILE_MS="50") for _ in range(8)]
    assert len({_finish(process)["digest"] for process in started}) == 1


def test_a_killed_compile_leaves_nothing_to_clean(generated: Path, library: Path, tmp_path: Path) -> None:
    log = tmp_path / "compiles.log"
    log.touch()
    victim = _start(generated, library, STUB_COMPILE_MS="20000", STUB_COMPILE_LOG=str(log))
    deadline = time.monotonic() + 30
    while not log.read_text():
        assert time.monotonic() < deadline and victim.poll() is None
        time.sleep(0.01)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()
    started = time.monotonic()
    assert _finish(_start(generated, library))["origin"] == "compiled"
    assert time.monotonic() - started < 15, "the kernel dropped the dead process's lock"
    assert _finish(_start(generated, library))["origin"] == "cache"


def test_a_staged_file_of_a_killed_writer_is_never_read(generated: Path, library: Path, tmp_path: Path) -> None:
    first = _finish(_start(generated, library))
    (entry,) = (tmp_path / "cache" / "code").rglob("*.cubin")
    half = entry.with_name(".staging-abandoned")
    half.write_bytes(entry.read_bytes()[:100])
    entry.unlink()
    assert _finish(_start(generated, library)) == first
    assert half.exists()


def test_somebody_without_a_home_uses_a_private_temporary_folder(build: stubs.Builder) -> None:
    """As user `nobody` where the tests run as root; otherwise as whoever runs them."""
    home = Path(tempfile.mkdtemp(dir=os.path.realpath("/tmp")))
    try:
        shutil.copytree(build("libnvrtc.so.13").parent, home / "lib")
        generated = synthetic.write_folder(home / "generated").parent
        (home / "tmp").mkdir()
        for folder in (home, home / "lib", home / "generated", home / "generated" / "sm_90", home / "tmp"):
            folder.chmod(0o777)
        before = sorted(home.rglob("*"))
        process = _start(
            generated,
            home / "lib" / "libnvrtc.so.13",
            WORKER_USER=str(NOBODY),
            TMPDIR=str(home / "tmp"),
            HOME="/nonexistent",
            XDG_CACHE_HOME=None,
            DSV4GEN_CACHE_DIR=None,
        )
        out, error = process.communicate(timeout=60)
        assert process.returncode == 0, error
        assert json.loads(out)["origin"] == "compiled"
        assert error.count("RuntimeWarning") == 1 and "compiled kernels go to" in error
        written = {path for path in home.rglob("*") if path not in before}
        user = NOBODY if os.getuid() == 0 else os.getuid()
        assert written and all(path.is_relative_to(home / "tmp" / f"dsv4gen-{user}") for path in written)
    finally:
        shutil.rmtree(home)


def test_odd_paths(library: Path, tmp_path: Path) -> None:
    odd = tmp_path / "a b" / "ü'$(touch x)" / ("long" * 50)
    generated = synthetic.write_folder(odd / "generated").parent
    assert _finish(_start(generated, library, DSV4GEN_CACHE_DIR=str(odd / "cache")))["origin"] == "compiled"
    assert _finish(_start(generated, library, DSV4GEN_CACHE_DIR=str(odd / "cache")))["origin"] == "cache"
    assert not list(tmp_path.rglob("x")) and not Path("/x").exists()


SERVER = """
import sys
for name in ("pydantic", "jinja2", "sympy", "z3", "ruamel", "click", "rich", "numpy", "filelock", "platformdirs"):
    sys.modules[name] = None
import torch, dsv4gen
from pathlib import Path
from dsv4gen.runtime import libraries
from dsv4gen.runtime.platform import HostPlatform, use
from tests.runtime.stubs import found
everything = [found(Path(word)) for word in sys.argv[1:]]
libraries.find = lambda kind: tuple(entry for entry in everything if kind.pattern.fullmatch(Path(entry.name).name))
with use(HostPlatform("sm_90")):
    print(tuple(dsv4gen.load("demo")(torch.zeros(3, 8), scale=1.0).shape))
"""


@pytest.mark.usefixtures("generated")
def test_a_server_without_the_generator_loads_and_launches(library: Path, build: stubs.Builder) -> None:
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    del variables["DSV4GEN_REGENERATE"]
    command = [sys.executable, "-c", SERVER, str(library), str(build("libcuda.so.1"))]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.strip() == "(3,)", done.stderr


def test_importing_writes_nothing(tmp_path: Path) -> None:
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    script = "import dsv4gen, dsv4gen.runtime.load; dsv4gen.targets()"
    subprocess.run([sys.executable, "-B", "-c", script], env=variables, check=True, cwd=tmp_path)
    assert not list(tmp_path.iterdir())
