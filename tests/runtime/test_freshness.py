"""Generated files older than their specs: rebuilt, warned about, or left alone; and the new text is what runs."""

from __future__ import annotations

import importlib.util
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import dsv4gen
from dsv4gen.base import paths
from dsv4gen.base.errors import ArgumentError, LoadError, ManifestError
from dsv4gen.base.target_id import parse
from dsv4gen.runtime import family, freshness, platform, triton_backend
from dsv4gen.runtime.platform import HostPlatform
from tests.runtime import synthetic
from tests.runtime.stubs import StubDriver

ROOT = Path(__file__).parents[2]
Runs = list[tuple[str, ...]]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """What the generator would have been asked; it reports drift."""
    calls: Runs = []

    def run(target: str, root: Path, *more: str) -> bool:  # noqa: ARG001
        calls.append((target, *more))
        return bool(more)

    monkeypatch.setattr(freshness, "_run_build", run)
    monkeypatch.setattr(freshness, "_known", set())
    monkeypatch.delenv("DSV4GEN_REGENERATE")
    return calls


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in an installed package: no checkout around it."""
    monkeypatch.setattr(paths, "checkout", lambda: None)


def test_a_checkout_builds_what_is_missing_or_stale_once(generated: Path, runs: Runs) -> None:
    for _ in range(2):
        freshness.ensure("demo", parse("sm_90"))
    assert runs == [("sm_90",)]
    freshness.ensure("demo", parse("gfx950"))
    assert runs[-1] == ("gfx950",)
    assert (generated / "sm_90").is_dir()


@pytest.mark.usefixtures("generated")
def test_switched_off_it_does_not_look(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_REGENERATE", "0")
    freshness.ensure("demo", parse("sm_90"))
    assert runs == []


@pytest.mark.usefixtures("generated", "installed")
def test_an_untouched_wheel_does_not_look(runs: Runs) -> None:
    freshness.ensure("demo", parse("sm_90"))
    assert runs == []


@pytest.mark.usefixtures("generated", "installed")
@pytest.mark.parametrize("variable", ["DSV4GEN_SPECS_DIR", "DSV4GEN_EXTENSIONS"])
def test_specs_from_elsewhere_are_compared_and_warned_about(
    variable: str, runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path))
    with pytest.warns(RuntimeWarning, match="sm_90 is older than its specs; run: dsv4gen build --target sm_90"):
        freshness.ensure("demo", parse("sm_90"))
    assert runs == [("sm_90", "--check")]


@pytest.mark.usefixtures("generated", "installed")
def test_asked_for_it_rebuilds_anywhere(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_REGENERATE", "1")
    freshness.ensure("demo", parse("sm_90"))
    assert runs == [("sm_90",)]


@pytest.mark.usefixtures("generated")
def test_a_server_without_the_generator_uses_what_is_there(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "missing_generator", lambda: ["pydantic"])
    freshness.ensure("demo", parse("sm_90"))
    assert runs == []


def test_a_failing_build_is_the_load_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DSV4GEN_SPECS_DIR", str(tmp_path / "no such folder"))
    with pytest.raises(LoadError, match="building sm_90 failed") as caught:
        freshness._run_build("sm_90", tmp_path)
    assert "no such folder" in str(caught.value)


def test_edited_inputs_run_in_the_same_process_and_second(
    cuda: StubDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way: spec and template, generator, manifest, source, code object, launch."""
    cuda.set("params_bytes", 96)
    for kind in ("specs", "templates"):
        shutil.copytree(ROOT / kind, tmp_path / kind)
        monkeypatch.setenv(f"DSV4GEN_{kind.upper()}_DIR", str(tmp_path / kind))
    monkeypatch.setenv("DSV4GEN_REGENERATE", "1")
    spec = tmp_path / "specs" / "families" / "topk.yaml"
    macro = tmp_path / "templates" / "macros" / "params.jinja"
    for other in set(spec.parent.glob("*.yaml")) - {spec}:
        other.unlink()
    shutil.rmtree(tmp_path / "specs" / "tuning")
    call = {"scores": torch.zeros(1, 5000), "seq_lens": torch.zeros(1, dtype=torch.int32)}
    with platform.use(HostPlatform("sm_90")):
        dsv4gen.load("topk", mode="indices")(**call, k=16)
        _edit(spec, "  k:         {min: 1, ", "  k:         {min: 17, ")
        _edit(macro, "struct Params {", "// edited\nstruct Params {")
        with pytest.raises(ArgumentError, match=r"k=16 is outside 17\.\."):
            dsv4gen.load("topk", mode="indices")(**call, k=16)
        dsv4gen.load("topk", mode="indices")(**call, k=17)
    code = sorted((tmp_path / "cache" / "code").rglob("*.cubin"), key=lambda path: path.stat().st_mtime_ns)
    assert [b"// edited" in path.read_bytes() for path in code] == [False, True]
    assert cuda.count("launches") == cuda.count("modules") == 2


def _edit(path: Path, old: str, new: str) -> None:
    """Change a file and hide it from whoever looks at time stamps."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    os.utime(path, (0, 0))


def test_a_triton_module_is_the_text_on_disk(tmp_path: Path) -> None:
    """Same size, same time stamp, same second: Python's import would run its byte code of the old text."""
    path = tmp_path / "demo.py"
    values = []
    for number in (1, 2, 1):
        path.write_text(f"VALUE = {number}\n")
        os.utime(path, (1, 1))
        values.append(triton_backend.load_module(path).VALUE)
    assert values == [1, 2, 1]


def test_a_generated_module_reads_its_folder_anew(
    generated: Path, cuda: StubDriver, write_module: Callable[[Path], object]
) -> None:
    module = write_module(generated / "sm_90")
    with platform.use(HostPlatform("sm_90")):
        module.run(torch.zeros(2, 8), scale=1.0)  # type: ignore[attr-defined]
        entry = synthetic.demo_family()
        entry["constants"]["limit"] = 4
        synthetic.write_folder(generated, families={"demo": {**entry, "digest": "changed"}})
        module.run(torch.zeros(2, 8), scale=1.0)  # type: ignore[attr-defined]
    assert [cuda.symbol(launch) for launch in cuda.launches()] == ["demo_small", "demo_large"]


def test_a_generated_module_reads_its_folder_once(
    generated: Path, cuda: StubDriver, write_module: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Calls in a row compare no files, and a file that is gone or edited is named once its manifest is new."""
    reads: list[Path] = []
    read = family.read_manifest
    monkeypatch.setattr(family, "read_manifest", lambda folder: reads.append(folder) or read(folder))
    module = write_module(generated / "sm_90")
    with platform.use(HostPlatform("sm_90")):
        for _ in range(3):
            module.run(torch.zeros(2, 8), scale=1.0)  # type: ignore[attr-defined]
        assert len(reads) == 1 and cuda.count("launches") == 3
        manifest = generated / "sm_90" / "manifest.json"
        text = manifest.read_text()
        manifest.unlink()
        with pytest.raises(ManifestError, match=r"no manifest\.json"):
            module.run(torch.zeros(2, 8), scale=1.0)  # type: ignore[attr-defined]
        manifest.write_text(text)
        (generated / "sm_90" / "demo.cu").write_text("// edited\n")
        with pytest.raises(ManifestError, match=r"demo\.cu \(edited\)"):
            module.run(torch.zeros(2, 8), scale=1.0)  # type: ignore[attr-defined]


@pytest.fixture
def write_module() -> Callable[[Path], object]:
    """Imports a module like the generated ones from a target's folder."""

    def write(folder: Path) -> object:
        text = "from dsv4gen.runtime import GeneratedFamily\n"
        text += "family = GeneratedFamily(__file__, 'demo')\nrun = family.op('run')\nexplain = family.explain\n"
        (folder / "demo.py").write_text(text)
        spec = importlib.util.spec_from_file_location("generated_demo", folder / "demo.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return write


def test_a_generated_module_explains_without_a_gpu(generated: Path, write_module: Callable[[Path], object]) -> None:
    module = write_module(generated / "sm_90")
    assert module.explain(rows=1, width=8).launches[0].symbol == "demo_small"  # type: ignore[attr-defined]
    assert repr(module.run) == "<dsv4gen demo.run in sm_90>"  # type: ignore[attr-defined]


def test_looking_costs_little(generated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freshness, "_run_build", lambda *_: False)
    monkeypatch.setattr(freshness, "_known", set())
    monkeypatch.delenv("DSV4GEN_REGENERATE")
    freshness.ensure("demo", parse("sm_90"))
    started = time.perf_counter()
    freshness.ensure("demo", parse("sm_90"))
    assert time.perf_counter() - started < 0.5
    assert generated.is_dir()
